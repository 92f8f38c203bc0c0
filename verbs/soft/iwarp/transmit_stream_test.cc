#include "verbs/soft/iwarp/transmit_stream.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs::iwarp {
namespace {

class TransmitStreamTest : public testing::Test {
 protected:
  TransmitStreamTest() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    near_ = Fd(fds[0]);
    far_ = Fd(fds[1]);
  }

  // Sends parts of these sizes, whose bytes go on counting where the last ones ended.
  bool Send(TransmitStream& stream, std::initializer_list<size_t> sizes) {
    std::vector<std::vector<uint8_t>> data;
    std::vector<iovec> parts;
    for (const size_t size : sizes) {
      data.emplace_back(size);
      for (uint8_t& byte : data.back()) byte = static_cast<uint8_t>(sent_++ % 251);
    }
    for (std::vector<uint8_t>& bytes : data) parts.push_back({bytes.data(), bytes.size()});
    const bool good = stream.Send(parts);
    for (std::vector<uint8_t>& bytes : data) std::fill(bytes.begin(), bytes.end(), 0xff);
    return good;
  }

  void ExpectEverything(TransmitStream& stream) {
    std::vector<uint8_t> bytes(1 << 16);
    while (received_ < sent_) {
      ASSERT_TRUE(stream.Flush());
      const ssize_t n = read(far_.get(), bytes.data(), bytes.size());
      ASSERT_GT(n, 0);
      for (ssize_t i = 0; i < n; ++i) ASSERT_EQ(bytes[i], received_++ % 251);
    }
    EXPECT_FALSE(stream.blocked());
  }

  Fd near_;
  Fd far_;
  size_t sent_ = 0;
  size_t received_ = 0;
};

TEST_F(TransmitStreamTest, WhatFitsIsSentAtOnce) {
  TransmitStream stream(near_.get());
  EXPECT_TRUE(Send(stream, {1, 0, 100}));
  EXPECT_FALSE(stream.blocked());
  ExpectEverything(stream);
}

// What the socket does not take is copied: the memory of the parts changes afterwards.
TEST_F(TransmitStreamTest, TheRestWaitsAsACopy) {
  TransmitStream stream(near_.get());
  while (!stream.blocked()) ASSERT_TRUE(Send(stream, {13, 60000, 3}));
  ASSERT_TRUE(Send(stream, {7, 70000}));
  ASSERT_TRUE(stream.Flush());
  EXPECT_TRUE(stream.blocked());
  ExpectEverything(stream);
  ASSERT_TRUE(Send(stream, {5}));
  ExpectEverything(stream);
}

TEST_F(TransmitStreamTest, MorePartsThanOneCallTakes) {
  TransmitStream stream(near_.get());
  std::vector<uint8_t> bytes(3000);
  std::vector<iovec> parts;
  for (uint8_t& byte : bytes) {
    byte = static_cast<uint8_t>(sent_++ % 251);
    parts.push_back({&byte, 1});
  }
  ASSERT_TRUE(stream.Send(parts));
  ExpectEverything(stream);
}

TEST_F(TransmitStreamTest, LostConnection) {
  TransmitStream stream(near_.get());
  far_.Reset();
  EXPECT_FALSE(Send(stream, {1}));
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
