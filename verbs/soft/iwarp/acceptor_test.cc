#include "verbs/soft/iwarp/acceptor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

constexpr char kRequest[] = "4d504120494420526571204672616d65";
constexpr char kReply[] = "4d504120494420526570204672616d65";

Address Localhost() { return *Address::Parse("127.0.0.1"); }

class AcceptorTest : public testing::Test {
 protected:
  void Listen(const AcceptorOptions& options = {}) { acceptor_ = ListenToo(options); }
  // At another port.
  std::unique_ptr<Acceptor> ListenToo(const AcceptorOptions& options) {
    const Address addresses[] = {Localhost()};
    auto acceptor = Acceptor::Open(loop_, addresses, 0, options, [this](ReceivedRequest received) {
      std::lock_guard lock(mutex_);
      requests_.push_back(std::move(received));
      changed_.notify_all();
    });
    EXPECT_TRUE(acceptor.ok()) << acceptor.status();
    (*acceptor)->Start();
    return *std::move(acceptor);
  }
  // Silent clients of acceptor_, each of which has been accepted after the one before it.
  std::vector<TestPeer> Silent(int count) {
    std::vector<TestPeer> peers;
    const size_t before = OpenDescriptors();
    for (size_t i = 1; i <= static_cast<size_t>(count); ++i) {
      peers.push_back(TestPeer::Dial(acceptor_->port()));
      while (OpenDescriptors() < before + 2 * i) loop_.Drain();
      loop_.Drain();
    }
    return peers;
  }

  std::optional<ReceivedRequest> NextRequest() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !requests_.empty(); })) {
      return std::nullopt;
    }
    ReceivedRequest received = std::move(requests_.front());
    requests_.pop_front();
    return received;
  }

  // Gives the loop time to take a request.
  bool AnyRequestSoon() {
    for (int i = 0; i < 100; ++i) loop_.Drain();
    return request_count() != 0;
  }

  size_t request_count() {
    std::lock_guard lock(mutex_);
    return requests_.size();
  }

  EventLoop& loop_ = **ControlThread::Get();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ReceivedRequest> requests_;
  std::unique_ptr<Acceptor> acceptor_;
};

TEST_F(AcceptorTest, TakesARequestAndNoByteMore) {
  Listen();
  TestPeer peer = TestPeer::Dial(acceptor_->port());
  peer.SendHex(std::string(kRequest) + "50 02 0008 8010 c008 68692121" + "000e");
  std::optional<ReceivedRequest> received = NextRequest();
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(ToHex(received->request->frame().private_data), "68692121");
  uint8_t rest[8];
  EXPECT_EQ(recv(received->socket.get(), rest, sizeof(rest), 0), 2);
}

// iWARP checklist 6.
TEST_F(AcceptorTest, RequestByteByByte) {
  Listen();
  TestPeer peer = TestPeer::Dial(acceptor_->port());
  peer.SendBytewise(FromHex(std::string(kRequest) + "40 01 0004 cafebabe"));
  std::optional<ReceivedRequest> received = NextRequest();
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(ToHex(received->request->frame().private_data), "cafebabe");
}

// Checklist 3, 4, 7: closed without a word, and the next connection is served.
TEST_F(AcceptorTest, GarbageEndsItsOwnConnectionOnly) {
  Listen();
  for (const std::string& bytes :
       {ToHex(FromText("GET / HTTP/1.1\r\n\r\n")), std::string(kReply) + "40010000",
        std::string(kRequest) + "40030000", std::string(kRequest) + "40010201",
        std::string(kRequest) + "4001ffff"}) {
    TestPeer peer = TestPeer::Dial(acceptor_->port());
    peer.SendHex(bytes);
    const TestPeer::End end = peer.ReceiveEnd();
    EXPECT_EQ(end.hex, "");
    EXPECT_FALSE(end.timed_out);
  }
  TestPeer peer = TestPeer::Dial(acceptor_->port());
  peer.SendHex(std::string(kRequest) + "40010000");
  EXPECT_TRUE(NextRequest().has_value());
  EXPECT_EQ(request_count(), 0u);
}

// Checklist 8, 10: a reject by the protocol itself, which has its word in revision 2.
TEST_F(AcceptorTest, RejectsWhatItCannotDo) {
  Listen();
  for (const char* rest : {"50 02 0000", "50 02 0003 010203", "d0 02 0004 00010001"}) {
    TestPeer peer = TestPeer::Dial(acceptor_->port());
    peer.SendHex(std::string(kRequest) + rest);
    EXPECT_EQ(peer.ReceiveHex(24), std::string(kReply) + "30020004" + "80018000");
    EXPECT_FALSE(peer.Readable());  // a FIN would hide the reject from siw
    peer.Shutdown();
    EXPECT_EQ(peer.ReceiveEnd().hex, "");
  }
  TestPeer peer = TestPeer::Dial(acceptor_->port());
  peer.SendHex(std::string(kRequest) + "80 01 0000");
  EXPECT_EQ(peer.ReceiveHex(20), std::string(kReply) + "20010000");
}

