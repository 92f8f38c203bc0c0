// Registered memory of our own, for what the device cannot do where the program's bytes lie: more
// segments than it takes, messages whose receive is not known yet.
#ifndef VIADUCT_VERBS_RDMA_BOUNCE_POOL_H_
#define VIADUCT_VERBS_RDMA_BOUNCE_POOL_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs::rdma {

struct Bounce {
  unsigned char* memory = nullptr;  // null: none
  ibv_mr* registration = nullptr;
  uint32_t size = 0;  // a power of two
};

// Of one protection domain. Any thread.
class BouncePool {
 public:
  explicit BouncePool(ibv_pd* domain) : domain_(domain) {}
  ~BouncePool();  // everything taken was given back
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  // At least `size` bytes; empty without memory (a line is logged).
  Bounce Take(size_t size);
  void GiveBack(Bounce& bounce);  // empty afterwards; may be empty before

 private:
  static constexpr int kClasses = 32;
  ibv_pd* const domain_;
  Mutex mutex_;
  std::vector<Bounce> free_[kClasses] ABSL_GUARDED_BY(mutex_);
  size_t made_[kClasses] ABSL_GUARDED_BY(mutex_) = {};  // free or taken
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_BOUNCE_POOL_H_
