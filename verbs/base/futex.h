// Sleeping on a word of this process, and a parker made of it.
#ifndef VIADUCT_VERBS_BASE_FUTEX_H_
#define VIADUCT_VERBS_BASE_FUTEX_H_

#include <atomic>
#include <cstdint>

#include "verbs/base/clock.h"
#include "verbs/base/executor.h"

namespace viaduct::verbs {

enum class FutexResult { kWoken, kTimedOut, kInterrupted };

// Sleeps while `word` holds `expected`, until a wake-up or `deadline` of CLOCK_MONOTONIC. kWoken
// may be spurious. A signal handler ends the sleep even if it was installed with SA_RESTART.
// Thread cancellation strikes as cancellation.h says.
FutexResult FutexWait(std::atomic<uint32_t>& word, uint32_t expected, Deadline deadline);
void FutexWake(std::atomic<uint32_t>& word, int waiters);

// The parker of real threads; its deadlines are of CLOCK_MONOTONIC.
class FutexParker final : public Parker {
 public:
  ParkResult Park(Deadline deadline) override;
  void Unpark() override;

 private:
  void TakeToken();

  enum : uint32_t { kEmpty, kToken, kAsleep };
  std::atomic<uint32_t> state_{kEmpty};
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_FUTEX_H_
