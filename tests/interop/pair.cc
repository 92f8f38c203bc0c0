#include "tests/interop/pair.h"

#include <cstdlib>
#include <optional>
#include <sstream>

#include "gtest/gtest.h"
#include "tests/conformance/harness/port_turn.h"
#include "tests/interop/program.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

// Words that programs print when something went wrong; their exit status is 0 all the same.
constexpr const char* kComplaints[] = {
    "rror",
    "ERROR",
    "FAILED",
    "failed in file",
    "fails:",
    "REJECTED",
    "nexpected",
    "Warning",
    "bogus",
    "problem",
    "mismatch",
    "BROKEN",
    "TIMED_OUT",
    "UNREACHABLE",
    "no version information",
    "symbol lookup",
    "undefined symbol",
    "DAT_ABORT",
};

constexpr int kSeconds = 240;
constexpr int kAttempts = 100;

bool Printed(const std::string& output, const std::string& text) {
  return !text.empty() && output.find(text) != std::string::npos;
}

std::vector<std::string> Command(const std::string& program, const std::string& arguments) {
  std::vector<std::string> words = Words(arguments);
  words.insert(words.begin(), program);
  return words;
}

// Runs the client, again as long as it comes too early, and returns its exit status.
int RunClient(const PairOfPrograms& pair, std::string* printed) {
  int status = -1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Program client(Command(pair.program, pair.client));
    status = client.Finish(kSeconds);
    *printed = client.output();
    if (!Printed(*printed, pair.too_early)) break;
  }
  return status;
}

}  // namespace

std::vector<std::string> Words(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

void ExpectNoComplaint(const std::string& output, const std::vector<std::string>& allowed) {
  std::string text = output;
  for (const std::string& piece : allowed) {
    for (size_t at; (at = text.find(piece)) != std::string::npos;) text.erase(at, piece.size());
  }
  for (const char* complaint : kComplaints) {
    EXPECT_EQ(text.find(complaint), std::string::npos) << complaint << " in:\n" << output;
  }
}

bool IsLong() { return getenv("VIADUCT_LONG") != nullptr; }

void RunPrograms(const PairOfPrograms& pair) {
  const std::string why_not = WhyNotHere(pair.program);
  if (!why_not.empty()) GTEST_SKIP() << why_not;
  std::optional<PortTurn> turn;
  if (pair.fixed_port != 0) turn.emplace(pair.fixed_port);
  Program server(Command(pair.program, pair.server));
  ASSERT_TRUE(server.AwaitText(pair.ready)) << server.output();
  std::string printed;
  EXPECT_EQ(RunClient(pair, &printed), 0) << printed;
  EXPECT_EQ(server.Finish(kSeconds), 0) << server.output();
  EXPECT_TRUE(Printed(printed, pair.client_success)) << printed;
  EXPECT_TRUE(Printed(server.output(), pair.server_success)) << server.output();
  ExpectNoComplaint(printed);
  ExpectNoComplaint(server.output());
}

}  // namespace viaduct::tests
