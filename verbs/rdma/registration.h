// Registers memory with libibverbs, and translates rights to its form.
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
// All rights of `access`. Memory that the peer may write must be writable locally, too.
int AccessFlags(uint32_t access);

// Registers memory with these ibv_access_flags until its key can be shown: the remote key if it has
// remote rights, else the local key. The key is none of `known`, since a changed region keeps its
// key there while the device may give it out again. Null: see errno.
ibv_mr* RegisterWithKey(ibv_pd* domain, void* address, size_t length, int flags,
                        uint64_t counted_from, const RegionMap& known, Key* key);

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_REGISTRATION_H_
