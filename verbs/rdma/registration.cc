#include "verbs/rdma/registration.h"

#include <cerrno>
#include <vector>

namespace viaduct::verbs::rdma {
#include "verbs/rdma/patience.h"

namespace {

constexpr Key kLastKey = 0x7fffffff;
constexpr int kRemote = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

}  // namespace

int RemoteFlags(uint32_t access) {
  int flags = 0;
  if ((access & kRemoteRead) != 0) flags |= IBV_ACCESS_REMOTE_READ;
  if ((access & kRemoteWrite) != 0) flags |= IBV_ACCESS_REMOTE_WRITE;
  if ((access & kRemoteAtomic) != 0) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  return flags;
}

int AccessFlags(uint32_t access) {
  const bool writes = (access & (kLocalWrite | kRemoteWrite | kRemoteAtomic)) != 0;
  return RemoteFlags(access) | (writes ? IBV_ACCESS_LOCAL_WRITE : 0);
}

ibv_mr* RegisterWithKey(ibv_pd* domain, void* address, size_t length, int flags,
                        uint64_t counted_from, const RegionMap& known, Key* key) {
  std::vector<ibv_mr*> unfit;
  ibv_mr* handle = nullptr;
  for (int i = 0; i < kKeyTries; ++i) {
    handle = ibv_reg_mr_iova(domain, address, length, counted_from, flags);
    if (handle == nullptr) break;
    *key = (flags & kRemote) != 0 ? handle->rkey : handle->lkey;
    RegionEntry of_another;
    if (*key != 0 && *key <= kLastKey && !known.Find(*key, &of_another)) break;
    unfit.push_back(handle);
    handle = nullptr;
    errno = ENOSPC;
  }
  const int error = errno;
  for (ibv_mr* mr : unfit) ibv_dereg_mr(mr);
  errno = error;
  return handle;
}

}  // namespace viaduct::verbs::rdma
