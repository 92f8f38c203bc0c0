#include "verbs/soft/iwarp/tcp.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

TEST(TcpTest, NoWayIsNoAnswer) {
  for (const int error : {EHOSTUNREACH, ENETUNREACH, ENETDOWN, EHOSTDOWN, ENONET, EADDRNOTAVAIL,
                          EAFNOSUPPORT, EINVAL, EACCES, EPERM}) {
    EXPECT_TRUE(IsUnreachable(error)) << error;
  }
  for (const int error : {ECONNREFUSED, ECONNRESET, ECONNABORTED, EMFILE, ENOMEM}) {
    EXPECT_FALSE(IsUnreachable(error)) << error;
  }
}

// Adapters of both families may listen at one port.
TEST(TcpTest, ListensAtOnePortOfBothFamilies) {
  const Address all6 = *Address::Parse("::");
  const Address one4 = *Address::Parse("127.0.0.1");
  // Another process may have the same port there: then try the next one.
  bool listens = false;
  for (int attempt = 0; attempt < 8 && !listens; ++attempt) {
    const absl::StatusOr<Socket> first = ListenOn(all6, 0);
    if (absl::IsInvalidArgument(first.status())) GTEST_SKIP() << "no IPv6";
    ASSERT_TRUE(first.ok()) << first.status();
    listens = ListenOn(one4, LocalEnd(first->get()).port).ok();
  }
  EXPECT_TRUE(listens);
}

// An exiting process would wait for outstanding bytes that nobody takes any more.
TEST(TcpTest, NothingIsOutstandingBehindAReset) {
  TestListener listener;
  Socket socket = NewTcpSocket(AF_INET);
  sockaddr_storage storage;
  const socklen_t length = Address::Parse("127.0.0.1")->ToSockaddr(listener.port(), &storage);
  (void)connect(socket.get(), reinterpret_cast<const sockaddr*>(&storage), length);
  TestPeer peer = listener.Accept();
  pollfd look = {socket.get(), POLLOUT, 0};
  ASSERT_EQ(poll(&look, 1, 10'000), 1);
  const std::array<char, 65536> bytes = {};
  while (send(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  EXPECT_TRUE(UnacknowledgedOf(socket.get()).outstanding);
  peer.Reset();
  look.events = 0;
  ASSERT_EQ(poll(&look, 1, 10'000), 1);
  EXPECT_NE(UnacknowledgedBytes(socket.get()), 0u) << "the number alone would not do";
  EXPECT_FALSE(UnacknowledgedOf(socket.get()).outstanding);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
