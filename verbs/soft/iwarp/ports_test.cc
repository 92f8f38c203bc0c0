// Ports that run out, in a network namespace of the test's own.
#include <sys/socket.h>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/acceptor.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/testing_network.h"

namespace viaduct::verbs::iwarp {
namespace {

// The host is there, so nobody may conclude that the network cannot reach it.
TEST(IwarpPorts, NoneLeftIsAShortage) {
  if (!EnterOwnNetwork()) GTEST_SKIP() << "no network namespace of its own";
  TestEnd server, client;
  server.Listen();
  ASSERT_TRUE(SetNetwork("ipv4/ip_local_port_range", "61000 61000"));
  Fd taken(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage to;
  const socklen_t length = Address::V4(0x7f000001).ToSockaddr(server.listener->port(), &to);
  ASSERT_EQ(connect(taken.get(), reinterpret_cast<const sockaddr*>(&to), length), 0);
  client.Dial(server.listener->port());
  const Event event = client.sink.Next();
  EXPECT_EQ(event.kind, Event::Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kNoResources);
}

// Whoever asks for a free port wants it free on all of its addresses.
TEST(IwarpPorts, OneThatIsTakenOnTheSecondAddressIsNotFree) {
  if (!EnterOwnNetwork()) GTEST_SKIP() << "no network namespace of its own";
  ASSERT_TRUE(SetNetwork("ipv4/ip_local_port_range", "61000 61007"));
  const Address addresses[] = {*Address::Parse("127.0.0.1"), *Address::Parse("127.0.0.2")};
  const absl::StatusOr<Socket> taken = ListenOn(addresses[1], 0);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EventLoop& loop = **ControlThread::Get();
  // The kernel chooses among few ports.
  for (int i = 0; i < 40; ++i) {
    const auto acceptor = Acceptor::Open(loop, addresses, 0, {}, [](ReceivedRequest) {});
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    EXPECT_NE((*acceptor)->port(), LocalEnd(taken->get()).port);
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
