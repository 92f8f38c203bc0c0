#include "verbs/soft/iwarp/testing_peer.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/mpa_format.h"
#include "verbs/soft/iwarp/testing_hex.h"

namespace viaduct::verbs::iwarp {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

uint16_t PortOf(int fd) {
  sockaddr_in address = {};
  socklen_t length = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

}  // namespace

TestPeer::TestPeer(Fd socket) : socket_(std::move(socket)) {
  const timeval limit{10, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const int on = 1;
  setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

TestPeer TestPeer::Dial(uint16_t port) {
  Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return TestPeer(std::move(socket));
}

void TestPeer::Send(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;  // the other end has closed: the test checks what it answered
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

void TestPeer::SendHex(std::string_view hex) { Send(FromHex(hex)); }

void TestPeer::SendBytewise(std::span<const uint8_t> bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) Send(bytes.subspan(i, 1));
}

void TestPeer::AwaitTaken() {
  int left = 1;
  for (int looks = 0; left > 0 && looks < 10'000; ++looks) {
    ASSERT_EQ(ioctl(socket_.get(), SIOCOUTQ, &left), 0);
    if (left > 0) poll(nullptr, 0, 1);
  }
  EXPECT_EQ(left, 0);
}

std::string TestPeer::ReceiveHex(size_t n) {
  std::vector<uint8_t> bytes(n);
  size_t have = 0;
  while (have < n) {
    const ssize_t got = recv(socket_.get(), bytes.data() + have, n - have, 0);
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  bytes.resize(have);
  return ToHex(bytes);
}

std::string TestPeer::ReceiveSomeHex() {
  std::vector<uint8_t> bytes(65536);
  const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), 0);
  bytes.resize(got < 0 ? 0 : static_cast<size_t>(got));
  return ToHex(bytes);
}

bool TestPeer::Readable() {
  pollfd look = {socket_.get(), POLLIN, 0};
  return poll(&look, 1, 100) == 1;
}

std::string TestPeer::ReceiveFpduHex() {
  const std::string length = ReceiveHex(kFpduLengthSize);
  if (length.size() < 2 * kFpduLengthSize) return length;
  const std::vector<uint8_t> bytes = FromHex(length);
  const size_t ulpdu = static_cast<size_t>(bytes[0]) << 8 | bytes[1];
  return length + ReceiveHex(FpduSize(ulpdu) - kFpduLengthSize);
}

size_t TestPeer::Discard(size_t n) {
  std::vector<uint8_t> bytes(1 << 20);
  size_t done = 0;
  while (done < n) {
    const ssize_t got = recv(socket_.get(), bytes.data(), std::min(bytes.size(), n - done), 0);
    if (got <= 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

TestPeer::End TestPeer::ReceiveEnd() {
  End end;
  std::vector<uint8_t> bytes(65536);
  for (;;) {
    const ssize_t n = recv(socket_.get(), bytes.data(), bytes.size(), 0);
    if (n > 0) {
      end.hex += ToHex(std::span<const uint8_t>(bytes).first(static_cast<size_t>(n)));
      continue;
    }
    end.timed_out = n < 0 && errno == EAGAIN;
    end.reset = n < 0 && !end.timed_out;
    return end;
  }
}

void TestPeer::KeepLittle() {
  const int bytes = 32 * 1024;
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

void TestPeer::Shutdown() { shutdown(socket_.get(), SHUT_WR); }

void TestPeer::Close() { socket_.Reset(); }

void TestPeer::Reset() {
  const linger now{1, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket_.Reset();
}

uint16_t TestPeer::remote_port() const {
  sockaddr_in address = {};
  socklen_t length = sizeof(address);
  getpeername(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  return ntohs(address.sin_port);
}

uint32_t TestPeer::segments() const {
  tcp_info info = {};
  socklen_t length = sizeof(info);
  EXPECT_EQ(getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &length), 0);
  return info.tcpi_data_segs_in;
}

TestListener::TestListener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in address = Loopback(0);
  EXPECT_EQ(bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(socket_.get(), 16), 0);
  const timeval limit{10, 0};
  setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  port_ = PortOf(socket_.get());
}

void TestListener::LimitSegments(int mss) {
  EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)), 0);
}

TestPeer TestListener::Accept() {
  Fd socket(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(socket.valid());
  return TestPeer(std::move(socket));
}

TestPeer TestListener::Fill() {
  EXPECT_EQ(listen(socket_.get(), 0), 0);  // on Linux one connection still fits
  return TestPeer::Dial(port_);
}

}  // namespace viaduct::verbs::iwarp
