#include "verbs/soft/iwarp/connector.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/no_descriptors.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

using Outcome = Connector::Outcome;

constexpr char kRequest[] = "4d504120494420526571204672616d65";
constexpr char kReply[] = "4d504120494420526570204672616d65";

bool Bind(int fd, const char* address, uint16_t port) {
  sockaddr_storage storage;
  const socklen_t length = Address::Parse(address)->ToSockaddr(port, &storage);
  return bind(fd, reinterpret_cast<const sockaddr*>(&storage), length) == 0;
}

class ConnectorTest : public testing::Test {
 protected:
  // Otherwise an answer under way would come during the next test.
  ~ConnectorTest() override {
    loop_.Post([this] {
      if (connector_ != nullptr) connector_->Cancel();
    });
    loop_.Drain();
  }

  void Connect(uint16_t port, ConnectorOptions options = {}, Socket socket = {}) {
    if (options.to.IsUnspecified()) options.to = *Address::Parse("127.0.0.1");
    options.port = port;
    options.on_progress = [this](uint16_t local_port, bool heard) {
      std::lock_guard lock(mutex_);
      local_port_ = local_port;
      heard_ = heard;
    };
    connector_ = Connector::Start(loop_, std::move(socket), std::move(options),
                                  [this](Connector::Answer answer) {
                                    std::lock_guard lock(mutex_);
                                    answer_ = std::move(answer);
                                    changed_.notify_all();
                                  });
  }

  Connector::Answer WaitForAnswer() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds(10), [this] { return answer_.has_value(); }));
    return answer_.has_value() ? std::move(*answer_) : Connector::Answer();
  }

  bool heard() {
    std::lock_guard lock(mutex_);
    return heard_;
  }

  uint16_t local_port() {
    std::lock_guard lock(mutex_);
    return local_port_;
  }

  bool answered() {
    std::lock_guard lock(mutex_);
    return answer_.has_value();
  }

  EventLoop& loop_ = **ControlThread::Get();
  TestListener listener_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Connector::Answer> answer_;
  bool heard_ = false;
  uint16_t local_port_ = 0;
  std::shared_ptr<Connector> connector_;
};

// iWARP checklist 1, 12, 20: the request's bytes, the reply's data, and nothing read after it.
TEST_F(ConnectorTest, Connects) {
  Connect(listener_.port(), {.private_data = FromText("hi!!"), .wish = {.ird = 16, .ord = 8}});
  TestPeer peer = listener_.Accept();
  EXPECT_EQ(peer.ReceiveHex(28), std::string(kRequest) + "500200088010c00868692121");
  EXPECT_TRUE(heard());
  EXPECT_EQ(local_port(), peer.remote_port());
  peer.SendHex(std::string(kReply) + "50020006 80088010 6f6b" + "001a4143");
  const Connector::Answer answer = WaitForAnswer();
  ASSERT_EQ(answer.outcome, Outcome::kConnected);
  EXPECT_EQ(ToHex(answer.reply->frame().private_data), "6f6b");
  EXPECT_TRUE(answer.agreement.crc);
  EXPECT_EQ(answer.agreement.rtr, Rtr::kWrite);
  EXPECT_EQ(answer.agreement.ord, 8);
  EXPECT_EQ(answer.agreement.ird, 16);
  uint8_t rest[8];
  EXPECT_EQ(recv(answer.socket.get(), rest, sizeof(rest), 0), 4);
}

// A server's port may lie in the range from which connections take their source ports.
TEST_F(ConnectorTest, SourcePortCanBeListenedOn) {
  // Another process may use the same port toward another peer and forbid this: then try the next.
  bool listens = false;
  for (int attempt = 0; attempt < 8 && !listens; ++attempt) {
    Connect(listener_.port());
    TestPeer peer = listener_.Accept();
    peer.ReceiveHex(24);
    ASSERT_NE(local_port(), 0);
    listens = ListenOn(*Address::Parse("127.0.0.1"), local_port()).ok();
    loop_.RunAndWait([this] { connector_->Cancel(); });
  }
  EXPECT_TRUE(listens);
}

