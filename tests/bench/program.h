// The main() of a program that measures one interface.
#ifndef VIADUCT_TESTS_BENCH_PROGRAM_H_
#define VIADUCT_TESTS_BENCH_PROGRAM_H_

#include <stdio.h>

#include <cstdint>

#include "tests/bench/bandwidth.h"
#include "tests/bench/connection_rate.h"
#include "tests/bench/death.h"
#include "tests/bench/latency.h"
#include "tests/bench/options.h"
#include "tests/bench/side.h"
#include "tests/bench/two_processes.h"
#include "tests/bench/write_latency.h"

namespace viaduct::bench {

// The value that the parent prints.
template <typename Side>
double Measure(TwoProcesses& us, const Options& options) {
  SideOptions side_options;
  side_options.bytes = options.bytes;
  side_options.depth = options.depth;
  Side side(side_options);
  if (!us.parent()) us.mine(0) = FreePort();
  us.mine(1) = side.exposed().address;
  us.mine(2) = side.exposed().key;
  if (!us.parent()) side.Listen(static_cast<uint16_t>(us.mine(0)));
  us.Meet();
  const auto port = static_cast<uint16_t>(us.theirs(0));
  RemoteBuffer to;
  to.address = us.theirs(1);
  to.key = static_cast<uint32_t>(us.theirs(2));
  if (us.parent()) {
    side.Connect(port);
  } else {
    side.Accept();
  }
  if (options.test == Test::kLatency) PrepareReceives(side);
  if (options.test == Test::kBandwidth) PrepareStream(side);
  if (options.test == Test::kWriteLatency) PrepareWrites(side);
  if (options.test == Test::kDeath) side.PostReceive();
  us.Meet();
  double value = 0;
  switch (options.test) {
    case Test::kLatency:
      value = PingPongMicroseconds(side, us.parent(), options.bytes, options.iterations);
      break;
    case Test::kBandwidth:
      value = StreamGigabytes(side, us.parent(), options.bytes, options.iterations);
      break;
    case Test::kWriteLatency:
      value = WriteMicroseconds(side, us.parent(), options.bytes, to, options.iterations);
      break;
    case Test::kConnections:
      value = ConnectionsPerSecond(side, us.parent(), port, options.iterations);
      break;
    case Test::kDeath:
      return DeathMilliseconds(us, side);
  }
  us.Meet();
  return value;
}

template <typename Side>
int Main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  TwoProcesses us(options.cpus, options.seconds);
  const double value = Measure<Side>(us, options);
  if (us.parent()) printf("%.6g\n", value);
  return 0;
}

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_PROGRAM_H_
