#include "dat/core/counts.h"

#include <atomic>
#include <thread>

#include "gtest/gtest.h"

namespace viaduct::core {
namespace {

using Dispatcher = Counts<DispatcherCount>;

uint64_t Shown(const Dispatcher& counts, DispatcherCount what) {
  return counts.Shown(counts.Read(), what);
}

TEST(Counts, BeginAnewWithWhatComesBehindTheReading) {
  Dispatcher counts;
  counts.Add(DispatcherCount::kWaits, 5);
  counts.Add(DispatcherCount::kSleeps, 2);
  const Dispatcher::Totals totals = counts.Read();
  counts.Add(DispatcherCount::kWaits);
  counts.BeginAnew(totals, DispatcherCount::kWaits);
  EXPECT_EQ(counts.Shown(totals, DispatcherCount::kWaits), 0u);
  EXPECT_EQ(Shown(counts, DispatcherCount::kWaits), 1u);
  EXPECT_EQ(Shown(counts, DispatcherCount::kSleeps), 2u);
}

// Readings that each begin anew add up to what another thread counts meanwhile.
TEST(Counts, NothingIsShownTwiceOrLost) {
  constexpr uint64_t kAll = 300'000;
  Dispatcher counts;
  std::atomic<bool> done{false};
  std::thread counter([&] {
    for (uint64_t i = 0; i < kAll; ++i) counts.Add(DispatcherCount::kDequeues);
    done = true;
  });
  uint64_t sum = 0;
  for (bool last = false; !last;) {
    last = done;
    const Dispatcher::Totals totals = counts.Read();
    sum += counts.Shown(totals, DispatcherCount::kDequeues);
    counts.BeginAnew(totals, DispatcherCount::kDequeues);
  }
  counter.join();
  EXPECT_EQ(sum, kAll);
}

}  // namespace
}  // namespace viaduct::core
