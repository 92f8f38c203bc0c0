#include "verbs/soft/iwarp/tcp.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>

#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

// The process that exits would wait for it, and nobody takes it any more.
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
