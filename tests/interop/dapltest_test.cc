// Debian's dapltest, unmodified.
#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/interop/pair.h"
#include "tests/interop/program.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

constexpr char kProgram[] = "/usr/bin/dapltest";

std::vector<std::string> Dapltest(const std::string& arguments) {
  return Words(std::string(kProgram) + " " + arguments + " -D " + kAdapter);
}

// A server for the length of a test, which a client ends with the test "quit".
class Served : public testing::Test {
 protected:
  void SetUp() override {
    ChooseRoute();
    const std::string why_not = WhyNotHere(kProgram);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
    server_.emplace(Dapltest("-T S" + Port()));
    ASSERT_TRUE(server_->AwaitText("Service Point Ready")) << server_->output();
  }
  void TearDown() override {
    if (!server_) return;
    Program quit(Dapltest("-T Q -s 127.0.0.1" + Port()));
    EXPECT_EQ(quit.Finish(), 0) << quit.output();
    ExpectNoComplaint(quit.output());
    EXPECT_EQ(server_->Finish(), 0) << server_->output();
    EXPECT_NE(server_->output().find("Exiting."), std::string::npos) << server_->output();
    ExpectNoComplaint(server_->output());
  }

  static std::string Port() { return " -n " + std::to_string(tests::Port(0)); }

 private:
  std::optional<Program> server_;
};

class Transactions : public Served {
 protected:
  // The options of the test and its operations, which come last on the command line.
  void RunOperations(const std::string& options, const std::string& operations) {
    const int iterations = IsLong() ? 10000 : 100;
    Program client(Words(std::string(kProgram) + " -T T -s 127.0.0.1 -D " + kAdapter + Port() +
                         " -i " + std::to_string(iterations) + " " + options + " " + operations));
    EXPECT_EQ(client.Finish(600), 0) << client.output();
    EXPECT_NE(client.output().find("End of Work -- Client Exiting"), std::string::npos)
        << client.output();
    // dapltest has no figures for a run shorter than one tick of its clock.
    EXPECT_TRUE(client.output().find("Total WQE") != std::string::npos ||
                client.output().find("Test completed successfully, but cannot calculate stats") !=
                    std::string::npos)
        << client.output();
    ExpectNoComplaint(client.output());
  }
};

constexpr char kSend[] = "client SR 256 server SR 256";
constexpr char kWrite[] = "client SR 256 server RW 4096 server SR 256";
constexpr char kRead[] = "client SR 256 server RR 4096 server SR 256";
constexpr char kMixed[] =
    "client SR 256 server RW 4096 server SR 256 client SR 256 server RW 4096 server SR 256 "
    "client SR 4096 server SR 256";

// The six lines of dapltest's own regression list.
TEST_F(Transactions, Sends) { RunOperations("-t 1 -w 1", kSend); }
TEST_F(Transactions, Writes) { RunOperations("-t 1 -w 1", kWrite); }
TEST_F(Transactions, Reads) { RunOperations("-t 1 -w 1", kRead); }
TEST_F(Transactions, Mixed) { RunOperations("-t 1 -w 1", kMixed); }
TEST_F(Transactions, MixedOnEightEndpoints) { RunOperations("-t 1 -w 8", kMixed); }
TEST_F(Transactions, MixedOnEightEndpointsOfFourThreads) { RunOperations("-t 4 -w 8", kMixed); }

TEST_F(Transactions, Validated) { RunOperations("-V -t 1 -w 1", kWrite); }
TEST_F(Transactions, Polling) { RunOperations("-P -t 1 -w 1", kMixed); }
TEST_F(Transactions, ReservedServicePoints) {
  if (!IsPlugin()) GTEST_SKIP() << "dapltest frees a service point that uDAPL says is gone";
  RunOperations("-r -t 1 -w 8", kMixed);
}
TEST_F(Transactions, ReapedWithTheReceive) {
  RunOperations("-t 1 -w 1", "client SR 1024 3 -f server SR 2048 1 -f");
}

class Performance : public Served {
 protected:
  void RunMode(const std::string& mode, const std::string& operation) {
    const int iterations = IsLong() ? 10000 : 500;
    Program client(Words(std::string(kProgram) + " -T P -s 127.0.0.1 -D " + kAdapter + Port() +
                         " -m " + mode + " -i " + std::to_string(iterations) + " -p 16 " +
                         operation));
    EXPECT_EQ(client.Finish(600), 0) << client.output();
    EXPECT_NE(client.output().find("raw: " + operation.substr(0, 2)), std::string::npos)
        << client.output();
    ExpectNoComplaint(client.output());
  }
};

TEST_F(Performance, WritesBlocking) { RunMode("b", "RW 4096 2"); }
TEST_F(Performance, WritesPolling) { RunMode("p", "RW 4096 2"); }
TEST_F(Performance, ReadsBlocking) { RunMode("b", "RR 4096 2"); }
TEST_F(Performance, ReadsPolling) { RunMode("p", "RR 4096 2"); }

int Count(const std::string& text, const std::string& piece) {
  int count = 0;
  for (size_t at = 0; (at = text.find(piece, at)) != std::string::npos; at += piece.size()) ++count;
  return count;
}

// Tests without a server.
class Alone : public testing::Test {
 protected:
  void SetUp() override {
    ChooseRoute();
    const std::string why_not = WhyNotHere(kProgram);
    if (!why_not.empty()) GTEST_SKIP() << why_not;
  }
  // Returns what it has printed.
  std::string Run(const std::string& test, const std::vector<std::string>& allowed = {}) {
    Program program(Dapltest(test));
    EXPECT_EQ(program.Finish(600), 0) << program.output();
    ExpectNoComplaint(program.output(), allowed);
    return program.output();
  }
  // Runs the test of one feature, which has `cases` cases; all must pass.
  void RunFeature(const std::string& feature, int cases,
                  const std::vector<std::string>& allowed = {}) {
    const std::string output =
        Run("-T F -f " + feature + " -s 127.0.0.1 -n " + std::to_string(Port(0)), allowed);
    EXPECT_EQ(Count(output, "Result: PASS"), cases) << output;
    EXPECT_EQ(Count(output, "Result: FAIL"), 0) << output;
  }
};

TEST_F(Alone, HardwareConnections) {
  RunFeature("hwconn", 4, {"The problem for this case is that once the hca is closed,"});
}
TEST_F(Alone, ConnectionManagement) { RunFeature("connmgt", 2); }
TEST_F(Alone, Endpoint) { RunFeature("endpoint", 3); }
TEST_F(Alone, ProtectionZone) { RunFeature("pz", 3); }
// dapltest expects DAT_LENGTH_ERROR for a region of no bytes; dat_lmr_create has no such error.
TEST_F(Alone, Memory) {
  RunFeature("mem", 5,
             {"DAT_GET_TYPE(rc) == expect failed in file test/dapl_fft_mem.c, line 88",
              "Error = -2147090393, DAT_INVALID_PARAMETER DAT_INVALID_ARG3"});
}
TEST_F(Alone, Queries) {
  if (IsPlugin()) GTEST_SKIP() << "Debian's libdat2 reads through a CNO handle that is none";
  RunFeature("queryinfo", 17);
}
// This test posts receives until there is no room.
TEST_F(Alone, Limits) {
  Run(IsLong() ? "-T L -m 1000 -w 16" : "-T L -m 100 -w 8",
      {"dat_ep_post_recv fails: DAT_INSUFFICIENT_RESOURCES DAT_RESOURCE_TEP"});
}

}  // namespace
}  // namespace viaduct::tests
