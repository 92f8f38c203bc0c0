#include "tests/conformance/harness/harness.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/port_turn.h"
#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {
namespace {

TEST(Harness, PairExchangesStepsAndValues) {
  RunPair(
      [](Peer& peer) {
        peer.Tell("ready");
        EXPECT_EQ(peer.Receive<uint64_t>(), 0x123456789abcdefu);
        peer.Tell("done");
      },
      [](Peer& peer) {
        peer.Await("ready");
        peer.Send(uint64_t{0x123456789abcdef});
        peer.Await("done");
      });
}

TEST(Harness, BothSidesAreOtherProcesses) {
  const pid_t parent = getpid();
  auto body = [parent](Peer& peer) {
    peer.Send(getpid());
    EXPECT_EQ(peer.Receive<pid_t>(), peer.pid());
    EXPECT_NE(getpid(), parent);
    EXPECT_NE(peer.pid(), parent);
  };
  RunPair(body, body);
}

TEST(Harness, TurnsAtAPort) {
  void* const shared =
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto* const over = new (shared) std::atomic<bool>(false);
  RunPair(
      [over](Peer& peer) {
        const PortTurn turn(7);
        const PortTurn another(8);
        peer.Tell("mine");
        peer.Await("I ask");
        AwaitAsleep(peer.pid(), peer.pid());
        *over = true;
      },
      [over](Peer& peer) {
        peer.Await("mine");
        peer.Tell("I ask");
        const PortTurn turn(7);
        EXPECT_TRUE(*over);
      });
  munmap(shared, 4096);
}

// Failing tests, run by the ones below in a process of their own. tools/count_tests.py leaves out a
// suite that is disabled as a whole.
TEST(DISABLED_Failing, Expectation) {
  RunAlone([] { EXPECT_EQ(1, 2) << "on purpose"; });
}
TEST(DISABLED_Failing, Death) {
  RunAlone([] { kill(getpid(), SIGKILL); });
}
TEST(DISABLED_Failing, Slowness) {
  RunAlone([] { pause(); }, 1);
}
TEST(DISABLED_Failing, SlownessOfOneSide) {
  RunPair([](Peer&) {}, [](Peer&) { pause(); }, {.seconds = 1});
}
TEST(DISABLED_Failing, WrongStep) {
  RunPair([](Peer& peer) { peer.Tell("one"); }, [](Peer& peer) { peer.Await("two"); });
}
TEST(DISABLED_Failing, EndOfTheOtherSide) {
  RunPair([](Peer&) {}, [](Peer& peer) { peer.Await("never"); });
}
TEST(DISABLED_Failing, Skip) {
  RunAlone([] { GTEST_SKIP() << "on purpose"; });
}

struct Outcome {
  int status = -1;
  std::string output;
};

Outcome RunSelf(const std::string& test) {
  char self[4096] = {};
  EXPECT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
  const std::string command = std::string(self) +
                              " --gtest_also_run_disabled_tests --gtest_output= --gtest_filter="
                              "DISABLED_Failing." +
                              test + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[1024];
  while (size_t got = fread(buffer, 1, sizeof buffer, pipe)) outcome.output.append(buffer, got);
  outcome.status = WEXITSTATUS(pclose(pipe));
  return outcome;
}

void ExpectFailure(const std::string& test, const std::string& message) {
  Outcome outcome = RunSelf(test);
  EXPECT_EQ(outcome.status, 1) << outcome.output;
  EXPECT_NE(outcome.output.find(message), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("1 FAILED TEST"), std::string::npos) << outcome.output;
}

TEST(Harness, FailureInAChildFailsTheTest) {
  ExpectFailure("Expectation", "on purpose");
  ExpectFailure("Expectation", "the test's process failed, see above");
}
TEST(Harness, DeathOfAChildFailsTheTest) { ExpectFailure("Death", "died of signal 9"); }
TEST(Harness, SlowChildIsKilled) { ExpectFailure("Slowness", "did not end in time"); }
TEST(Harness, SlowSideIsKilledAndTheOtherOneIsNotBlamed) {
  ExpectFailure("SlownessOfOneSide", "the client did not end in time");
  EXPECT_EQ(RunSelf("SlownessOfOneSide").output.find("the server did not end"), std::string::npos);
}
TEST(Harness, WrongStepFails) { ExpectFailure("WrongStep", "\"one\" instead of \"two\""); }
TEST(Harness, EndOfTheOtherSideEndsTheBody) {
  ExpectFailure("EndOfTheOtherSide", "the other side has ended before \"never\"");
}
TEST(Harness, SkipInAChildSkipsTheTest) {
  Outcome outcome = RunSelf("Skip");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("1 SKIPPED TEST") != std::string::npos ||
                outcome.output.find("[  SKIPPED ] 1 test") != std::string::npos,
            false)
      << outcome.output;
}

TEST(Harness, KilledSideIsFineWhereExpected) {
  PairOptions options;
  options.server_is_killed = true;
  RunPair([](Peer&) { pause(); },
          [](Peer& peer) {
            kill(peer.pid(), SIGKILL);
            peer.AwaitEnd();
          },
          options);
}

TEST(Harness, WireReachesTheLibrary) {
  ASSERT_EQ(Wire(), "shm");
  RunAlone([] { EXPECT_STREQ(getenv("VIADUCT_WIRE"), "shm"); });
}

TEST(Harness, PortsAreDistinct) { EXPECT_EQ(Port(199) - Port(0), 199); }

}  // namespace
}  // namespace viaduct::tests
