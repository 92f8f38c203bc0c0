// The word of a protection domain that peers read to have a request confirmed (verbs/device.h). Our
// own confirming reads put their result there, too; its value means nothing.
#ifndef VIADUCT_VERBS_RDMA_CONFIRMATION_MEMORY_H_
#define VIADUCT_VERBS_RDMA_CONFIRMATION_MEMORY_H_

#include <infiniband/verbs.h>

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::verbs::rdma {

// Any thread.
class ConfirmationMemory {
 public:
  explicit ConfirmationMemory(ibv_pd* domain) : domain_(domain) {}
  ~ConfirmationMemory();
  ConfirmationMemory(const ConfirmationMemory&) = delete;
  ConfirmationMemory& operator=(const ConfirmationMemory&) = delete;

  // Registers the word at the first call. Null: no memory (a line is logged).
  const ibv_mr* Registration();

 private:
  ibv_pd* const domain_;
  alignas(ConfirmationWord::kBytes) unsigned char word_[ConfirmationWord::kBytes] = {};
  Mutex mutex_;
  ibv_mr* registration_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_CONFIRMATION_MEMORY_H_
