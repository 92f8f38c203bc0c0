#include "tests/bench/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>

namespace viaduct::bench {
namespace {

struct TestName {
  const char* name;
  Test test;
  uint32_t bytes;
  uint32_t depth;
  uint64_t iterations;
};
constexpr TestName kTests[] = {
    {"latency", Test::kLatency, 8, 64, 200000},
    {"bandwidth", Test::kBandwidth, 1 << 20, 16, 2000},
    {"write", Test::kWriteLatency, 8, 64, 200000},
    {"connections", Test::kConnections, 8, 16, 200},
    {"death", Test::kDeath, 8, 16, 1},
};

constexpr char kHelp[] =
    "Usage: %s TEST [OPTION]...\n"
    "Measures between two processes, over the wire that VIADUCT_WIRE names, and prints one "
    "number.\n"
    "  latency       ping-pong, microseconds one way\n"
    "  bandwidth     stream, 10^9 bytes in a second\n"
    "  write         ping-pong by RDMA writes, microseconds one way\n"
    "  connections   made one after the other, in a second\n"
    "  death         from kill -9 of one process to the event in the other, milliseconds\n"
    "  --bytes=N       of a message (8; bandwidth: 1048576)\n"
    "  --depth=N       of the work queues (64; bandwidth and connections: 16)\n"
    "  --iterations=N  round trips (200000), messages (2000) or connections (200)\n"
    "  --seconds=N     gives up after that time (60)\n"
    "  --cpus=A,B      the CPUs of the two processes (0,1); -1 leaves one free\n";

[[noreturn]] void Usage(const char* program, int status) {
  fprintf(status == 0 ? stdout : stderr, kHelp, program);
  exit(status);
}

unsigned long Number(const char* program, const char* text) {
  char* end;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end != '\0' || end == text || value == 0) Usage(program, 2);
  return value;
}

const TestName* FindTest(const std::string& name) {
  for (const TestName& test : kTests) {
    if (name == test.name) return &test;
  }
  return nullptr;
}

}  // namespace

Options ParseOptions(int argc, char** argv) {
  static const option kOptions[] = {{"bytes", required_argument, nullptr, 'b'},
                                    {"depth", required_argument, nullptr, 'd'},
                                    {"iterations", required_argument, nullptr, 'i'},
                                    {"seconds", required_argument, nullptr, 's'},
                                    {"cpus", required_argument, nullptr, 'c'},
                                    {"help", no_argument, nullptr, 'h'},
                                    {nullptr, 0, nullptr, 0}};
  const TestName* test = argc > 1 ? FindTest(argv[1]) : nullptr;
  Options options;
  if (test != nullptr) {
    options.test = test->test;
    options.bytes = test->bytes;
    options.depth = test->depth;
    options.iterations = test->iterations;
  }
  int c;
  while ((c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1) {
    switch (c) {
      case 'b':
        options.bytes = static_cast<uint32_t>(Number(argv[0], optarg));
        break;
      case 'd':
        options.depth = static_cast<uint32_t>(Number(argv[0], optarg));
        break;
      case 'i':
        options.iterations = Number(argv[0], optarg);
        break;
      case 's':
        options.seconds = static_cast<int>(Number(argv[0], optarg));
        break;
      case 'c':
        if (sscanf(optarg, "%d,%d", &options.cpus.child, &options.cpus.parent) != 2) {
          Usage(argv[0], 2);
        }
        break;
      default:
        Usage(argv[0], c == 'h' ? 0 : 2);
    }
  }
  if (test == nullptr || optind != argc - 1) Usage(argv[0], 2);
  return options;
}

}  // namespace viaduct::bench