TEST_F(ConnectorTest, ReplyByteByByte) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendBytewise(FromHex(std::string(kReply) + "10020004 00010001"));
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kConnected);
}

// Checklist 13.
TEST_F(ConnectorTest, Rejected) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex(std::string(kReply) + "30020006 00000000 6e6f");
  const Connector::Answer answer = WaitForAnswer();
  EXPECT_EQ(answer.outcome, Outcome::kRejected);
  EXPECT_EQ(ToHex(answer.reply->frame().private_data), "6e6f");
}

TEST_F(ConnectorTest, RejectedWithNothing) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex(std::string(kReply) + "20020000");
  const Connector::Answer answer = WaitForAnswer();
  EXPECT_EQ(answer.outcome, Outcome::kRejected);
  EXPECT_TRUE(answer.reply->frame().private_data.empty());
}

TEST_F(ConnectorTest, NobodyListens) {
  uint16_t port;
  {
    TestListener closed;
    port = closed.port();
  }
  Connect(port);
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kNobody);
  EXPECT_TRUE(heard());
}

// The address that Debian's hosts file gives for the host's own name.
TEST_F(ConnectorTest, AnotherAddressOfTheLoopbackNetwork) {
  const Address own_name = *Address::Parse("127.0.1.1");
  Connect(listener_.port(), {.to = own_name});
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex(std::string(kReply) + "10020004 00010001");
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kConnected);
}

// Checklist 4, 5, and whatever else is no valid reply: refused.
TEST_F(ConnectorTest, BadReplies) {
  for (const std::string& bytes :
       {ToHex(FromText("HTTP/1.1 400 Bad Request\r\n\r\n")), std::string(kRequest) + "50020000",
        std::string(kReply) + "50030004" + "00010001", std::string(kReply) + "50020000",
        std::string(kReply) + "40010000", std::string(kReply) + "d0020004" + "00010001",
        std::string(kReply) + "50020201"}) {
    answer_.reset();
    Connect(listener_.port());
    TestPeer peer = listener_.Accept();
    peer.ReceiveHex(24);
    peer.SendHex(bytes);
    EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused) << bytes;
    EXPECT_EQ(peer.ReceiveEnd().hex, "") << bytes;
  }
}

// Checklist 22, and RFC 6581 on replies without a usable kind.
TEST_F(ConnectorTest, ImpossibleRepliesAreTerminated) {
  struct Row {
    const char* reply;
    const char* terminate;
  };
  for (const Row& row : {Row{"50020004 00010080", "20060000"}, {"50020004 c0010001", "20070000"}}) {
    answer_.reset();
    Connect(listener_.port());
    TestPeer peer = listener_.Accept();
    peer.ReceiveHex(24);
    peer.SendHex(std::string(kReply) + row.reply);
    EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
    EXPECT_EQ(peer.ReceiveEnd().hex.substr(0, 48),
              std::string("00164147000000000000000200000001") + "00000000" + row.terminate);
  }
}

// The peer is asked again for as long as the program waits, and may reply like this each time.
TEST_F(ConnectorTest, AnImpossibleReplyIsToldOnce) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) {
    answer_.reset();
    Connect(listener_.port());
    TestPeer peer = listener_.Accept();
    peer.ReceiveHex(24);
    peer.SendHex(std::string(kReply) + "50020004 c0010001");
    EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
  }
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_LE(std::count(told.begin(), told.end(), '\n'), 1) << told;
}

// Checklist 11: a Terminate has the CRC like any FPDU.
TEST_F(ConnectorTest, TerminateWithTheCrcThatWasAgreed) {
  for (const bool own : {false, true}) {
    for (const bool peers : {false, true}) {
      SCOPED_TRACE(testing::Message() << own << peers);
      answer_.reset();
      Connect(listener_.port(), {.wish = {.crc = own}});
      TestPeer peer = listener_.Accept();
      peer.ReceiveHex(24);
      peer.SendHex(std::string(kReply) + (peers ? "50" : "10") + "020004 00010080");
      EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
      const std::string terminate = peer.ReceiveEnd().hex;
      ASSERT_EQ(terminate.size(), 2u * 28);
      EXPECT_EQ(terminate.substr(48) != "00000000", own || peers);
    }
  }
}

