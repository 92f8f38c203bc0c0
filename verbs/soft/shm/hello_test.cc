// What strangers say first at a listening name, and with which of them a pair is made.
#include <poll.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "verbs/base/busy_control_thread.h"
#include "verbs/base/call_filter.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/no_descriptors.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/testing_bare_peer.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

// Somebody who has connected to the name of that port.
class Stranger {
 public:
  explicit Stranger(uint16_t port) {
    pid_t pid;
    if (auto socket = DialTo("viaduct", port, &pid); socket.ok()) socket_ = *std::move(socket);
  }
  void Say(const std::string& message, absl::Span<const int> fds = {}) {
    SendMessage(socket_.get(), message, fds);
  }
  // Says Hello, with that many descriptors of `arena`.
  void Greet(const Arena& arena, size_t descriptors = 1, uint64_t token = 1) {
    const int fds[] = {arena.fd(), arena.fd()};
    Say(BuildMessage(MessageType::kHello, 0, HelloBody{token, 0, 0}),
        absl::MakeConstSpan(fds, descriptors));
  }
  // The type of the next message; 0 if the other side hung up.
  MessageType Next() {
    pollfd entry = {socket_.get(), POLLIN, 0};
    Message message;
    return poll(&entry, 1, 60'000) == 1 &&
                   ReceiveMessage(socket_.get(), &message) == SocketResult::kDone
               ? message.type
               : MessageType{};
  }
  bool IsHeard() {
    Say(RequestInVain(0));
    return Next() == MessageType::kNotHere;
  }

 private:
  ChannelFd socket_;
};

class KeepsAll final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection>) override {}
};

// A listener that tells `child` its port.
class Listening {
 public:
  explicit Listening(ChildProcess& child) { child.PutValue(listener_->port()); }

 private:
  const std::unique_ptr<Context> context_ = OpenForTest();
  KeepsAll sink_;
  const std::unique_ptr<Listener> listener_ = *context_->Listen(0, &sink_);
};

TEST(HelloTest, ItBringsOneMemory) {
  ChildProcess child([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    const std::shared_ptr<Arena> arena = Arena::Create();
    for (const int descriptors : {0, 1, 2}) {
      Stranger stranger(port);
      stranger.Greet(*arena, descriptors);
      if ((stranger.Next() == MessageType::kWelcome) != (descriptors == 1)) return descriptors + 1;
    }
    return 0;
  });
  const Listening listening(child);
  EXPECT_EQ(child.Wait(), 0);
}

// Two processes hold theirs at the same time.
TEST(HelloTest, OneProcessOpensSoManyPairs) {
  constexpr int kMost = 32;
  // Tries to open one more than kMost. Returns how many are welcome.
  const auto open = [](uint16_t port, std::deque<Stranger>& strangers) {
    const std::shared_ptr<Arena> arena = Arena::Create();
    int welcome = 0;
    for (int i = 0; i <= kMost; i++) {
      strangers.emplace_back(port).Greet(*arena);
      if (strangers.back().Next() == MessageType::kWelcome) welcome++;
    }
    return welcome;
  };
  ChildProcess other([&](ChildProcess& parent) {
    std::deque<Stranger> strangers;
    const auto port = parent.GetValue<uint16_t>();
    parent.PutValue(open(port, strangers));
    return 0;
  });
  ChildProcess child([&](ChildProcess& parent) {
    std::deque<Stranger> strangers;
    const auto port = parent.GetValue<uint16_t>();
    const int welcome = open(port, strangers);
    other.PutValue(port);
    return welcome == kMost && other.GetValue<int>() == kMost ? 0 : 1;
  });
  const Listening listening(child);
  EXPECT_EQ(child.Wait(), 0);
  EXPECT_EQ(other.Wait(), 0);
}

