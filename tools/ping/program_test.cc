#include "tools/ping/program.h"

#include <cstdio>

#include "gtest/gtest.h"

namespace viaduct::ping {
namespace {

TEST(Run, SaysWhatWorkSaysOrWhyNot) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(ping::Run("x", [] { return std::string("100 %\n"); }), 0);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "100 %\n");
  testing::internal::CaptureStderr();
  EXPECT_EQ(ping::Run("x", []() -> std::string { throw Failure("no memory"); }), 1);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "x: no memory\n");
}

TEST(Run, SaysThatTheOutputCannotBeWritten) {
  for (const size_t size : {size_t{1}, size_t{1000000}}) {
    EXPECT_EXIT(
        {
          if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(2);
          std::_Exit(ping::Run("x", [=] { return std::string(size, '.'); }));
        },
        testing::ExitedWithCode(1), "x: standard output cannot be written");
  }
}

TEST(Patience, EndsBetweenTwoReadingsOfTheClock) {
  Patience patience(0);
  // Nothing can fail before the second reading of the clock: the first one starts the time.
  for (int i = 0; i < 65536; ++i) patience.Look(7);
  EXPECT_THROW(
      {
        for (int i = 0; i < 65536; ++i) patience.Look(7);
      },
      Failure);
}

TEST(Patience, BeginsAnewWithWhateverComes) {
  Patience patience(0);
  uint64_t come = 0;
  for (int i = 0; i < 10 * 65536; ++i) patience.Look(come += i % 65536 == 0);
  EXPECT_THROW(
      {
        for (int i = 0; i < 2 * 65536; ++i) patience.Look(come);
      },
      Failure);
}

TEST(Stopwatch, OfMessages) {
  const Stopwatch watch(3, 0);
  EXPECT_FALSE(watch.Over(2));
  EXPECT_FALSE(watch.Over(2, watch.begin() + 1000 * kSecond));
  EXPECT_TRUE(watch.Over(3));
}

TEST(Stopwatch, OfSeconds) {
  const Stopwatch watch(0, 0.5);
  EXPECT_FALSE(watch.Over(UINT64_MAX, watch.begin() + kSecond / 2 - 1));
  EXPECT_TRUE(watch.Over(0, watch.begin() + kSecond / 2));
  const Stopwatch at_once(0, 1e-9);
  while (!at_once.Over(0)) {
  }
}

}  // namespace
}  // namespace viaduct::ping
