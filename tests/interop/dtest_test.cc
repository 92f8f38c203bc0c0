// Debian's dtest, unmodified: one connection, with each way of moving data.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "tests/interop/pair.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

constexpr uint16_t kPort = 15828;  // dtest's own, with no option for another

class Dtest : public testing::Test {
 protected:
  void SetUp() override { ChooseRoute(); }
};

void RunDtest(const std::string& options) {
  const std::string adapter = std::string("-P ") + kAdapter;
  RunPrograms({"/usr/bin/dtest", adapter + " -s " + options, adapter + " -h 127.0.0.1 " + options,
               "Server is waiting for client connection", "DAPL Test Complete. PASSED",
               "DAPL Test Complete. PASSED", "Could not connect to", kPort});
}

TEST_F(Dtest, SendsWritesReads) { RunDtest(""); }
TEST_F(Dtest, Polling) { RunDtest("-p"); }
TEST_F(Dtest, Notifier) { RunDtest("-c"); }
TEST_F(Dtest, WriteStreaming) { RunDtest("-w"); }
TEST_F(Dtest, WritePingPongWithDataCheck) { RunDtest("-b 64 -W -D"); }
TEST_F(Dtest, Unidirectional) { RunDtest("-u"); }
TEST_F(Dtest, LargeBuffer) { RunDtest("-b 1048576"); }
TEST_F(Dtest, WritePingPongAllSizes) {
  if (!IsLong()) GTEST_SKIP() << "a minute and more: tools/test --all";
  RunDtest("-W -a -b 65536");
}

}  // namespace
}  // namespace viaduct::tests
