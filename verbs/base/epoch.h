// Grace periods for handle lookups: how an object is destroyed while other threads may just have
// found it.
//
// A thread that follows a shared pointer stands inside an EpochGuard while it uses the object. The
// destroyer unlinks the object first, then calls EpochSynchronize, then frees it. A guard costs two
// plain stores of a thread-local counter; the destroyer pays (asymmetric_fence.h).
//
// Inside a guard a thread must not wait for another thread, because a destroyer waits for it.
#ifndef VIADUCT_VERBS_BASE_EPOCH_H_
#define VIADUCT_VERBS_BASE_EPOCH_H_

#include <atomic>
#include <cstdint>

#include "verbs/base/asymmetric_fence.h"
#include "verbs/base/block.h"

namespace viaduct::verbs {

namespace internal {

// One per live thread that has ever entered a guard, on a cache line of its own; reused, never
// freed.
struct alignas(64) EpochRecord : OnBlocks {
  std::atomic<uint64_t> entries{0};  // written by its thread; odd: inside
  std::atomic<bool> taken{true};
  EpochRecord* next = nullptr;
};

extern thread_local constinit EpochRecord* epoch_record __attribute__((tls_model("initial-exec")));

EpochRecord* NewEpochRecord();

}  // namespace internal

// Guards nest: the outermost one counts. Each is a local variable of the thread that made it, so
// that the outermost one ends last. A thread's first guard takes memory: it may throw
// std::bad_alloc, and then the thread is not inside.
class EpochGuard {
 public:
  EpochGuard() {
    internal::EpochRecord* record = internal::epoch_record;
    if (record == nullptr) [[unlikely]]
      record = internal::NewEpochRecord();
    const uint64_t entries = record->entries.load(std::memory_order_relaxed);
    if (entries % 2 != 0) return;
    // Release: a destroyer that waits for one guard may see the entry of the next one instead.
    record->entries.store(entries + 1, std::memory_order_release);
    LightFence();
    outermost_ = record;
  }
  ~EpochGuard() {
    if (outermost_ == nullptr) return;
    outermost_->entries.store(outermost_->entries.load(std::memory_order_relaxed) + 1,
                              std::memory_order_release);
  }
  EpochGuard(const EpochGuard&) = delete;
  EpochGuard& operator=(const EpochGuard&) = delete;

 private:
  internal::EpochRecord* outermost_ = nullptr;  // null: inside another one
};

// Whether the calling thread is inside a guard. At the beginning of a call that no guarded code
// makes, true means that a signal has interrupted a call on the data path and that its handler
// makes this one.
inline bool InsideEpochGuard() {
  const internal::EpochRecord* const record = internal::epoch_record;
  return record != nullptr && record->entries.load(std::memory_order_relaxed) % 2 != 0;
}

// Returns when every other thread that was inside a guard at the call has left it. Threads that
// enter meanwhile are not waited for. A caller that is inside a guard does not wait for itself, but
// others do: two such callers would wait for each other, so a caller leaves its guards first.
void EpochSynchronize();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_EPOCH_H_
