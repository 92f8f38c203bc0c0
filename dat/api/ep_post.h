// What the posts of both versions have in common.
#ifndef VIADUCT_DAT_API_EP_POST_H_
#define VIADUCT_DAT_API_EP_POST_H_

#include <cstdint>

#include "dat/api/abi.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {

// Counts a request that was posted.
inline void CountPost(core::Endpoint& endpoint, verbs::Opcode opcode, uint64_t bytes) {
  core::EndpointCount kind = core::EndpointCount::kSends;
  if (opcode == verbs::Opcode::kWrite) kind = core::EndpointCount::kWrites;
  if (opcode == verbs::Opcode::kRead) kind = core::EndpointCount::kReads;
  endpoint.counts().AddWithBytes(kind, bytes);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EP_POST_H_
