// The command line of the measuring programs.
#ifndef VIADUCT_TESTS_BENCH_OPTIONS_H_
#define VIADUCT_TESTS_BENCH_OPTIONS_H_

#include <cstdint>

#include "tests/bench/two_processes.h"

namespace viaduct::bench {

enum class Test { kLatency, kBandwidth, kWriteLatency, kConnections, kDeath };

struct Options {
  Test test = Test::kLatency;
  uint32_t bytes = 8;
  uint32_t depth = 64;
  uint64_t iterations = 0;  // round trips, messages or connections
  int seconds = 60;
  Cpus cpus;
};

// Answers --help, and ends the process when an argument is wrong.
Options ParseOptions(int argc, char** argv);

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_OPTIONS_H_
