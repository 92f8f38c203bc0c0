// Bounce buffers: registered memory of our own, where the device cannot use that of the program:
// for requests of more segments than it takes, and messages whose receive is not known yet.
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

// The bounces of one protection domain. Any thread.
class BouncePool {
 public:
  explicit BouncePool(ibv_pd* domain) : domain_(domain) {}
  ~BouncePool();  // every bounce must have been given back
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  // Returns at least `size` bytes, or an empty Bounce if there is no memory (a line is logged).
  Bounce Take(size_t size);
  void GiveBack(Bounce& bounce);  // empties `bounce`, which may be empty already

 private:
  static constexpr int kClasses = 32;
  ibv_pd* const domain_;
  Mutex mutex_;
  std::vector<Bounce> free_[kClasses] ABSL_GUARDED_BY(mutex_);
  size_t made_[kClasses] ABSL_GUARDED_BY(mutex_) = {};  // free or taken
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_BOUNCE_POOL_H_
