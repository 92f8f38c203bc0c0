// Which addresses are this host's, in a network namespace of the test's own.
#include <arpa/inet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/base/no_descriptors.h"
#include "verbs/device.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/shm/wire.h"
#include "verbs/soft/testing_network.h"

namespace viaduct::verbs::shm {
namespace {

const Address kOurs = Address::V4(0xc0000207);
const Address kStrange = Address::V4(0xc0000208);

bool GiveLoopback(const Address& address) {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage storage;
  const socklen_t length = address.ToSockaddr(0, &storage);
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  std::memcpy(&request.ifr_addr, &storage, length);
  return ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
}

class ShmReaches : public testing::Test {
 protected:
  static void SetUpTestSuite() { own_network_ = EnterOwnNetwork(); }
  void SetUp() override {
    if (!own_network_) GTEST_SKIP() << "no network namespace of its own";
    ASSERT_TRUE(GiveLoopback(kOurs));
  }

  static inline bool own_network_ = false;
};

// As on hosts that take over the address of another one, which let everything be bound.
TEST_F(ShmReaches, WhatCanBeBoundNeedNotBeOurs) {
  const ShmWire wire(**ControlThread::Get(), Address::V4(0x7f000001));
  for (const char* anything : {"0", "1"}) {
    ASSERT_TRUE(SetNetwork("ipv4/ip_nonlocal_bind", anything));
    EXPECT_TRUE(wire.Reaches(Address::V4(0x7f000001))) << anything;
    EXPECT_TRUE(wire.Reaches(kOurs)) << anything;
    EXPECT_FALSE(wire.Reaches(kStrange)) << anything;
  }
  ASSERT_TRUE(SetNetwork("ipv4/ip_nonlocal_bind", "0"));
}

// Whose address it is cannot be asked then, so that nobody may say that there is no way.
TEST_F(ShmReaches, WithoutDescriptorsItIsAShortage) {
  const std::unique_ptr<Context> context = OpenForTest();
  const ShmWire wire(**ControlThread::Get(), Address::V4(0x7f000001));
  TestEnd from(*context), to(*context);
  const TestListener listener(*context, [&]() -> QueuePair& { return to.pair(); });
  QueuePair& pair = from.pair();
  const uint16_t port = listener.port();
  const auto dial = [&](const Address& address) {
    return pair.Connect({.address = address, .port = port, .private_data = {}});
  };
  for (const Address& address : {kOurs, kStrange}) {
    const NoDescriptors shortage;
    EXPECT_TRUE(wire.Reaches(address));
    EXPECT_TRUE(absl::IsResourceExhausted(dial(address)));
  }
  ASSERT_TRUE(dial(kStrange).ok());
  from.Await(from.failed);
  EXPECT_EQ(from.outcome, ConnectOutcome::kUnreachable);
  ASSERT_TRUE(dial(kOurs).ok());
  from.Await(from.connected);
}

}  // namespace
}  // namespace viaduct::verbs::shm
