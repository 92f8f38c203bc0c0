// Debian's dtestx, unmodified: the extensions of InfiniBand in uDAPL 2.0.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/interop/pair.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

constexpr uint16_t kPort = 15828;  // the same as dtest's
constexpr char kSuccess[] = "IB extension test - immed/atomic test PASSED";

class Dtestx : public testing::Test {
 protected:
  void SetUp() override { ChooseRoute(); }

  void Run(const std::string& options) {
    const std::string common = std::string("-P ") + kAdapter + " " + options;
    RunPrograms({"/usr/bin/dtestx", common + " -s", common + " -h 127.0.0.1",
                 "Server - Client: waiting to snd addr", kSuccess, kSuccess, "Couldn't connect to",
                 kPort});
  }
};

TEST_F(Dtestx, ImmediateDataAndAtomics) { Run(""); }
TEST_F(Dtestx, Counters) { Run("-p"); }

}  // namespace
}  // namespace viaduct::tests
