// How far apart two CPUs are at this moment: prints the median time that a cache line takes from
// one to the other (nanoseconds), and how much of the time went to somebody else (percent).
// A sample whose canaries are bad says nothing about what it measured.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "tests/bench/clock.h"

using viaduct::bench::Seconds;

namespace {

constexpr uint64_t kStop = ~uint64_t{0};
constexpr int kBatch = 50;

void Pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

struct alignas(128) Line {
  std::atomic<uint64_t> word{0};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    printf("Usage: %s [CPU [CPU [MILLISECONDS]]]\n", argv[0]);
    return 0;
  }
  const int here = argc > 1 ? atoi(argv[1]) : 0;
  const int there = argc > 2 ? atoi(argv[2]) : 1;
  const int milliseconds = argc > 3 ? atoi(argv[3]) : 20;
  static Line line;
  std::thread echo([there] {
    Pin(there);
    for (uint64_t next = 1;; next += 2) {
      uint64_t seen;
      do {
        seen = line.word.load(std::memory_order_acquire);
        if (seen == kStop) return;
      } while (seen != next);
      line.word.store(next + 1, std::memory_order_release);
    }
  });
  Pin(here);
  std::vector<double> batches;
  double total = 0;
  const double end = Seconds() + milliseconds / 1e3;
  uint64_t next = 1;
  double start = Seconds();
  do {
    for (int i = 0; i < kBatch; ++i, next += 2) {
      line.word.store(next, std::memory_order_release);
      while (line.word.load(std::memory_order_acquire) != next + 1) {
      }
    }
    const double now = Seconds();
    batches.push_back(now - start);
    total += now - start;
    start = now;
  } while (start < end);
  line.word.store(kStop, std::memory_order_release);
  echo.join();
  std::nth_element(batches.begin(), batches.begin() + batches.size() / 2, batches.end());
  const double median = batches[batches.size() / 2];
  // If some batches were quick, the mean is below the median: then nothing was lost.
  const double lost = std::max(0.0, 1 - median * static_cast<double>(batches.size()) / total);
  printf("%.1f %.1f\n", median / kBatch / 2 * 1e9, 100 * lost);
  return 0;
}
