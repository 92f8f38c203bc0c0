// Which way a connection goes, in a network namespace of the test's own.
#include <net/if.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/testing_network.h"

namespace viaduct::verbs::iwarp {
namespace {

// An address of this host that is not in the loopback network.
const Address kOther = Address::V4(0x0a090807);

bool AddOther() {
  Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo:1");
  sockaddr_storage address;
  const socklen_t length = kOther.ToSockaddr(0, &address);
  std::memcpy(&request.ifr_addr, &address, length);
  return ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
}

class IwarpRoutes : public testing::Test {
 protected:
  static void SetUpTestSuite() { own_network_ = EnterOwnNetwork() && AddOther(); }
  void SetUp() override {
    if (!own_network_) GTEST_SKIP() << "no network namespace of its own";
    end_ = std::make_unique<TestEnd>();
  }

  void Dial(const Address& address, uint16_t port) {
    ConnectOptions options;
    options.address = address;
    options.port = port;
    ASSERT_TRUE(end_->pair->Connect(options).ok());
  }

  ConnectOutcome NextFailure() {
    const Event event = end_->sink.Next();
    EXPECT_EQ(event.kind, Event::Kind::kFailed);
    return event.outcome;
  }

  static bool own_network_;
  std::unique_ptr<TestEnd> end_;
};

bool IwarpRoutes::own_network_ = false;

// Nobody elsewhere can answer a loopback address, so the kernel chooses another one.
TEST_F(IwarpRoutes, ALoopbackAddressCallsNobodyElsewhere) {
  const absl::StatusOr<Socket> listening = ListenOn(kOther, 0);
  ASSERT_TRUE(listening.ok()) << listening.status();
  const int fd = listening->get();
  Dial(kOther, LocalEnd(fd).port);
  pollfd look = {fd, POLLIN, 0};
  ASSERT_EQ(poll(&look, 1, 10'000), 1);
  const Fd peer(accept4(fd, nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(peer.valid());
  EXPECT_EQ(PeerEnd(peer.get()).address, kOther);
}

// A listener at 127.0.0.1 stands in only for other addresses of the loopback network.
TEST_F(IwarpRoutes, NobodyElsewhereIsNotSomebodyHere) {
  const TestListener listener;
  Dial(kOther, listener.port());
  EXPECT_EQ(NextFailure(), ConnectOutcome::kNobody);
}

// If TCP has no way to a host that another wire has heard, nobody listens there.
TEST_F(IwarpRoutes, NoWayToAHostThatWasHeard) {
  const Address elsewhere = Address::V4(0xcb007107);
  for (const bool heard : {false, true}) {
    SCOPED_TRACE(heard);
    {
      const LoopHold hold(end_->loop);
      Dial(elsewhere, 1);
      if (heard) static_cast<SoftQueuePair&>(*end_->pair).NotePeerHeard();
    }
    EXPECT_EQ(NextFailure(), heard ? ConnectOutcome::kNobody : ConnectOutcome::kUnreachable);
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
