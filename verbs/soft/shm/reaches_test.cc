// Which addresses are this host's, and at which of them a listener is reached, in a network
// namespace of the test's own.
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
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

// As on hosts that take over the address of another host, and so let any address be bound.
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

// One cannot find out then whose address it is, so nobody may conclude that there is no way.
TEST_F(ShmReaches, WithoutDescriptorsItIsAShortage) {
  const std::unique_ptr<Context> context = OpenForTest(kOurs.ToString());
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

// As over TCP, where a listener is at its own address and at loopback, and a connection to another
// address of the host does not reach it.
TEST_F(ShmReaches, AListenerIsAtItsAddressAndAtLoopback) {
  struct {
    const char* own;
    const char* asked;
    bool is_there;
  } const cases[] = {
      {"192.0.2.7", "192.0.2.7", true},  {"192.0.2.7", "127.0.0.1", true},
      {"192.0.2.7", "127.0.1.1", true},  {"192.0.2.7", "::1", true},
      {"127.0.0.1", "127.0.0.1", true},  {"127.0.0.1", "127.0.1.1", true},
      {"127.0.0.1", "192.0.2.7", false}, {"127.0.0.2", "127.0.0.2", true},
      {"127.0.0.2", "127.0.0.1", false}, {"127.0.0.2", "192.0.2.7", false},
  };
  const std::unique_ptr<Context> dialling = OpenForTest();
  for (const auto& [own, asked, is_there] : cases) {
    SCOPED_TRACE(absl::StrCat(own, " is asked for at ", asked));
    const std::unique_ptr<Context> context = OpenForTest(own);
    TestEnd from(*dialling), to(*context);
    const TestListener listener(*context, [&]() -> QueuePair& { return to.pair(); });
    const Address address = *Address::Parse(asked);
    QueuePair& pair = from.pair();
    ASSERT_TRUE(
        pair.Connect({.address = address, .port = listener.port(), .private_data = {}}).ok());
    while (from.connected + from.failed == 0) sched_yield();
    EXPECT_EQ(from.connected, is_there ? 1 : 0);
    if (!is_there) {
      EXPECT_EQ(from.outcome, ConnectOutcome::kNobody);
    }
  }
}

TEST_F(ShmReaches, TheDiallerHasAnAddressOfTheFamilyThatItDials) {
  struct Asked final : ListenerSink {
    void OnRequest(std::unique_ptr<IncomingConnection> request) override {
      address = request->peer_address();
      request->Reject({});
    }
    Address address;
  };
  const std::unique_ptr<Context> dialling = OpenForTest("::1"), context = OpenForTest();
  TestEnd from(*dialling);
  Asked asked;
  auto listener = context->Listen(0, &asked);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const Address address = *Address::Parse("127.0.0.1");
  ASSERT_TRUE(from.pair()
                  .Connect({.address = address, .port = (*listener)->port(), .private_data = {}})
                  .ok());
  from.Await(from.failed);
  EXPECT_EQ(from.outcome, ConnectOutcome::kRejected);
  EXPECT_EQ(asked.address, address);
}

}  // namespace
}  // namespace viaduct::verbs::shm
