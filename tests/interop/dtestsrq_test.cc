// Debian's dtestsrq, unmodified: many connections that share one queue of receives, and the same
// without sharing.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/interop/pair.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

constexpr uint16_t kPort = 45248;  // dtestsrq's own, with no option for another

class Dtestsrq : public testing::Test {
 protected:
  void SetUp() override { ChooseRoute(); }

  void Run(int connections, bool shared) {
    const std::string common = std::string("-P ") + kAdapter + " -b 1024 -c " +
                               std::to_string(connections) + " -S " + (shared ? "1" : "0");
    RunPrograms({"/usr/bin/dtestsrq", common + " -s", common + " -h 127.0.0.1",
                 "server ready on port", "SRQ Test Complete.", "SRQ Test Complete.", "", kPort});
  }
};

TEST_F(Dtestsrq, OneConnection) { Run(1, true); }
TEST_F(Dtestsrq, OneConnectionWithout) { Run(1, false); }
TEST_F(Dtestsrq, TenConnections) { Run(10, true); }
TEST_F(Dtestsrq, TenConnectionsWithout) { Run(10, false); }
TEST_F(Dtestsrq, HundredConnections) { Run(100, true); }
TEST_F(Dtestsrq, HundredConnectionsWithout) { Run(100, false); }

}  // namespace
}  // namespace viaduct::tests
