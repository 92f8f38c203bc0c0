#include "verbs/soft/iwarp/handoff.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/base/name_claim.h"
#include "verbs/soft/iwarp/acceptor.h"
#include "verbs/soft/iwarp/mpa_format.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/testing_slow_close.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr char kService[] = "viaduct-iwarp";
constexpr char kRequest[] = "4d504120494420526571204672616d65 40010003 616263";

// A port that belongs to this process together with the next one: nothing of the library listens
// below 1024, and another run of this test claims other ports.
uint16_t Port() {
  static std::optional<NameClaim> claim;
  static const uint16_t port = [] {
    for (uint16_t free = 2; free < 1024; free += 2) {
      auto taken = NameClaim::Take(absl::StrCat("handoff-test-", free));
      if (!taken.ok()) continue;
      claim = *std::move(taken);
      return free;
    }
    ADD_FAILURE() << "no free port";
    return uint16_t{0};
  }();
  return port;
}

// While it lives, this process can open `free` more descriptors and no others.
class FewDescriptors {
 public:
  explicit FewDescriptors(size_t free) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few = {256, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (;;) {
      Fd fd(dup(STDERR_FILENO));
      if (!fd.valid()) break;
      eaten_.push_back(std::move(fd));
    }
    EXPECT_GE(eaten_.size(), free);
    eaten_.resize(eaten_.size() - free);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
  std::vector<Fd> eaten_;
};

class HandOffTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = HandOffListener::Open(
        loop_, Port(), 10'000'000'000,
        [this](std::span<const uint8_t> note) {
          if (!note.empty() && note[0] == 'd') hand_off_.reset();
          return !note.empty() && note[0] != 'n';
        },
        [this](ReceivedRequest received, std::vector<uint8_t> note) {
          std::lock_guard lock(mutex_);
          handed_ = std::move(received);
          note_ = std::string(note.begin(), note.end());
          changed_.notify_all();
        });
    ASSERT_TRUE(listener.ok()) << listener.status();
    hand_off_ = *std::move(listener);
    hand_off_->Start();
    // A request that has arrived.
    const Address addresses[] = {*Address::Parse("127.0.0.1")};
    auto acceptor = Acceptor::Open(loop_, addresses, 0, {}, [this](ReceivedRequest received) {
      std::lock_guard lock(mutex_);
      request_ = std::move(received);
      changed_.notify_all();
    });
    ASSERT_TRUE(acceptor.ok()) << acceptor.status();
    acceptor_ = *std::move(acceptor);
    acceptor_->Start();
    requester_.emplace(TestPeer::Dial(acceptor_->port()));
    requester_->SendHex(kRequest);
    ASSERT_TRUE(Comes(&request_));
  }

  bool Comes(std::optional<ReceivedRequest>* what) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [=] { return what->has_value(); });
  }
  // Whether the listener took a request, after it has dealt with everything that came so far.
  bool Took() {
    loop_.Drain();
    std::lock_guard lock(mutex_);
    return handed_.has_value();
  }
  Deadline Soon() const { return Deadline::After(loop_, 30'000'000'000); }
  absl::Status HandOverWith(const std::string& note) {
    const std::vector<uint8_t> bytes = FromText(note);
    return HandOver(Port(), bytes, Soon(), *request_->request, request_->socket);
  }

  ChannelFd Visit() {
    pid_t pid;
    auto dialled = DialTo(kService, Port(), &pid);
    EXPECT_TRUE(dialled.ok()) << dialled.status();
    return *std::move(dialled);
  }
  static void Say(const ChannelFd& channel, const std::string& bytes, int fd = -1) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    msghdr header = {};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (fd >= 0) {
      header.msg_control = control;
      header.msg_controllen = sizeof control;
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof fd);
      memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    EXPECT_EQ(sendmsg(channel.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // What the listener says; empty if it closes.
  std::string Hear(const ChannelFd& channel) const {
    char bytes[16];
    if (!AwaitInput(channel.get(), Soon())) return "silence";
    const ssize_t n = recv(channel.get(), bytes, sizeof bytes, 0);
    return n > 0 ? std::string(bytes, static_cast<size_t>(n)) : "";
  }
  static std::string Frame() {
    const std::vector<uint8_t> bytes = FromHex(kRequest);
    return std::string(bytes.begin(), bytes.end());
  }

  EventLoop& loop_ = **ControlThread::Get();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<ReceivedRequest> request_, handed_;
  std::string note_;
  std::unique_ptr<HandOffListener> hand_off_;
  std::unique_ptr<Acceptor> acceptor_;
  std::optional<TestPeer> requester_;
};

TEST_F(HandOffTest, SocketAndFrameMove) {
  ASSERT_TRUE(HandOverWith("yes").ok());
  ASSERT_TRUE(Comes(&handed_));
  EXPECT_EQ(note_, "yes");
  const std::span<const uint8_t> data = handed_->request->frame().private_data;
  EXPECT_EQ(std::string(data.begin(), data.end()), "abc");
  rlimit files;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_cur > 2 * kHighFd) {
    EXPECT_GE(handed_->socket.get(), kHighFd) << "in select's way";
  }
  request_.reset();  // now only the receiver has the connection
  ASSERT_EQ(send(handed_->socket.get(), "z", 1, 0), 1);
  EXPECT_EQ(requester_->ReceiveHex(1), "7a");
}

TEST_F(HandOffTest, ASocketOfTheOtherFamilyMoves) {
  const auto listening = ListenOn(*Address::Parse("::1"), 0);
  if (absl::IsInvalidArgument(listening.status())) GTEST_SKIP() << "no IPv6";
  ASSERT_TRUE(listening.ok()) << listening.status();
  sockaddr_in6 name = {};
  socklen_t length = sizeof name;
  auto* const any = reinterpret_cast<sockaddr*>(&name);
  ASSERT_EQ(getsockname(listening->get(), any, &length), 0);
  const Fd caller(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(connect(caller.get(), any, length), 0);
  const ChannelFd channel = Visit();
  Say(channel, "VUH1yes");
  EXPECT_EQ(Hear(channel), "\x01");
  Say(channel, Frame(), caller.get());
  EXPECT_TRUE(Comes(&handed_));
}

// They see at once that the listener has ended.
TEST_F(HandOffTest, VisitorsAreShownOutAtTheEnd) {
  const ChannelFd channel = Visit();
  Say(channel, "VUH1yes");
  EXPECT_EQ(Hear(channel), "\x01");
  hand_off_.reset();
  char byte;
  EXPECT_EQ(recv(channel.get(), &byte, 1, MSG_DONTWAIT), 0);
}

// After some seconds.
TEST_F(HandOffTest, WhoSaysNothingIsShownOut) {
  const ChannelFd channel = Visit();
  EXPECT_EQ(Hear(channel), "");
}

TEST_F(HandOffTest, NobodyTakesIt) {
  EXPECT_TRUE(absl::IsNotFound(HandOverWith("no")));
  hand_off_.reset();
  EXPECT_TRUE(absl::IsNotFound(HandOverWith("yes")));
  EXPECT_FALSE(handed_.has_value());
}

// A listener says that it takes a request before the request comes, which then goes nowhere else.
TEST_F(HandOffTest, NobodyTakesWhatHeHasNoDescriptorFor) {
  {
    const FewDescriptors both_ends_of_the_visit(2);
    EXPECT_TRUE(absl::IsNotFound(HandOverWith("yes")));
    EXPECT_FALSE(Took());
  }
  ASSERT_EQ(send(request_->socket.get(), "z", 1, 0), 1);
  EXPECT_EQ(requester_->ReceiveHex(1), "7a");
  const FewDescriptors and_the_request(3);
  ASSERT_TRUE(HandOverWith("yes").ok());
  EXPECT_TRUE(Comes(&handed_));
}

// A sink may destroy anything when it is called.
TEST_F(HandOffTest, WhoIsAskedMayDestroyTheDoor) {
  EXPECT_TRUE(absl::IsUnavailable(HandOverWith("destroy it")));
  EXPECT_FALSE(HasHandOffListener(Port()));
  EXPECT_FALSE(Took());
}

TEST_F(HandOffTest, OneDoorForEachPort) {
  EXPECT_TRUE(HasHandOffListener(Port()));
  EXPECT_FALSE(HasHandOffListener(Port() + 1));
  auto second = HandOffListener::Open(loop_, Port(), 1, nullptr, nullptr);
  EXPECT_TRUE(absl::IsAlreadyExists(second.status()));
}

TEST_F(HandOffTest, NonsenseIsShownOut) {
  for (const std::string& question : {std::string("VUH"), std::string("HTTP"),
                                      "VUH1" + std::string(65, 'y'), std::string(500, 'y')}) {
    const ChannelFd channel = Visit();
    Say(channel, question);
    EXPECT_EQ(Hear(channel), "");
  }
  const ChannelFd with_descriptor = Visit();
  Say(with_descriptor, "VUH1yes", STDERR_FILENO);
  EXPECT_EQ(Hear(with_descriptor), "");
  ASSERT_TRUE(HandOverWith("yes").ok()) << "and others are served";
  ASSERT_TRUE(Comes(&handed_));
}

// Silent visitors hold descriptors.
TEST_F(HandOffTest, OnlySoManyVisitAtATime) {
  constexpr size_t kMost = 64;
  std::vector<ChannelFd> silent;
  OccupiedLoop occupied(loop_);
  for (size_t i = 0; i < kMost; ++i) silent.push_back(Visit());
  const ChannelFd late = Visit();
  Say(late, "VUH1yes");
  occupied.LetGo();
  EXPECT_EQ(Hear(late), "");
  silent.clear();
  const Deadline soon = Soon();
  while (!HandOverWith("yes").ok()) ASSERT_FALSE(soon.Passed(loop_));
}

TEST_F(HandOffTest, WhatIsThrownAwayKeepsNobody) {
  for (const bool asked : {false, true}) {
    SCOPED_TRACE(asked);
    SlowToClose slow;
    const ChannelFd channel = Visit();
    if (asked) {
      Say(channel, "VUH1yes");
      EXPECT_EQ(Hear(channel), "\x01");
    }
    OccupiedLoop occupied(loop_);
    Say(channel, asked ? "nonsense" : "VUH1yes", slow.Take().get());
    occupied.LetGo();
    EXPECT_EQ(Hear(channel), "");
    EXPECT_TRUE(Answers(loop_));
    slow.LetGo();
  }
}

TEST_F(HandOffTest, GiftThatIsNoRequestIsThrownAway) {
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  const Fd in(pipes[0]), out(pipes[1]);
  const Fd unconnected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const Fd datagrams(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in anywhere = {};
  anywhere.sin_family = AF_INET;
  anywhere.sin_port = htons(9);
  anywhere.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(datagrams.get(), reinterpret_cast<const sockaddr*>(&anywhere), sizeof anywhere),
            0);
  std::string with_markers = Frame();
  with_markers[kMpaFlagsOffset] |= static_cast<char>(kMpaFlagMarkers);
  const struct {
    std::string frame;
    int fd;
  } gifts[] = {
      {Frame(), -1},
      {Frame(), in.get()},
      {Frame(), unconnected.get()},
      {Frame(), datagrams.get()},
      {Frame().substr(0, 18), request_->socket.get()},
      {Frame() + "x", request_->socket.get()},
      {with_markers, request_->socket.get()},
      {std::string(20, 'x'), request_->socket.get()},
  };
  for (const auto& gift : gifts) {
    const ChannelFd channel = Visit();
    Say(channel, "VUH1yes");
    EXPECT_EQ(Hear(channel), "\x01");
    Say(channel, gift.frame, gift.fd);
    EXPECT_EQ(Hear(channel), "");
  }
  EXPECT_FALSE(Took());
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