TEST_F(ConnectorTest, ClosedWithoutAReply) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.Close();
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
}

// A reset makes the initiator try revision 1, once.
TEST_F(ConnectorTest, FallsBackToRevision1) {
  Connect(listener_.port(), {.private_data = FromText("x")});
  TestPeer first = listener_.Accept();
  first.ReceiveHex(25);
  first.Reset();
  TestPeer second = listener_.Accept();
  EXPECT_EQ(second.ReceiveHex(21), std::string(kRequest) + "4001000178");
  second.SendHex(std::string(kReply) + "40010000");
  const Connector::Answer answer = WaitForAnswer();
  EXPECT_EQ(answer.outcome, Outcome::kConnected);
  EXPECT_EQ(answer.agreement.rtr, Rtr::kNone);
}

// A peer that has begun to answer knows revision 2.
TEST_F(ConnectorTest, ResetInsideAReply) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex("4d50");
  peer.AwaitTaken();
  peer.Reset();
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
}

// A peer that accepts the second connection is known to be there, and may take its time.
TEST_F(ConnectorTest, SlowBehindItsReset) {
  Connect(listener_.port(), {.silence = 50'000'000});
  TestPeer first = listener_.Accept();
  first.ReceiveHex(24);
  first.Reset();
  TestPeer second = listener_.Accept();
  second.ReceiveHex(20);
  EXPECT_FALSE(second.Readable());
  second.SendHex(std::string(kReply) + "40010000");
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kConnected);
}

TEST_F(ConnectorTest, FallsBackOnceOnly) {
  Connect(listener_.port());
  for (int i = 0; i < 2; ++i) {
    TestPeer peer = listener_.Accept();
    peer.ReceiveHex(20);
    peer.Reset();
  }
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
}

// A host that was cut off: its reset was the last thing heard of it.
TEST_F(ConnectorTest, SilentBehindItsReset) {
  Connect(listener_.port(), {.silence = 100'000'000});
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  const TestPeer other = listener_.Fill();
  peer.Reset();
  const Connector::Answer answer = WaitForAnswer();
  EXPECT_EQ(answer.outcome, Outcome::kUnreachable);
  EXPECT_TRUE(answer.heard);
  EXPECT_TRUE(heard());
}

// Nobody answers and the attempt goes on: the program may ask for its source port.
TEST_F(ConnectorTest, ThePortIsKnownBeforeThePeerIsHeard) {
  const TestPeer first = listener_.Fill();
  Connect(listener_.port());
  loop_.Drain();
  loop_.Drain();
  EXPECT_NE(local_port(), 0);
  EXPECT_FALSE(heard());
}

// TCP has given up, but the connector has not.
TEST_F(ConnectorTest, CallsAgainWhereNobodyHasAnswered) {
  TestPeer first = listener_.Fill();
  Socket socket = NewTcpSocket(AF_INET);
  const int few = 1;
  ASSERT_EQ(setsockopt(socket.get(), IPPROTO_TCP, TCP_SYNCNT, &few, sizeof(few)), 0);
  const int fd = dup(socket.get());
  Connect(listener_.port(), {}, std::move(socket));
  loop_.Drain();
  loop_.Drain();  // now it has dialled
  pollfd look = {fd, 0, 0};
  EXPECT_EQ(poll(&look, 1, 30'000), 1);
  close(fd);
  loop_.Drain();
  EXPECT_FALSE(answered());
  listener_.Accept();
  TestPeer peer = listener_.Accept();
  EXPECT_EQ(peer.ReceiveHex(24).size(), 2u * 24);
}

TEST_F(ConnectorTest, CallsFromTheAddressItHas) {
  const Address from = *Address::Parse("127.0.0.2");
  Connect(listener_.port(), {.from = from});
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex(std::string(kReply) + "10020004 00010001");
  const Connector::Answer answer = WaitForAnswer();
  ASSERT_EQ(answer.outcome, Outcome::kConnected);
  EXPECT_EQ(LocalEnd(answer.socket.get()).address, from);
}

// If the source port is from the range that listeners use, TCP can connect a socket to itself.
TEST_F(ConnectorTest, WhoMeetsHimselfHasMetNobody) {
  Socket socket = NewTcpSocket(AF_INET);
  const int fd = socket.get();
  ASSERT_TRUE(Bind(fd, "127.0.0.1", 0));
  Connect(LocalEnd(fd).port, {}, std::move(socket));
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kNobody);
}

// Another host's port may have the same number.
TEST_F(ConnectorTest, ThePortAloneIsNotHimself) {
  Socket socket = NewTcpSocket(AF_INET);
  ASSERT_TRUE(Bind(socket.get(), "127.0.0.2", listener_.port()));
  Connect(listener_.port(), {}, std::move(socket));
  EXPECT_EQ(listener_.Accept().ReceiveHex(24).size(), 2u * 24);
}

// The peer answers, but is to be reached another way: no request is sent.
TEST_F(ConnectorTest, ServedNearer) {
  Connect(listener_.port(), {.served_nearer = [] { return true; }});
  TestPeer peer = listener_.Accept();
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kServedNearer);
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.timed_out);
}

