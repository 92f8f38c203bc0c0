#include "verbs/soft/wake_time.h"

#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "verbs/base/futex.h"
#include "verbs/base/signals.h"

namespace viaduct::verbs {
namespace {

constexpr int kRounds = 9;
constexpr Nanos kShortest = 5'000;
constexpr Nanos kLongest = 100'000;
constexpr Nanos kGiveUp = 20'000'000;  // a machine this busy tells nothing

// Two threads hand a token to and fro; each hand-over is one wake-up.
struct Exchange {
  FutexParker to_helper;
  FutexParker to_caller;
  std::atomic<bool> over{false};
};

// Several tokens that nobody has taken yet count as one, so a flag marks the end, not their number.
void* Echo(void* argument) {
  auto& exchange = *static_cast<Exchange*>(argument);
  for (;;) {
    (void)exchange.to_helper.Park(Deadline::Infinite());
    if (exchange.over.load(std::memory_order_acquire)) return nullptr;
    exchange.to_caller.Unpark();
  }
}

Nanos Measure(const Clock& clock) {
  Exchange exchange;
  pthread_t helper;
  {
    const SignalsBlocked for_the_helper;
    if (pthread_create(&helper, nullptr, Echo, &exchange) != 0) return kLongest;
  }
  std::array<Nanos, kRounds> one_way;
  for (Nanos& sample : one_way) {
    const Nanos start = clock.Now();
    exchange.to_helper.Unpark();
    while (exchange.to_caller.Park(Deadline::At(start + kGiveUp)) == ParkResult::kInterrupted) {
    }
    sample = (clock.Now() - start) / 2;
  }
  exchange.over.store(true, std::memory_order_release);
  exchange.to_helper.Unpark();
  pthread_join(helper, nullptr);
  std::sort(one_way.begin(), one_way.end());
  return std::clamp(one_way[kRounds / 2], kShortest, kLongest);
}

}  // namespace

Nanos WakeTime(const Clock& clock) {
  // Not a lazily initialized static: a child forked during that would wait for it for ever.
  static constinit std::atomic<Nanos> measured{0};
  Nanos time = measured.load(std::memory_order_relaxed);
  if (time == 0) measured.store(time = Measure(clock), std::memory_order_relaxed);
  return time;
}

}  // namespace viaduct::verbs
