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

// What an endpoint keeps for dat_ep_query although the engine has no use for it, or has it
// elsewhere: one word, Object::face_word.
struct AskedAttributes {
  static constexpr uint32_t kMaxSoftHigh = (1u << 22) - 2;

  uint32_t max_rdma_size =
      0;  // 0: the device's. No limit: OFED's dtest writes more than it asks for
  uint8_t receive_flags = 0;  // DAT_COMPLETION_FLAGS of the endpoint's streams, five bits
  uint8_t request_flags = 0;
  // The soft watermark that srq_soft_hw or dat_ep_set_watermark gave last; null: none.
  std::optional<uint32_t> soft_high = std::nullopt;

  // Of a higher watermark than kMaxSoftHigh that one is kept.
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

// Takes over the members that `mask` names (DAT_EP_FIELD_EP_ATTR_*). Sizes and counts of 0 mean
// the default and limit nothing. Answers MODEL_NOT_SUPPORTED, or INVALID_PARAMETER with
// `argument` as its number; then nothing was changed.
DAT_RETURN ApplyAttributes(const DAT_EP_ATTR& attributes, DAT_EP_PARAM_MASK mask, unsigned argument,
                           const verbs::DeviceAttributes& device, core::EndpointAttributes* engine,
                           AskedAttributes* asked);

void ShowAttributes(const core::EndpointAttributes& engine, const AskedAttributes& asked,
                    const verbs::DeviceAttributes& device, DAT_EP_ATTR* attributes);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EP_ATTRIBUTES_H_
