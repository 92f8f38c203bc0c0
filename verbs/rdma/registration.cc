#include "verbs/rdma/registration.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "verbs/rdma/patience.h"

namespace viaduct::verbs::rdma {
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
  // Registrations with unfit keys are kept for a while, so that these keys do not come again. But
  // they pin the memory, too, and mlx4 leaves a range of keys only when some are given back; so the
  // oldest makes room for the next.
  ibv_mr* unfit[kKeysKept] = {};
  const auto let_go = [](ibv_mr*& kept) {
    const int error = errno;
    if (kept != nullptr) ibv_dereg_mr(std::exchange(kept, nullptr));
    errno = error;
  };
  bool keeps = false;
  ibv_mr* handle = nullptr;
  for (int i = 0; i < kKeyTries; ++i) {
    handle = ibv_reg_mr_iova(domain, address, length, counted_from, flags);
    if (handle == nullptr) {
      if (errno != ENOMEM || !keeps) break;
      std::for_each(std::begin(unfit), std::end(unfit), let_go);
      keeps = false;
      continue;
    }
    *key = (flags & kRemote) != 0 ? handle->rkey : handle->lkey;
    RegionEntry of_another;
    if (*key != 0 && *key <= kLastKey && !known.Find(*key, &of_another)) break;
    ibv_mr*& place = unfit[static_cast<size_t>(i) % kKeysKept];
    let_go(place);
    place = std::exchange(handle, nullptr);
    keeps = true;
    errno = ENOSPC;
  }
  std::for_each(std::begin(unfit), std::end(unfit), let_go);
  return handle;
}

}  // namespace viaduct::verbs::rdma
