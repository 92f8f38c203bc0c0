// DAT_EP_ATTR and what the engine makes of it.
#ifndef VIADUCT_DAT_API_EP_ATTRIBUTES_H_
#define VIADUCT_DAT_API_EP_ATTRIBUTES_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "dat/api/abi.h"
#include "dat/core/endpoint.h"
#include "verbs/device.h"

namespace viaduct::dat {

// Attributes that an endpoint keeps for dat_ep_query although the engine does not use them or
// stores them elsewhere. They are packed into one word, Object::face_word.
struct AskedAttributes {
  static constexpr uint32_t kMaxSoftHigh = (1u << 22) - 2;

  uint32_t max_rdma_size =
      0;  // 0: the device's. Not enforced: OFED's dtest writes more than it asks for
  uint8_t receive_flags = 0;  // DAT_COMPLETION_FLAGS of the endpoint's streams, five bits each
  uint8_t request_flags = 0;
  // The soft high watermark last set by srq_soft_hw or dat_ep_set_watermark; null: none.
  std::optional<uint32_t> soft_high = std::nullopt;

  // A watermark above kMaxSoftHigh is stored as kMaxSoftHigh.
  uint64_t Pack() const {
    const uint64_t soft = soft_high ? uint64_t{std::min(*soft_high, kMaxSoftHigh)} + 1 : 0;
    return max_rdma_size | uint64_t{receive_flags} << 32 | uint64_t{request_flags} << 37 |
           soft << 42;
  }
  static AskedAttributes Unpack(uint64_t word) {
    AskedAttributes asked = {static_cast<uint32_t>(word), static_cast<uint8_t>(word >> 32 & 0x1f),
                             static_cast<uint8_t>(word >> 37 & 0x1f)};
    const auto soft = static_cast<uint32_t>(word >> 42);
    if (soft != 0) asked.soft_high = soft - 1;
    return asked;
  }
};

// Copies the members that `mask` names (DAT_EP_FIELD_EP_ATTR_*) to `engine` and `asked`. Sizes and
// counts of 0 mean the default and limit nothing. On failure (MODEL_NOT_SUPPORTED, or
// INVALID_PARAMETER for parameter number `argument`) nothing has changed.
DAT_RETURN ApplyAttributes(const DAT_EP_ATTR& attributes, DAT_EP_PARAM_MASK mask, unsigned argument,
                           const verbs::DeviceAttributes& device, core::EndpointAttributes* engine,
                           AskedAttributes* asked);

void ShowAttributes(const core::EndpointAttributes& engine, const AskedAttributes& asked,
                    const verbs::DeviceAttributes& device, DAT_EP_ATTR* attributes);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EP_ATTRIBUTES_H_