// Each rejected connection keeps a descriptor until its peer closes.
TEST_F(AcceptorTest, OnlySoManyThatWereRejectedAreKept) {
  Listen({.max_half_open = 4});
  std::vector<TestPeer> peers;
  for (int i = 0; i < 5; ++i) {
    peers.push_back(TestPeer::Dial(acceptor_->port()));
    peers.back().SendHex(std::string(kRequest) + "80 01 0000");
    EXPECT_EQ(peers.back().ReceiveHex(20), std::string(kReply) + "20010000");
  }
  bool closed = false;
  for (int i = 0; i < 100 && !closed; ++i) closed = peers.back().Readable();
  EXPECT_TRUE(closed);
  for (TestPeer& peer : peers) peer.Shutdown();
  for (TestPeer& peer : peers) EXPECT_FALSE(peer.ReceiveEnd().timed_out);
  loop_.Drain();  // now none is kept
  TestPeer next = TestPeer::Dial(acceptor_->port());
  next.SendHex(std::string(kRequest) + "80 01 0000");
  EXPECT_EQ(next.ReceiveHex(20), std::string(kReply) + "20010000");
  EXPECT_FALSE(next.Readable());
}

TEST_F(AcceptorTest, WhoIsRejectedAndStaysIsLeft) {
  Listen();
  TestPeer peer = TestPeer::Dial(acceptor_->port());
  peer.SendHex(std::string(kRequest) + "80 01 0000");
  EXPECT_EQ(peer.ReceiveHex(20), std::string(kReply) + "20010000");
  EXPECT_FALSE(peer.ReceiveEnd().timed_out);
}

// Checklist 9, with a shorter time: the acceptor ends the peer's wait.
TEST_F(AcceptorTest, SilentClientsAreDropped) {
  Listen({.silence = 50'000'000});
  TestPeer silent = TestPeer::Dial(acceptor_->port());
  TestPeer slow = TestPeer::Dial(acceptor_->port());
  slow.SendHex("4d50");
  EXPECT_FALSE(silent.ReceiveEnd().timed_out);
  EXPECT_FALSE(slow.ReceiveEnd().timed_out);
  EXPECT_EQ(request_count(), 0u);
}

// Each is dropped in its time, although no further connection comes.
TEST_F(AcceptorTest, SilentClientsThatComeLaterAreDropped) {
  Listen({.silence = 300'000'000});
  TestPeer first = TestPeer::Dial(acceptor_->port());
  (void)first.Readable();  // waits for a while
  TestPeer second = TestPeer::Dial(acceptor_->port());
  EXPECT_FALSE(first.ReceiveEnd().timed_out);
  EXPECT_FALSE(second.ReceiveEnd().timed_out);
}

TEST_F(AcceptorTest, TheOldestHalfOpenConnectionGivesWay) {
  Listen({.max_half_open = 4, .patience = 0});
  std::vector<TestPeer> peers;
  for (int i = 0; i < 5; ++i) peers.push_back(TestPeer::Dial(acceptor_->port()));
  EXPECT_FALSE(peers[0].ReceiveEnd().timed_out);
  for (int i = 1; i < 5; ++i) {
    peers[i].SendHex(std::string(kRequest) + "40010000");
    EXPECT_TRUE(NextRequest().has_value());
  }
}

