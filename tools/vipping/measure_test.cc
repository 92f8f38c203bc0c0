#include "tools/vipping/measure.h"

#include <cstdio>
#include <future>
#include <random>
#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace viaduct::vipping {
namespace {

uint64_t g_told = 0;  // ns that writing to standard error has taken

ssize_t WriteSlowly(void*, const char*, size_t size) {
  const uint64_t begin = Now();
  while (Now() - begin < ping::kSecond / 10) {
  }
  g_told += Now() - begin;
  return static_cast<ssize_t>(size);
}

TEST(Measure, DoesNotTimeWhatItTells) {
  const Nic nic("nic0");
  Options options;
  options.once = true;
  options.timeout = 60;
  options.host = "localhost";
  options.service = std::to_string(std::random_device()());
  options.seconds = 1;
  std::future<void> server = std::async(std::launch::async, [&] { Serve(nic, options); });

  FILE* const error = stderr;
  stderr = fopencookie(nullptr, "w", {.write = WriteSlowly});
  ASSERT_NE(stderr, nullptr);
  std::setvbuf(stderr, nullptr, _IOLBF, 512);
  const Result result = Measure(nic, options);
  (void)std::fclose(std::exchange(stderr, error));
  server.get();

  EXPECT_GT(g_told, 0u);
  // Of each round trip half is added.
  const double timed = 2 * result.latencies.mean() * static_cast<double>(result.messages);
  EXPECT_LE(timed, static_cast<double>(result.nanoseconds - g_told));
}

}  // namespace
}  // namespace viaduct::vipping
