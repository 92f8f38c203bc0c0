// Registrations of memory with libibverbs, and rights in its form.
#ifndef VIADUCT_VERBS_RDMA_REGISTRATION_H_
#define VIADUCT_VERBS_RDMA_REGISTRATION_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "verbs/device.h"
#include "verbs/rdma/region_map.h"

namespace viaduct::verbs::rdma {

// What `access` (Access) lets the peer do, as ibv_access_flags.
int RemoteFlags(uint32_t access);
// All of it. Who lets the peer write must write himself.
int AccessFlags(uint32_t access);

// A registration with these ibv_access_flags, whose key can be shown: the remote one where it has
// remote rights, else the local one. None of `known`: a region that was changed keeps its key,
// which the device may give out again. Null: errno.
ibv_mr* RegisterWithKey(ibv_pd* domain, void* address, size_t length, int flags,
                        uint64_t counted_from, const RegionMap& known, Key* key);

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_REGISTRATION_H_
