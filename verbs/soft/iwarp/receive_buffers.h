// Buffers that sockets are read into, and that what is sent is copied to. A link holds one only
// while something in it is unread or unsent, so a thousand idle links need none.
#ifndef VIADUCT_VERBS_SOFT_IWARP_RECEIVE_BUFFERS_H_
#define VIADUCT_VERBS_SOFT_IWARP_RECEIVE_BUFFERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs::iwarp {

class ReceiveBuffers {
 public:
  static constexpr size_t kSize = 128 * 1024;

  ReceiveBuffers();
  ReceiveBuffers(const ReceiveBuffers&) = delete;
  ReceiveBuffers& operator=(const ReceiveBuffers&) = delete;

  // kSize bytes of unspecified content. Any thread.
  std::unique_ptr<uint8_t[]> Take();
  // The same, or null if there is no memory.
  std::unique_ptr<uint8_t[]> TryTake();
  void Give(std::unique_ptr<uint8_t[]> buffer);

 private:
  static constexpr size_t kKept = 4;

  SpinLock lock_;
  std::vector<std::unique_ptr<uint8_t[]>> free_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_RECEIVE_BUFFERS_H_
