// Posting and polling up to 4 KiB makes no system call and allocates nothing.
//
// Messages go in batches, and each side must have one batch without any of these. A path that makes
// them now and then would never have such a batch. Single ones are legitimate: a peer that was
// asleep is woken by a system call, and a peer that the machine does not let run is put to sleep by
// its own control thread; and a queue grows once when it holds more events than ever before.
#ifndef VIADUCT_TESTS_HOTPATH_QUIET_TESTS_H_
#define VIADUCT_TESTS_HOTPATH_QUIET_TESTS_H_

#include <gtest/gtest.h>

#include <functional>

#include "tests/bench/latency.h"
#include "tests/bench/write_latency.h"
#include "tests/hotpath/allocations.h"
#include "tests/hotpath/pair_of_sides.h"
#include "tests/hotpath/system_calls.h"

namespace viaduct::hotpath {

// Enough messages to go round every ring several times.
inline constexpr uint64_t kRoundsInBatch = 400;
inline constexpr int kMaxBatches = 1000;  // on a busy machine

inline void ExpectQuiet(Peer& peer, const std::function<void()>& batch) {
  SystemCallCounter system_calls;
  if (!system_calls.supported()) GTEST_SKIP() << "no syscall user dispatch in this kernel";
  if (!CountsAllocations()) GTEST_SKIP() << "the sanitizer's malloc is in place";
  batch();  // warm
  bool clean = false, both = false;
  int calls = 0, allocations = 0;
  for (int i = 0; i < kMaxBatches && !both; ++i) {
    StartCountingAllocations();
    system_calls.Start();
    batch();
    calls = system_calls.Stop();
    allocations = StopCountingAllocations();
    clean = clean || (calls == 0 && allocations == 0);
    both = Exchange(peer, clean) && clean;
  }
  EXPECT_TRUE(clean) << "in the last batch " << calls << ' ' << SystemCallCounter::Calls() << "; "
                     << allocations << " allocations";
}

template <typename Side>
class QuietTest : public ::testing::Test {
 protected:
  void PingPongs(uint32_t bytes) {
    bench::SideOptions options;
    options.bytes = bytes;
    RunConnected<Side>(options, [bytes](Side& side, Peer& peer, bool active) {
      bench::PrepareReceives(side);
      Exchange(peer, true);
      ExpectQuiet(peer, [&] { bench::PingPong(side, active, bytes, kRoundsInBatch); });
    });
  }
};
TYPED_TEST_SUITE_P(QuietTest);

TYPED_TEST_P(QuietTest, Sends8Bytes) { this->PingPongs(8); }
TYPED_TEST_P(QuietTest, Sends256Bytes) { this->PingPongs(256); }
TYPED_TEST_P(QuietTest, Sends1KiB) { this->PingPongs(1024); }
TYPED_TEST_P(QuietTest, Sends4KiB) { this->PingPongs(4096); }

TYPED_TEST_P(QuietTest, Writes8Bytes) {
  RunConnected<TypeParam>({}, [](TypeParam& side, Peer& peer, bool active) {
    bench::PrepareWrites(side);
    const bench::RemoteBuffer to = Exchange(peer, side.exposed());
    uint64_t done = 0;
    ExpectQuiet(peer, [&] {
      bench::WritePingPong(side, active, 8, to, done, kRoundsInBatch);
      done += kRoundsInBatch;
    });
  });
}

TYPED_TEST_P(QuietTest, PollsNothing) {
  RunConnected<TypeParam>({}, [](TypeParam& side, Peer& peer, bool) {
    side.PostReceive();
    Exchange(peer, true);
    ExpectQuiet(peer, [&] {
      for (uint64_t i = 0; i < kRoundsInBatch; ++i) side.Poll();
    });
  });
}

REGISTER_TYPED_TEST_SUITE_P(QuietTest, Sends8Bytes, Sends256Bytes, Sends1KiB, Sends4KiB,
                            Writes8Bytes, PollsNothing);

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_QUIET_TESTS_H_
