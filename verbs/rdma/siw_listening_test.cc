#include "verbs/rdma/siw_listening.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <string>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs::rdma {
namespace {

using Verdict = SiwListening::Verdict;

class UnacceptedAtTest : public testing::TestWithParam<std::string> {
 protected:
  UnacceptedAtTest() : address_(*Address::Parse(GetParam())) {}

  // Listens at a free port.
  void Listen() {
    length_ = address_.ToSockaddr(0, &at_);
    listener_ = NewSocket();
    ASSERT_EQ(bind(listener_.get(), reinterpret_cast<sockaddr*>(&at_), length_), 0);
    ASSERT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at_), &length_), 0);
    ASSERT_EQ(listen(listener_.get(), 8), 0);
  }
  uint16_t port() const {
    return ntohs(address_.family() == AF_INET6
                     ? reinterpret_cast<const sockaddr_in6&>(at_).sin6_port
                     : reinterpret_cast<const sockaddr_in&>(at_).sin_port);
  }
  Fd Connect() {
    Fd connection = NewSocket();
    EXPECT_EQ(connect(connection.get(), reinterpret_cast<sockaddr*>(&at_), length_), 0);
    return connection;
  }
  std::optional<uint32_t> Unaccepted() const { return UnacceptedAt(address_, port()); }

  const Address address_;
  Fd listener_;

 private:
  Fd NewSocket() const { return Fd(socket(address_.family(), SOCK_STREAM | SOCK_CLOEXEC, 0)); }
  sockaddr_storage at_ = {};
  socklen_t length_ = 0;
};

TEST_P(UnacceptedAtTest, CountsWhatNobodyHasAccepted) {
  Listen();
  EXPECT_EQ(Unaccepted(), 0u);
  const Fd first = Connect();
  EXPECT_EQ(Unaccepted(), 1u);
  const Fd second = Connect();
  EXPECT_EQ(Unaccepted(), 2u);
  const Fd accepted(accept(listener_.get(), nullptr, nullptr));
  EXPECT_EQ(Unaccepted(), 1u);
}

TEST_P(UnacceptedAtTest, NothingListensWhereTheListenerHasGone) {
  Listen();
  const Fd connection = Connect();
  const Fd accepted(accept(listener_.get(), nullptr, nullptr));
  listener_.Reset();
  EXPECT_EQ(Unaccepted(), std::nullopt) << "the accepted one has the same address and port";
}

TEST_P(UnacceptedAtTest, AnotherAddressOfThePortIsNotIt) {
  Listen();
  const std::string other = address_.family() == AF_INET6 ? "::2" : "127.1.2.3";
  EXPECT_EQ(UnacceptedAt(*Address::Parse(other), port()), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(Addresses, UnacceptedAtTest, testing::Values("127.0.0.1", "::1"));

TEST(SiwListeningTest, LooksBecomeSeldom) {
  SiwListening listening;
  EXPECT_EQ(listening.interval(), kFirstListenerLook);
  Nanos before = 0;
  for (int look = 0; look < 10; ++look) {
    EXPECT_EQ(listening.Note(0), Verdict::kWell);
    EXPECT_GE(listening.interval(), before);
    before = listening.interval();
  }
  EXPECT_EQ(before, kListenerLook);
}

TEST(SiwListeningTest, AMissingSocketIsLookedForOnceMore) {
  SiwListening listening;
  for (int look = 0; look < 10; ++look) ASSERT_EQ(listening.Note(0), Verdict::kWell);
  EXPECT_EQ(listening.Note(std::nullopt), Verdict::kWell);
  EXPECT_EQ(listening.interval(), kFirstListenerLook) << "soon";
  EXPECT_EQ(listening.Note(0), Verdict::kWell);
  EXPECT_EQ(listening.Note(std::nullopt), Verdict::kWell);
  EXPECT_EQ(listening.Note(std::nullopt), Verdict::kLost);
  EXPECT_EQ(listening.interval(), kFirstListenerLook) << "of the one that listens anew";
  EXPECT_EQ(listening.Note(0), Verdict::kWell);
}

TEST(SiwListeningTest, AConnectionMayWaitForAWhile) {
  SiwListening listening;
  for (int look = 1; look < kWaitingLooks; ++look) EXPECT_EQ(listening.Note(1), Verdict::kWell);
  EXPECT_EQ(listening.Note(0), Verdict::kWell);
  for (int look = 1; look < kWaitingLooks; ++look) EXPECT_EQ(listening.Note(3), Verdict::kWell);
  EXPECT_EQ(listening.Note(1), Verdict::kStuck);
  EXPECT_EQ(listening.interval(), kFirstListenerLook);
  EXPECT_EQ(listening.Note(1), Verdict::kWell) << "another one";
}

TEST(SiwListeningTest, AListenerWhereManyComeThroughIsWell) {
  SiwListening listening;
  for (int look = 0; look < 4 * kWaitingLooks; ++look) {
    EXPECT_EQ(listening.Note(1), Verdict::kWell);
    for (uint32_t i = 0; i < kBusyListener / 2; ++i) listening.NoteRequest();
  }
  while (listening.Note(1) == Verdict::kWell) {
  }
  EXPECT_EQ(listening.Note(0), Verdict::kWell);
  for (int look = 1; look < kWaitingLooks; ++look) {
    EXPECT_EQ(listening.Note(1), Verdict::kWell);
    listening.NoteRequest();
  }
  EXPECT_EQ(listening.Note(1), Verdict::kStuck) << "few have";
}

}  // namespace
}  // namespace viaduct::verbs::rdma
