// Debian's dtestcm, unmodified: connections in bursts.
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/interop/pair.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

class Dtestcm : public testing::Test {
 protected:
  void SetUp() override { ChooseRoute(); }
};

// `count` connections, `burst` of them at a time.
void RunDtestcm(const std::string& options) {
  const int count = IsLong() ? 1000 : 100, burst = IsLong() ? 100 : 10;
  const std::string common = std::string("-P ") + kAdapter + " -c " + std::to_string(count) +
                             " -b " + std::to_string(burst) + " -p " + std::to_string(Port(0)) +
                             " " + options;
  const std::string all = "ALL " + std::to_string(count) + " CONNECTED on ";
  RunPrograms({"/usr/bin/dtestcm", common + " -s", common + " -h 127.0.0.1", "Server ready on port",
               all + "Server!", all + "Client!"});
}

TEST_F(Dtestcm, PollsForRequests) { RunDtestcm(""); }
TEST_F(Dtestcm, WaitsForRequests) { RunDtestcm("-w"); }
TEST_F(Dtestcm, AServicePointForEachOfABurst) { RunDtestcm("-m"); }
TEST_F(Dtestcm, AServicePointForEachAndWaits) { RunDtestcm("-m -w"); }

}  // namespace
}  // namespace viaduct::tests