TEST_F(AcceptorTest, ABurstWaitsForRoom) {
  Listen({.max_half_open = 4, .patience = 60'000'000'000});
  std::vector<TestPeer> peers;
  for (int i = 0; i < 40; ++i) peers.push_back(TestPeer::Dial(acceptor_->port()));
  for (TestPeer& peer : peers) {
    peer.SendHex(std::string(kRequest) + "40010000");
    EXPECT_TRUE(NextRequest().has_value());
  }
}

TEST_F(AcceptorTest, TheOldestGivesWayAtWhateverPort) {
  const AcceptorOptions options = {.max_half_open = 4, .patience = 0, .own_places = 0};
  Listen(options);
  const auto other = ListenToo(options);
  std::vector<TestPeer> peers = Silent(4);
  peers.push_back(TestPeer::Dial(other->port()));
  EXPECT_FALSE(peers[0].ReceiveEnd().timed_out);
  for (int i = 1; i < 5; ++i) {
    peers[i].SendHex(std::string(kRequest) + "40010000");
    EXPECT_TRUE(NextRequest().has_value());
  }
}

// A port that has no connections of its own gets the place that is free at another one.
TEST_F(AcceptorTest, APlaceIsForWhateverPort) {
  const AcceptorOptions options = {.max_half_open = 4, .patience = 60'000'000'000, .own_places = 0};
  Listen(options);
  const auto other = ListenToo(options);
  std::vector<TestPeer> peers = Silent(4);
  TestPeer waits = TestPeer::Dial(other->port());
  waits.SendHex(std::string(kRequest) + "40010000");
  EXPECT_FALSE(AnyRequestSoon());
  peers[0].Shutdown();
  EXPECT_TRUE(NextRequest().has_value());
  acceptor_.reset();
  std::vector<TestPeer> more;
  for (int i = 0; i < 4; ++i) {
    more.push_back(TestPeer::Dial(other->port()));
    more.back().SendHex(std::string(kRequest) + "40010000");
    EXPECT_TRUE(NextRequest().has_value());
  }
}

// Even if they take every place that becomes free.
TEST_F(AcceptorTest, StrangersAtOnePortDoNotShutAnother) {
  const AcceptorOptions options = {.max_half_open = 4, .patience = 60'000'000'000, .own_places = 1};
  Listen(options);
  const auto other = ListenToo(options);
  const std::vector<TestPeer> strangers = Silent(4);
  for (int i = 0; i < 3; ++i) {
    TestPeer peer = TestPeer::Dial(other->port());
    peer.SendHex(std::string(kRequest) + "40010000");
    EXPECT_TRUE(NextRequest().has_value());
  }
}

// A reset takes away the peer's name, and leaves the bytes that came before it.
TEST_F(AcceptorTest, WhoHasGoneAgainMakesNoRequest) {
  Listen();
  std::optional<TestPeer> stays;
  {
    const BusyControlThread busy;
    TestPeer gone = TestPeer::Dial(acceptor_->port());
    gone.SendHex(std::string(kRequest) + "40 01 0004 cafebabe");
    gone.Reset();
    stays = TestPeer::Dial(acceptor_->port());
    stays->SendHex(std::string(kRequest) + "40 01 0004 68692121");
  }
  std::optional<ReceivedRequest> received = NextRequest();
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(ToHex(received->request->frame().private_data), "68692121");
}

// Checklist 64.
TEST_F(AcceptorTest, PortTaken) {
  Listen();
  const Address addresses[] = {Localhost()};
  auto second = Acceptor::Open(loop_, addresses, acceptor_->port(), {}, [](ReceivedRequest) {});
  EXPECT_TRUE(absl::IsAlreadyExists(second.status())) << second.status();
  const uint16_t port = acceptor_->port();
  acceptor_.reset();
  second = Acceptor::Open(loop_, addresses, port, {}, [](ReceivedRequest) {});
  EXPECT_TRUE(second.ok()) << second.status();
}

// The descriptor of the socket that listens at the port, or -1.
int ListenerAt(uint16_t port) {
  for (int fd = 0; fd < 8192; ++fd) {
    sockaddr_in name = {};
    socklen_t size = sizeof name;
    int listens = 0;
    socklen_t flag_size = sizeof listens;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &size) == 0 &&
        name.sin_family == AF_INET && name.sin_port == htons(port) &&
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_size) == 0 && listens != 0) {
      return fd;
    }
  }
  return -1;
}

TEST_F(AcceptorTest, PortIsFreeThoughAChildHasACopy) {
  Listen();
  const uint16_t port = acceptor_->port();
  const int copy = dup(ListenerAt(port));
  ASSERT_GE(copy, 0);
  acceptor_.reset();
  const Address addresses[] = {Localhost()};
  auto second = Acceptor::Open(loop_, addresses, port, {}, [](ReceivedRequest) {});
  EXPECT_TRUE(second.ok()) << second.status();
  close(copy);
}

TEST_F(AcceptorTest, NotAnAddressOfThisHost) {
  const Address addresses[] = {*Address::Parse("203.0.113.7")};
  auto acceptor = Acceptor::Open(loop_, addresses, 0, {}, [](ReceivedRequest) {});
  EXPECT_TRUE(absl::IsInvalidArgument(acceptor.status())) << acceptor.status();
}

// The other one may belong to a loopback interface that is down.
TEST_F(AcceptorTest, OnlyTheFirstAddressMustBeOfThisHost) {
  const Address strange = *Address::Parse("203.0.113.7");
  const Address addresses[] = {strange, Localhost()};
  auto acceptor = Acceptor::Open(loop_, addresses, 0, {}, [](ReceivedRequest) {});
  EXPECT_TRUE(absl::IsInvalidArgument(acceptor.status())) << acceptor.status();
  const Address turned[] = {Localhost(), strange};
  acceptor = Acceptor::Open(loop_, turned, 0, {}, [](ReceivedRequest) {});
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  TestPeer::Dial((*acceptor)->port());
}

TEST_F(AcceptorTest, DestructionClosesWhatIsHalfOpen) {
  Listen();
  TestPeer peer = TestPeer::Dial(acceptor_->port());
  peer.SendHex("4d");
  acceptor_.reset();
  EXPECT_FALSE(peer.ReceiveEnd().timed_out);
}

TEST_F(AcceptorTest, SeveralAddressesShareAPort) {
  const Address addresses[] = {Localhost(), *Address::Parse("127.0.0.2")};
  auto acceptor = Acceptor::Open(loop_, addresses, 0, {}, [](ReceivedRequest) {});
  ASSERT_TRUE(acceptor.ok()) << acceptor.status();
  for (const Address& address : addresses) {
    const Address one[] = {address};
    EXPECT_TRUE(absl::IsAlreadyExists(
        Acceptor::Open(loop_, one, (*acceptor)->port(), {}, [](ReceivedRequest) {}).status()));
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
