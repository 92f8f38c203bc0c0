#include "tools/ping/options.h"

#include <getopt.h>

#include "gtest/gtest.h"

namespace viaduct::ping {
namespace {

enum class Kind : uint8_t { kLatency, kBandwidth };
enum class Way : uint8_t { kSend, kWrite };
enum class Look : uint8_t { kPoll, kSleep };
constexpr auto NamesOf(Kind) { return std::to_array({"latency", "bandwidth"}); }
constexpr auto NamesOf(Way) { return std::to_array({"send", "write"}); }
constexpr auto NamesOf(Look) { return std::to_array({"poll", "sleep"}); }

struct TestOptions : Settings {
  Parameters<Kind, Way, Look> parameters;
  std::string own;
};

struct Taken {
  bool go = false;
  int status = -1;
  TestOptions options;
  std::string out;
  std::string err;
};

Taken Take(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "x");
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  Taken taken;
  optind = 0;  // getopt_long starts over
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  taken.go = TakeCommandLine({"x", "1.2.3", "use it\n"}, {Text('s', "own", 3, &taken.options.own)},
                             100, static_cast<int>(arguments.size()), argv.data(), &taken.options,
                             &taken.status);
  taken.out = testing::internal::GetCapturedStdout();
  taken.err = testing::internal::GetCapturedStderr();
  return taken;
}

TEST(Options, AreTakenByLetterAndByName) {
  for (const std::vector<std::string>& line :
       {std::vector<std::string>{
            "-t",   "bandwidth", "-o", "write", "-b", "2K", "-c", "sleep", "-q",  "7",
            "-n",   "5",         "-w", "0",     "-d", "d",  "-s", "abc",   "-Hj", "--timeout=100",
            "there"},
        std::vector<std::string>{"there", "--test=bandwidth", "--operation", "write", "--bytes=2k",
                                 "--completion=sleep", "--depth=7", "--count=5", "--warmup=0",
                                 "--device=d", "--own=abc", "--histogram", "--json", "--timeout",
                                 "100"}}) {
    const Taken taken = Take(line);
    ASSERT_TRUE(taken.go) << taken.err;
    const TestOptions& options = taken.options;
    EXPECT_EQ(options.parameters.test, Kind::kBandwidth);
    EXPECT_EQ(options.parameters.operation, Way::kWrite);
    EXPECT_EQ(options.parameters.bytes, 2048u);
    EXPECT_EQ(options.parameters.completion, Look::kSleep);
    EXPECT_EQ(options.parameters.depth, 7u);
    EXPECT_EQ(options.count, 5u);
    EXPECT_EQ(options.warmup, 0u);
    EXPECT_EQ(options.device, "d");
    EXPECT_EQ(options.own, "abc");
    EXPECT_TRUE(options.histogram && options.json);
    EXPECT_EQ(options.timeout, 100);
    EXPECT_EQ(options.host, "there");
  }
}

TEST(Options, SizeDependsOnWhatIsMeasured) {
  EXPECT_EQ(Take({"a"}).options.parameters.bytes, 8u);
  EXPECT_EQ(Take({"-t", "bandwidth", "a"}).options.parameters.bytes, 65536u);
  EXPECT_EQ(Take({"-t", "bandwidth", "-b", "8", "a"}).options.parameters.bytes, 8u);
}

TEST(Options, OfAServer) {
  const Taken taken = Take({"-l1", "-T", "0.5"});
  ASSERT_TRUE(taken.go) << taken.err;
  EXPECT_TRUE(taken.options.listen && taken.options.once);
  EXPECT_EQ(taken.options.seconds, 0.5);
}

TEST(Options, HelpAndVersionEndAll) {
  for (const char* option : {"-h", "--help"}) {
    const Taken taken = Take({"-n", "3", option, "-n", "wrong"});
    EXPECT_FALSE(taken.go);
    EXPECT_EQ(taken.status, 0);
    EXPECT_EQ(taken.out, "use it\n");
  }
  for (const char* option : {"-V", "--version"}) EXPECT_EQ(Take({option}).out, "x 1.2.3\n");
}

TEST(Options, WhatIsWrongIsSaid) {
  const struct {
    std::vector<std::string> line;
    const char* said;
  } kWrong[] = {
      {{"-q", "1", "a"}, "x: --depth does not take '1'; see x --help\n"},
      {{"--timeout=101", "a"}, "x: --timeout does not take '101'; see x --help\n"},
      {{"-s", "four", "a"}, "x: --own does not take 'four'; see x --help\n"},
      {{"-s", "", "a"}, "x: --own does not take ''; see x --help\n"},
      {{"-c", "no", "a"}, "x: --completion does not take 'no'; see x --help\n"},
      {{"-T", "x", "a"}, "x: --seconds does not take 'x'; see x --help\n"},
      {{"-n1", "-T1", "a"}, "x: --count and --seconds exclude each other; see x --help\n"},
      {{"-o", "write", "-b0", "a"}, "x: a write has at least one byte; see x --help\n"},
      {{"-l", "a"}, "x: a server takes no host; see x --help\n"},
      {{}, "x: one host is wanted; see x --help\n"},
      {{"a", "b"}, "x: one host is wanted; see x --help\n"},
      {{"-O", "3", "a"}, "x: invalid option -- 'O'\nx: see x --help\n"},
      {{"--nonsense", "a"}, "x: unrecognized option '--nonsense'\nx: see x --help\n"}};
  for (const auto& wrong : kWrong) {
    const Taken taken = Take(wrong.line);
    EXPECT_FALSE(taken.go) << wrong.said;
    EXPECT_EQ(taken.status, 2) << wrong.said;
    EXPECT_EQ(taken.out, "");
    EXPECT_EQ(taken.err, wrong.said);
  }
}

}  // namespace
}  // namespace viaduct::ping
