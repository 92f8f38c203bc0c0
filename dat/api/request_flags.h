// The completion flags of a posted request.
#ifndef VIADUCT_DAT_API_REQUEST_FLAGS_H_
#define VIADUCT_DAT_API_REQUEST_FLAGS_H_

#include <cstdint>

#include "dat/api/abi.h"
#include "dat/api/ep_attributes.h"
#include "dat/core/endpoint.h"
#include "verbs/device.h"

namespace viaduct::dat {

inline constexpr unsigned kRequestFlags =
    DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
    DAT_COMPLETION_BARRIER_FENCE_FLAG | DAT_COMPLETION_EVD_THRESHOLD_FLAG;

// UNSIGNALLED is allowed only for requests of an endpoint that was created with it.
inline unsigned RequestFlagsOf(const core::Endpoint& endpoint) {
  return kRequestFlags | (AskedAttributes::Unpack(endpoint.face_word()).request_flags &
                          DAT_COMPLETION_UNSIGNALLED_FLAG);
}

inline uint16_t ToRequestFlags(unsigned flags) {
  uint16_t out = 0;
  if (flags == 0) [[likely]]
    return out;
  if ((flags & DAT_COMPLETION_SUPPRESS_FLAG) != 0) out |= verbs::kSuppress;
  if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) != 0) out |= verbs::kSolicited;
  if ((flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) != 0) out |= verbs::kFence;
  if ((flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0) out |= verbs::kQuiet;
  return out;
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_REQUEST_FLAGS_H_