TEST_F(ConnectorTest, NoDescriptorToCallWith) {
  // One attempt before, since a sanitizer opens descriptors for types that are new to it.
  Connect(listener_.port(), {.served_nearer = [] { return true; }});
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kServedNearer);
  answer_.reset();
  const NoDescriptors none;
  Connect(listener_.port());
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kNoResources);
}

// Small messages leave at once, and an idle peer that is gone is noticed.
TEST_F(ConnectorTest, TheConnectionHasItsOptions) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex(std::string(kReply) + "10020004 00010001");
  const Connector::Answer answer = WaitForAnswer();
  ASSERT_EQ(answer.outcome, Outcome::kConnected);
  const auto option = [&answer](int level, int name) {
    int value = 0;
    socklen_t length = sizeof(value);
    EXPECT_EQ(getsockopt(answer.socket.get(), level, name, &value, &length), 0);
    return value;
  };
  EXPECT_NE(option(IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_NE(option(SOL_SOCKET, SO_KEEPALIVE), 0);
}

// Checklist 9: a reply that has begun must end.
TEST_F(ConnectorTest, HalfAReply) {
  Connect(listener_.port(), {.reply_time = 50'000'000});
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex("4d50");
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
}

TEST_F(ConnectorTest, Cancelled) {
  Connect(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  loop_.Post([this] { connector_->Cancel(); });
  EXPECT_FALSE(peer.ReceiveEnd().timed_out);
  loop_.Drain();
  EXPECT_FALSE(answered());
}

TEST_F(ConnectorTest, CancelledBeforeItDialled) {
  loop_.Post([this] {
    Connect(listener_.port());
    connector_->Cancel();
  });
  loop_.Drain();
  loop_.Drain();
  EXPECT_FALSE(answered());
  EXPECT_EQ(local_port(), 0);
}

// An event with neither a connection nor an error: nobody was heard.
TEST_F(ConnectorTest, ClosedWithoutAWord) {
  const TestPeer first = listener_.Fill();
  Socket socket = NewTcpSocket(AF_INET);
  const int fd = socket.get();
  Connect(listener_.port(), {}, std::move(socket));
  loop_.RunAndWait([fd] {
    EXPECT_EQ(shutdown(fd, SHUT_RDWR), 0);
    int error = 0;
    socklen_t length = sizeof(error);
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    EXPECT_EQ(error, ECONNRESET);
  });
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kRefused);
  EXPECT_FALSE(heard());
}

TEST_F(ConnectorTest, NoFamilyNoWay) {
  ConnectorOptions options;
  options.to = Address();
  connector_ =
      Connector::Start(loop_, Socket(), std::move(options), [this](Connector::Answer answer) {
        std::lock_guard lock(mutex_);
        answer_ = std::move(answer);
        changed_.notify_all();
      });
  EXPECT_EQ(WaitForAnswer().outcome, Outcome::kUnreachable);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
