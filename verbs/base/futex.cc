#include "verbs/base/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "verbs/base/cancellation.h"

namespace viaduct::verbs {
namespace {

// Some 100 years. Without any time-out the kernel would restart the call after an SA_RESTART
// handler, and the caller would never learn of the signal; with one the call returns EINTR.
constexpr Nanos kFarAway = 3'000'000'000 * kNanosPerSecond;

}  // namespace

FutexResult FutexWait(std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline) {
  static_assert(sizeof(word) == sizeof(uint32_t));
  const Nanos at = std::clamp<Nanos>(deadline.at(), 0, kFarAway);
  const timespec until = {static_cast<time_t>(at / kNanosPerSecond),
                          static_cast<long>(at % kNanosPerSecond)};
  const int saved = errno;
  FutexResult result = FutexResult::kWoken;
  // WAIT_BITSET takes an absolute time of CLOCK_MONOTONIC.
  if (SleepIn(SYS_futex, reinterpret_cast<long>(&word), FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG,
              expected, reinterpret_cast<long>(&until), 0,
              static_cast<long>(FUTEX_BITSET_MATCH_ANY)) != 0) {
    if (errno == ETIMEDOUT) result = FutexResult::kTimedOut;
    if (errno == EINTR) result = FutexResult::kInterrupted;
  }
  errno = saved;
  return result;
}

void FutexWake(std::atomic<uint32_t>& word, int waiters) {
  const int saved = errno;
  syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, waiters, nullptr, nullptr, 0);
  errno = saved;
}

ParkResult FutexParker::Park(Deadline deadline) {
  uint32_t seen = kEmpty;
  if (!state_.compare_exchange_strong(seen, kAsleep, std::memory_order_acq_rel)) {
    TakeToken();
    return ParkResult::kUnparked;
  }
  for (;;) {
    const FutexResult result = FutexWait(state_, kAsleep, deadline);
    if (state_.load(std::memory_order_acquire) == kToken) break;
    if (result == FutexResult::kWoken) continue;
    seen = kAsleep;
    if (!state_.compare_exchange_strong(seen, kEmpty, std::memory_order_acq_rel)) break;
    return result == FutexResult::kTimedOut ? ParkResult::kTimedOut : ParkResult::kInterrupted;
  }
  TakeToken();
  return ParkResult::kUnparked;
}

// Not a plain store: that could take effect after the caller's next reads, and remove a token that
// was given meanwhile.
void FutexParker::TakeToken() { state_.exchange(kEmpty, std::memory_order_acq_rel); }

void FutexParker::Unpark() {
  // At most one token is kept.
  if (state_.exchange(kToken, std::memory_order_acq_rel) == kAsleep) FutexWake(state_, 1);
}

}  // namespace viaduct::verbs