TEST(HelloTest, WhoSaysNothingIsHungUpOnAloneAtLast) {
  ChildProcess child([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    const std::shared_ptr<Arena> arena = Arena::Create();
    Stranger stranger(port);
    stranger.Greet(*arena);
    if (stranger.Next() != MessageType::kWelcome) return 1;
    if (Stranger(port).Next() != MessageType{}) return 2;
    return stranger.IsHeard() ? 0 : 3;
  });
  const Listening listening(child);
  EXPECT_EQ(child.Wait(), 0);
}

// The last adapter has gone between the connect and the Hello.
TEST(HelloTest, WithoutAUserNobodyIsWelcome) {
  ChildProcess child([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    const std::shared_ptr<Arena> arena = Arena::Create();
    Stranger stranger(port), next(port);
    next.Say(BuildMessage(MessageType::kAsk, 0, RedirectBody{}));
    if (next.Next() != MessageType::kNotHere) return 1;  // both are accepted
    parent.PutValue(0);
    parent.GetValue<int>();
    stranger.Greet(*arena);
    return stranger.Next() == MessageType{} ? 0 : 2;
  });
  {
    const Listening listening(child);
    child.GetValue<int>();
  }
  child.PutValue(0);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(HelloTest, AUserThatComesInTimeKeepsThePairs) {
  ChildProcess child([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    const std::shared_ptr<Arena> arena = Arena::Create();
    Stranger stranger(port);
    stranger.Greet(*arena);
    if (stranger.Next() != MessageType::kWelcome) return 1;
    parent.PutValue(0);
    parent.GetValue<int>();
    return stranger.IsHeard() ? 0 : 2;
  });
  auto context = OpenForTest();
  KeepsAll sink;
  auto listener = *context->Listen(0, &sink);
  child.PutValue(listener->port());
  child.GetValue<int>();
  listener.reset();
  // The control thread does nothing else in between.
  (*ControlThread::Get())->RunAndWait([&] {
    context.reset();
    context = OpenForTest();
  });
  (*ControlThread::Get())->Drain();
  child.PutValue(0);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(HelloTest, WhoNamesNoMemoryOfThisProcessGetsNone) {
  const auto context = OpenForTest();
  TestEnd from(*context), to(*context);
  TestListener listener(*context, [&]() -> QueuePair& { return to.pair(); });
  DialForTest(from.pair(), listener.port());
  from.Await(from.connected);
  const std::shared_ptr<Arena> arena = Arena::Create();
  for (const uint64_t token : {0, 1}) {
    Stranger stranger(listener.port());
    stranger.Greet(*arena, 1, token);
    EXPECT_EQ(stranger.Next(), MessageType{}) << token;
  }
}

TEST(HelloTest, AQuestionThatIsNone) {
  const auto context = OpenForTest();
  KeepsAll sink;
  const auto listener = *context->Listen(0, &sink);
  Stranger stranger(listener->port());
  stranger.Say(BuildMessage(MessageType::kAsk, 0, {}, {}));
  EXPECT_EQ(stranger.Next(), MessageType{});
}

// Somebody may listen there, so it is no refusal, neither by the process that is dialled nor by the
// one to which a request is handed off.
TEST(HelloTest, WithoutMemoryForAPairItIsAShortage) {
  ChildProcess server([](ChildProcess& parent) {
    const Listening listening(parent);
    parent.GetValue<int>();
    return 0;
  });
  ChildProcess client([&server](ChildProcess&) {
    const auto port = server.GetValue<uint16_t>();
    const auto context = OpenForTest();
    TestEnd dialled(*context), handed(*context);
    BarePeer bare(0);
    bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
    const auto link = bare.BeAsked(static_cast<SoftQueuePair*>(&handed.pair()));
    bool forbidden = false;
    bare.loop().RunAndWait([&] { forbidden = ForbidCalls({SYS_memfd_create}, ENFILE); });
    if (!forbidden) {  // no filters of system calls here
      server.PutValue(0);
      return 0;
    }
    DialForTest(dialled.pair(), port);
    bare.Say(BuildMessage(MessageType::kRedirect, link->id, RedirectBody{port, 0}));
    dialled.Await(dialled.failed);
    handed.Await(handed.failed);
    server.PutValue(0);
    if (dialled.outcome != ConnectOutcome::kNoResources) return 1;
    return handed.outcome == ConnectOutcome::kNoResources ? 0 : 2;
  });
  EXPECT_EQ(client.Wait(), 0);
  EXPECT_EQ(server.Wait(), 0);
}

// A listener redirects all requests to its own port, and hangs up. The last request, which has no
// answer, fails where the first one did, and not below all of the others.
TEST(HelloTest, RedirectionsAreFollowedOneByOne) {
  constexpr size_t kRequests = 100;
  constexpr ptrdiff_t kLittleStack = 32 << 10;
  const auto context = OpenForTest();
  uint16_t port = 2000;
  absl::StatusOr<ListeningFd> listener = ListenAt("viaduct", port);
  while (absl::IsAlreadyExists(listener.status())) listener = ListenAt("viaduct", ++port);
  ASSERT_TRUE(listener.ok()) << listener.status();
  std::vector<std::unique_ptr<TestEnd>> ends;
  for (size_t i = 0; i < kRequests; ++i) {
    ends.push_back(std::make_unique<TestEnd>(*context, 4096, 4));
    DialForTest(ends.back()->pair(), port);
  }
  ChannelFd accepted = AcceptAt(listener->get());
  while (!accepted.valid()) accepted = AcceptAt(listener->get());
  std::vector<uint32_t> connections;
  while (connections.size() < kRequests) {
    pollfd entry = {accepted.get(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 60'000), 1);
    Message message;
    ASSERT_EQ(ReceiveMessage(accepted.get(), &message), SocketResult::kDone);
    if (message.type == MessageType::kRequest) connections.push_back(message.connection);
  }
  const char *first = nullptr, *last = nullptr;
  ends.front()->on_failed = [&] { first = static_cast<char*>(__builtin_frame_address(0)); };
  ends.back()->on_failed = [&] { last = static_cast<char*>(__builtin_frame_address(0)); };
  {
    const BusyControlThread busy;
    SendMessage(accepted.get(), BuildMessage(MessageType::kRefuse, connections.front(), {}, {}),
                {});
    for (size_t i = 1; i + 1 < kRequests; ++i) {
      SendMessage(accepted.get(),
                  BuildMessage(MessageType::kRedirect, connections[i], RedirectBody{port, 0}), {});
    }
    accepted.Reset();
  }
  ends.front()->Await(ends.front()->failed);
  ends.back()->Await(ends.back()->failed);
  EXPECT_LT(std::abs(first - last), kLittleStack);
}

// The first request fails when the second one finds that the listener has hung up, and takes the
// second one's pair along. ASan sees whether the shortage is noted in that pair.
TEST(HelloTest, AShortageOfAPairThatIsDestroyedMeanwhile) {
  const auto context = OpenForTest();
  ControlThread& loop = **ControlThread::Get();
  uint16_t port = 2000;
  absl::StatusOr<ListeningFd> listener = ListenAt("viaduct", port);
  while (absl::IsAlreadyExists(listener.status())) listener = ListenAt("viaduct", ++port);
  ASSERT_TRUE(listener.ok()) << listener.status();
  TestEnd first(*context), second(*context);
  std::optional<NoDescriptors> shortage;
  first.on_failed = [&] {
    second.DestroyPair();
    shortage.emplace();
  };
  DialForTest(first.pair(), port);
  ChannelFd accepted = AcceptAt(listener->get());
  ASSERT_TRUE(accepted.valid());
  loop.RunAndWait([&] {
    // Both are the control thread's next tasks: it reads no socket in between.
    loop.Post([&] { accepted.Reset(); });
    DialForTest(second.pair(), port);
  });
  first.Await(first.failed);
  loop.Drain();
  shortage.reset();
  EXPECT_EQ(first.outcome, ConnectOutcome::kNobody);
  EXPECT_EQ(second.failed, 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
