// What peers may reach: keys of regions, and of windows as they are bound.
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
  const ibv_qp* pair = nullptr;  // null: any of the domain
  uint64_t from = 0;             // as peers count
  uint64_t length = 0;
  char* memory = nullptr;
  unsigned access = 0;  // of IBV_ACCESS_REMOTE_*
};

class RemoteKeys {
 public:
  using Entry = std::map<uint32_t, Reach>::node_type;

  // One for Open, closed. Needs memory, as nothing else here.
  static Entry NewEntry();
  // What `key` opens from now on.
  void Open(uint32_t key, const Reach& reach, Entry entry);
  Entry Remove(uint32_t key);
  // As its owner set it; no memory: there is no such key.
  Reach Find(uint32_t key);
  // Calls `move` with the place of `bytes` at `address`, which stay there meanwhile. False: who
  // asks `pair` for them may not reach them so. No bytes lie nowhere, wherever they are said to be.
  bool Use(const ibv_qp& pair, uint32_t key, uint64_t address, uint32_t bytes, unsigned access,
           absl::FunctionRef<void(char*)> move);
  // It opens nothing any more, and stays. False: whom `pair` talks to may not end it, since it is
  // of no window that is bound to that very pair.
  bool Close(const ibv_qp& pair, uint32_t key);

 private:
  verbs::Mutex mutex_;
  std::map<uint32_t, Reach> keys_ ABSL_GUARDED_BY(mutex_);
};
RemoteKeys& Remote();

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_REMOTE_KEYS_H_
