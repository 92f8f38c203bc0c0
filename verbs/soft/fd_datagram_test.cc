#include "verbs/soft/fd_datagram.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"
#include "verbs/base/no_descriptors.h"

namespace viaduct::verbs {
namespace {

constexpr size_t kMost = 8;

class FdDatagramTest : public testing::Test {
 protected:
  FdDatagramTest() {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    near_.Reset(sockets[0]);
    far_.Reset(sockets[1]);
  }

  // Sends these bytes and `files` descriptors.
  bool Send(const std::vector<uint8_t>& bytes, size_t files) {
    return SendDatagram(far_.get(), bytes, std::vector<int>(files, file_.get()));
  }
  // Neither datagram nor descriptor has been taken.
  void ExpectStays() {
    EXPECT_FALSE(ReceiveDatagram(near_.get(), kMost).has_value());
    EXPECT_EQ(errno, EPROTO);
  }

  Fd near_, far_;
  const Fd file_{open("/dev/null", O_RDONLY | O_CLOEXEC)};
};

TEST_F(FdDatagramTest, ComesWithItsDescriptors) {
  ASSERT_TRUE(Send({1, 2, 3}, kMaxFdsToSend));
  ASSERT_TRUE(Send({4}, 0));
  std::optional<Datagram> datagram = ReceiveDatagram(near_.get(), kMost);
  ASSERT_TRUE(datagram.has_value());
  EXPECT_EQ(datagram->bytes, (std::vector<uint8_t>{1, 2, 3}));
  ASSERT_EQ(datagram->fds.size(), kMaxFdsToSend);
  for (const GivenFd& fd : datagram->fds) EXPECT_EQ(fcntl(fd.get(), F_GETFD), FD_CLOEXEC);
  datagram = ReceiveDatagram(near_.get(), kMost);
  ASSERT_TRUE(datagram.has_value());
  EXPECT_EQ(datagram->bytes, std::vector<uint8_t>{4});
  EXPECT_TRUE(datagram->fds.empty());
  EXPECT_FALSE(ReceiveDatagram(near_.get(), kMost).has_value());
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(FdDatagramTest, TheEndIsAnEmptyOne) {
  far_.Reset();
  const std::optional<Datagram> datagram = ReceiveDatagram(near_.get(), kMost);
  ASSERT_TRUE(datagram.has_value());
  EXPECT_TRUE(datagram->bytes.empty());
}

// recvmsg would close the descriptor, which may take long.
TEST_F(FdDatagramTest, ADescriptorThatFindsNoRoomStays) {
  ASSERT_TRUE(Send({1}, 1));
  {
    const NoDescriptors none;
    ExpectStays();
  }
  const std::optional<Datagram> datagram = ReceiveDatagram(near_.get(), kMost);
  ASSERT_TRUE(datagram.has_value());
  EXPECT_EQ(datagram->fds.size(), 1u);
}

TEST_F(FdDatagramTest, WhatIsTooLongStays) {
  ASSERT_TRUE(Send(std::vector<uint8_t>(kMost + 1), 1));
  ExpectStays();
  ExpectStays();
}

TEST_F(FdDatagramTest, MoreDescriptorsThanMayBeSentStay) {
  const std::vector<int> files(kMaxFdsToSend + 1, file_.get());
  alignas(cmsghdr) char control[CMSG_SPACE((kMaxFdsToSend + 1) * sizeof(int))] = {};
  uint8_t byte = 1;
  iovec part = {&byte, 1};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::copy(files.begin(), files.end(), reinterpret_cast<int*>(CMSG_DATA(rights)));
  ASSERT_EQ(sendmsg(far_.get(), &header, 0), 1);
  ExpectStays();
  ExpectStays();
}

}  // namespace
}  // namespace viaduct::verbs
