#include "verbs/soft/iwarp/receive_buffers.h"

#include <new>
#include <utility>

namespace viaduct::verbs::iwarp {

ReceiveBuffers::ReceiveBuffers() { free_.reserve(kKept); }

std::unique_ptr<uint8_t[]> ReceiveBuffers::Take() {
  std::unique_ptr<uint8_t[]> buffer = TryTake();
  if (buffer == nullptr) throw std::bad_alloc();
  return buffer;
}

std::unique_ptr<uint8_t[]> ReceiveBuffers::TryTake() {
  {
    SpinLockHolder hold(&lock_);
    if (!free_.empty()) {
      std::unique_ptr<uint8_t[]> buffer = std::move(free_.back());
      free_.pop_back();
      return buffer;
    }
  }
  return std::unique_ptr<uint8_t[]>(new (std::nothrow) uint8_t[kSize]);
}

void ReceiveBuffers::Give(std::unique_ptr<uint8_t[]> buffer) {
  SpinLockHolder hold(&lock_);
  if (free_.size() < kKept) free_.push_back(std::move(buffer));
}

}  // namespace viaduct::verbs::iwarp
