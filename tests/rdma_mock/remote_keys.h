// What peers may reach: the keys of regions, and those of windows as they are bound.
#ifndef VIADUCT_TESTS_RDMA_MOCK_REMOTE_KEYS_H_
#define VIADUCT_TESTS_RDMA_MOCK_REMOTE_KEYS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "verbs/base/lock.h"

namespace viaduct::rdma_mock {

struct Reach {
  const ibv_pd* domain = nullptr;
  const ibv_qp* pair = nullptr;  // null: any pair of the domain
  uint64_t from = 0;             // the address of the first byte, as peers count
  uint64_t length = 0;
  char* memory = nullptr;
  unsigned access = 0;  // of IBV_ACCESS_REMOTE_*
};

class RemoteKeys {
 public:
  using Entry = std::map<uint32_t, Reach>::node_type;

  // Makes an entry for Open, with access to nothing. This is the only function here that needs
  // memory.
  static Entry NewEntry();
  // From now on `key` gives access to `reach`.
  void Open(uint32_t key, const Reach& reach, Entry entry);
  Entry Remove(uint32_t key);
  // The reach as its owner has set it; its `memory` is null if there is no such key.
  Reach Find(uint32_t key);
  // Calls `move` with the place of `bytes` at `address`, which stay there meanwhile. False: the
  // peer of `pair` may not access them in this way. If `bytes` is 0, nothing is checked and `move`
  // gets null.
  bool Use(const ibv_qp& pair, uint32_t key, uint64_t address, uint32_t bytes, unsigned access,
           absl::FunctionRef<void(char*)> move);
  // The key stays but gives access to nothing any more. False: the peer of `pair` may not end it,
  // since the key is not of a window that is bound to this very pair.
  bool Close(const ibv_qp& pair, uint32_t key);

 private:
  verbs::Mutex mutex_;
  std::map<uint32_t, Reach> keys_ ABSL_GUARDED_BY(mutex_);
};
RemoteKeys& Remote();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_REMOTE_KEYS_H_
