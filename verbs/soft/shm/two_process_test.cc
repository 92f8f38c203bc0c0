// Two processes: every byte of random messages, one-sided requests, death, silence, and numbers
// that are given out again.
#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/epoch.h"
#include "verbs/base/fd.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/message_format.h"
#include "verbs/soft/shm/testing_node.h"
#include "verbs/soft/testing_hang_up.h"

namespace viaduct::verbs::shm {
namespace {

uint32_t SizeOf(uint32_t connection, uint32_t message) {
  uint32_t x = (connection * 2654435761u) ^ (message * 40503u * 2654435761u);
  x ^= x >> 15;
  return x % 8 == 0 ? (x >> 8) % 200000 : (x >> 8) % 600;
}
uint8_t ByteOf(uint32_t connection, uint32_t message, uint32_t at) {
  return static_cast<uint8_t>(connection * 7 + message * 31 + at * 3);
}

constexpr size_t kHalf = 200000;  // outgoing in the first half of the buffer, incoming after

// Each connection sends one message at a time and keeps one receive posted, late.
struct Traffic {
  std::vector<std::unique_ptr<TestEnd>>& ends;
  std::vector<uint32_t> sent, received;
  uint32_t messages;
  std::string error;

  void PostSend(uint32_t c) {
    const uint32_t size = SizeOf(c, sent[c]);
    for (uint32_t i = 0; i < size; i++) ends[c]->memory()[i] = ByteOf(c, sent[c], i);
    ends[c]->Send(c, 0, size, sent[c] % 3 == 0 ? kConfirm : 0);
  }
  void PostReceive(uint32_t c) { ends[c]->Receive(c, kHalf, kHalf); }
  void OnSend(const Completion& completion) {
    const auto c = static_cast<uint32_t>(completion.id);
    if (completion.status != Status::kSuccess) error = "send status";
    if (++sent[c] < messages) PostSend(c);
  }
  void OnReceive(const Completion& completion) {
    const auto c = static_cast<uint32_t>(completion.id);
    if (completion.status != Status::kSuccess) error = "receive status";
    if (completion.length != SizeOf(c, received[c])) error = "length";
    for (uint32_t i = 0; i < completion.length && error.empty(); i++) {
      if (ends[c]->memory()[kHalf + i] != ByteOf(c, received[c], i)) error = "bytes";
    }
    if (++received[c] < messages) PostReceive(c);
  }
  bool Done(uint32_t c) const { return sent[c] == messages && received[c] == messages; }

  void Run() {
    for (uint32_t c = 0; c < ends.size(); c++) PostSend(c);
    for (uint32_t c = 0; c < ends.size(); c++) PostReceive(c);
    uint32_t turn = 0;
    for (uint32_t left = static_cast<uint32_t>(ends.size()); left != 0 && error.empty();) {
      left = 0;
      for (uint32_t c = 0; c < ends.size(); c++) {
        if (Done(c)) continue;
        left++;
        Completion out[8];
        int n = ends[c]->sends().Poll(out, 8);
        for (int i = 0; i < n; i++) OnSend(out[i]);
        n = ends[c]->receives().Poll(out, 8);
        for (int i = 0; i < n; i++) OnReceive(out[i]);
      }
      if (++turn % 64 == 0) sched_yield();
    }
  }
};

int RunTraffic(ChildProcess& other, bool dial, uint32_t connections, uint32_t messages) {
  auto context = OpenForTest();
  std::vector<std::unique_ptr<TestEnd>> ends;
  for (uint32_t c = 0; c < connections; c++) {
    ends.push_back(std::make_unique<TestEnd>(*context, 2 * kHalf, 64));
  }
  std::unique_ptr<TestListener> listener;
  if (dial) {
    const auto port = other.GetValue<uint16_t>();
    for (auto& end : ends) {
      DialForTest(end->pair(), port);
      end->Await(end->connected);  // so that both sides number them alike
    }
  } else {
    uint32_t next = 0;
    listener = std::make_unique<TestListener>(*context,
                                              [&]() -> QueuePair& { return ends[next++]->pair(); });
    other.PutValue(listener->port());
    for (auto& end : ends) end->Await(end->connected);
  }
  Traffic traffic{ends, std::vector<uint32_t>(connections), std::vector<uint32_t>(connections),
                  messages, ""};
  traffic.Run();
  if (!traffic.error.empty()) {
    fprintf(stderr, "%s\n", traffic.error.c_str());
    return 1;
  }
  // Nobody leaves before both are done.
  other.PutValue(1);
  other.GetValue<int>();
  return 0;
}

TEST(TwoProcessTest, EveryByteOfRandomMessages) {
  ChildProcess child([](ChildProcess& parent) { return RunTraffic(parent, true, 24, 150); });
  ChildProcess second([&child](ChildProcess&) { return RunTraffic(child, false, 24, 150); });
  EXPECT_EQ(second.Wait(), 0);
  EXPECT_EQ(child.Wait(), 0);
}

TEST(TwoProcessTest, ManyConnectionsShareThePool) {
  ChildProcess child([](ChildProcess& parent) { return RunTraffic(parent, true, 150, 20); });
  ChildProcess second([&child](ChildProcess&) { return RunTraffic(child, false, 150, 20); });
  EXPECT_EQ(second.Wait(), 0);
  EXPECT_EQ(child.Wait(), 0);
}

// The target sleeps, and nobody polls there: its control thread serves.
TEST(TwoProcessTest, OneSidedRequestsOfATargetThatDoesNothing) {
  ChildProcess target([](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context);
    for (size_t i = 0; i < end.memory().size(); i++) end.memory()[i] = static_cast<uint8_t>(i * 5);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    parent.PutValue(reinterpret_cast<uint64_t>(end.memory().data()));
    parent.PutValue(end.key());
    parent.GetValue<int>();
    return end.memory()[7] == 99 ? 0 : 1;
  });
  ChildProcess initiator([&target](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    const auto port = target.GetValue<uint16_t>();
    const auto address = target.GetValue<uint64_t>();
    const auto key = target.GetValue<Key>();
    DialForTest(end.pair(), port);
    end.Await(end.connected);
    for (uint32_t size : {1u, 56u, 57u, 4096u, 20000u, 700000u}) {
      end.OneSided(Opcode::kRead, size, 0, size, address, key);
      if (end.Next(end.sends()).status != Status::kSuccess) return 1;
      for (uint32_t i = 0; i < size; i++) {
        if (end.memory()[i] != static_cast<uint8_t>(i * 5)) return 2;
      }
    }
    end.memory()[0] = 99;
    end.OneSided(Opcode::kWrite, 1, 0, 1, address + 7, key, kConfirm);
    if (end.Next(end.sends()).status != Status::kSuccess) return 3;
    target.PutValue(1);
    return 0;
  });
  EXPECT_EQ(initiator.Wait(), 0);
  EXPECT_EQ(target.Wait(), 0);
}

// Writes 44 bytes, the last 8 of which are an aligned word that lies in two slots of the ring.
TEST(TwoProcessTest, AWatchedWordIsWrittenAtOnce) {
  constexpr int kWrites = 20000;
  constexpr uint32_t kBytes = 44;
  ChildProcess target([](ChildProcess& parent) {
    auto context = OpenForTest();
    TestEnd end(*context, 4096);
    std::fill(end.memory().begin(), end.memory().end(), uint8_t{0});
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    parent.PutValue(reinterpret_cast<uint64_t>(end.memory().data()) + 4);
    parent.PutValue(end.key());
    end.Await(end.connected);
    const volatile uint64_t* word =
        reinterpret_cast<const uint64_t*>(end.memory().data() + 4 + kBytes - sizeof *word);
    std::atomic<int> halves{0};
    std::thread watcher([&] {
      while (end.disconnected == 0) {
        const uint64_t seen = *word;
        if (seen != 0 && seen != ~uint64_t{0}) halves++;
      }
    });
    Completion completion;
    while (end.disconnected == 0) end.receives().Poll(&completion, 1);
    watcher.join();
    return halves == 0 ? 0 : 1;
  });
  ChildProcess initiator([&target](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context, 4096);
    std::fill(end.memory().begin(), end.memory().begin() + kBytes, uint8_t{0});
    std::fill(end.memory().begin() + kBytes, end.memory().end(), uint8_t{0xff});
    const auto port = target.GetValue<uint16_t>();
    const auto address = target.GetValue<uint64_t>();
    const auto key = target.GetValue<Key>();
    DialForTest(end.pair(), port);
    end.Await(end.connected);
    for (int i = 0; i < kWrites; i++) {
      end.OneSided(Opcode::kWrite, i, i % 2 * kBytes, kBytes, address, key, kConfirm);
      if (end.Next(end.sends()).status != Status::kSuccess) return 1;
    }
    return 0;
  });
  EXPECT_EQ(initiator.Wait(), 0);
  EXPECT_EQ(target.Wait(), 0);
}

int CountFds() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) count++;
  closedir(directory);
  return count;
}

// All of it runs in child processes, so that their parent never starts the control thread.
TEST(TwoProcessTest, ANumberIsGivenOutAgainAndDescriptorsDoNotGrow) {
  ChildProcess server([](ChildProcess& parent) {
    auto context = OpenForTest();
    std::deque<TestEnd> ends;
    TestListener listener(
        *context, [&]() -> QueuePair& { return ends.emplace_back(*context, 4096, 16).pair(); });
    parent.PutValue(listener.port());
    parent.GetValue<int>();
    return 0;
  });
  ChildProcess client([&server](ChildProcess&) {
    auto context = OpenForTest();
    const auto port = server.GetValue<uint16_t>();
    int fds = 0;
    for (int i = 0; i < 300; i++) {
      TestEnd end(*context, 4096, 16);
      DialForTest(end.pair(), port);
      end.Await(end.connected);
      if (i == 10) fds = CountFds();
      if (i == 299 && CountFds() != fds) return 1;
    }
    server.PutValue(1);
    return 0;
  });
  EXPECT_EQ(client.Wait(), 0);
  EXPECT_EQ(server.Wait(), 0);
}

// Keeps requests until they are taken.
class HoldingListener final : public ListenerSink {
 public:
  explicit HoldingListener(Context& context) : listener_(*context.Listen(0, this)) {}
  uint16_t port() const { return listener_->port(); }
  std::unique_ptr<IncomingConnection> Take() {
    for (;; sched_yield()) {
      const std::lock_guard<std::mutex> hold(mutex_);
      if (requests_.empty()) continue;
      std::unique_ptr<IncomingConnection> first = std::move(requests_.front());
      requests_.pop_front();
      return first;
    }
  }
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    const std::lock_guard<std::mutex> hold(mutex_);
    requests_.push_back(std::move(request));
  }

 private:
  std::mutex mutex_;
  std::deque<std::unique_ptr<IncomingConnection>> requests_;
  std::unique_ptr<Listener> listener_;
};

// A requester that is stopped after its request never confirms the accept. What it says when it
// runs again harms none of the other connections of the two processes.
TEST(TwoProcessTest, AStoppedRequesterIsGivenUp) {
  ChildProcess server([](ChildProcess& parent) {
    auto context = OpenForTest("127.0.0.1", /*silence=*/2'000'000'000);
    TestEnd kept(*context), silent(*context), again(*context);
    kept.Receive(0, 0, 64);
    HoldingListener listener(*context);
    parent.PutValue(listener.port());
    if (!listener.Take()->Accept(kept.pair(), {}).ok()) return 1;
    kept.Await(kept.connected);
    const auto request = listener.Take();
    parent.PutValue(1);
    parent.GetValue<int>();  // the client is stopped
    if (!request->Accept(silent.pair(), {}).ok()) return 2;
    silent.Await(silent.failed);
    if (silent.outcome != ConnectOutcome::kGone || silent.connected != 0) return 3;
    parent.PutValue(2);  // the client may go on
    if (!listener.Take()->Accept(again.pair(), {}).ok()) return 4;
    again.Await(again.connected);
    if (kept.Next(kept.receives()).status != Status::kSuccess) return 5;
    return kept.disconnected == 0 && silent.connected == 0 && silent.failed == 1 ? 0 : 6;
  });
  ChildProcess client([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    auto context = OpenForTest();
    TestEnd kept(*context), silent(*context), again(*context);
    DialForTest(kept.pair(), port);
    kept.Await(kept.connected);
    DialForTest(silent.pair(), port);
    silent.Await(silent.connected);
    silent.Await(silent.disconnected);
    if (silent.cause != DisconnectCause::kPeer) return 1;
    DialForTest(again.pair(), port);
    again.Await(again.connected);
    kept.Send(0, 0, 64, kConfirm);
    if (kept.Next(kept.sends()).status != Status::kSuccess) return 2;
    parent.GetValue<int>();  // the server has checked
    return 0;
  });
  client.PutValue(server.GetValue<uint16_t>());
  ASSERT_EQ(server.GetValue<int>(), 1);
  ASSERT_EQ(kill(client.pid(), SIGSTOP), 0);
  int status = 0;
  ASSERT_EQ(waitpid(client.pid(), &status, WUNTRACED), client.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  server.PutValue(1);
  EXPECT_EQ(server.GetValue<int>(), 2);
  ASSERT_EQ(kill(client.pid(), SIGCONT), 0);
  EXPECT_EQ(server.Wait(), 0);
  client.PutValue(3);
  EXPECT_EQ(client.Wait(), 0);
}

// kill -9 of the peer while much is posted: all of it comes back, and the connection is broken.
TEST(TwoProcessTest, DeathOfThePeer) {
  ChildProcess victim([](ChildProcess& parent) {
    auto context = OpenForTest();
    std::deque<TestEnd> ends;
    TestListener listener(*context,
                          [&]() -> QueuePair& { return ends.emplace_back(*context).pair(); });
    parent.PutValue(listener.port());
    for (;;) pause();
    return 0;
  });
  ChildProcess survivor([&victim](ChildProcess&) {
    auto context = OpenForTest();
    const auto port = victim.GetValue<uint16_t>();
    std::vector<std::unique_ptr<TestEnd>> ends;
    for (int i = 0; i < 5; i++) {
      ends.push_back(std::make_unique<TestEnd>(*context));
      DialForTest(ends[i]->pair(), port);
      ends[i]->Await(ends[i]->connected);
      for (int n = 0; n < 30; n++) ends[i]->Send(n, 0, 1000 * i, kConfirm);
      for (int n = 0; n < 30; n++) ends[i]->Receive(n, 0, 64);
    }
    kill(victim.pid(), SIGKILL);
    for (auto& end : ends) {
      for (int n = 0; n < 30; n++) {
        const Completion sent = end->Next(end->sends());
        if (sent.id != static_cast<uint64_t>(n)) return 1;
        if (sent.status != (n == 0 ? Status::kTransport : Status::kFlushed)) return 2;
        if (end->Next(end->receives()).status != Status::kFlushed) return 3;
      }
      end->Await(end->disconnected);
      if (end->cause != DisconnectCause::kBroken) return 4;
    }
    // And the name is free again.
    TestEnd late(*context);
    DialForTest(late.pair(), port);
    late.Await(late.failed);
    // A dying process has its name for a moment longer, and then no answer comes.
    return late.outcome == ConnectOutcome::kNobody || late.outcome == ConnectOutcome::kRefused ? 0
                                                                                               : 5;
  });
  EXPECT_EQ(survivor.Wait(), 0);
  victim.Kill();
}

// Keeps the control thread in the handler of a descriptor. After that, tasks run before any news of
// other descriptors.
class BusyHandler {
 public:
  BusyHandler() {
    EXPECT_TRUE(thread_
                    .Watch(news_.get(), EPOLLIN | EPOLLONESHOT,
                           [this](uint32_t) {
                             begun_.set_value();
                             over_.get_future().wait();
                           })
                    .ok());
    begun_.get_future().wait();
  }
  ~BusyHandler() {
    over_.set_value();
    thread_.Unwatch(news_.get());
  }

 private:
  ControlThread& thread_ = **ControlThread::Get();
  const Fd news_{eventfd(1, EFD_CLOEXEC)};
  std::promise<void> begun_, over_;
};

// Opens a pair with the process that listens at `port`. Invalid if it was not welcome.
ChannelFd OpenPair(uint16_t port) {
  pid_t pid;
  absl::StatusOr<ChannelFd> socket = DialTo("viaduct", port, &pid);
  const std::shared_ptr<Arena> arena = Arena::Create();
  if (!socket.ok() || arena == nullptr) return {};
  const std::string hello = BuildMessage(MessageType::kHello, 0, HelloBody{1, 0, 0});
  const int fds[] = {arena->fd()};
  pollfd answer = {socket->get(), POLLIN, 0};
  Message welcome;
  if (SendMessage(socket->get(), hello, fds) != SocketResult::kDone ||
      poll(&answer, 1, 20'000) != 1 ||
      ReceiveMessage(socket->get(), &welcome) != SocketResult::kDone) {
    return {};
  }
  return *std::move(socket);
}

// Otherwise a process that finds its next listener might ask over a pair that has been left.
TEST(TwoProcessTest, WhoLeavesHangsUpOnAllBeforeItWaitsForItsOwnThreads) {
  ChildProcess leaving([](ChildProcess& parent) {
    auto context = OpenForTest();
    {
      TestEnd end(*context);
      TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
      parent.PutValue(listener.port());
      parent.GetValue<int>();
    }
    std::promise<void> begun, over;
    std::thread polling([&] {
      const EpochGuard guard;
      begun.set_value();
      over.get_future().wait();
    });
    begun.get_future().wait();
    context.reset();
    parent.GetValue<int>();
    over.set_value();
    polling.join();
    return 0;
  });
  ChildProcess left([&leaving](ChildProcess&) {
    const auto port = leaving.GetValue<uint16_t>();
    const ChannelFd pairs[] = {OpenPair(port), OpenPair(port)};
    if (!pairs[0].valid() || !pairs[1].valid()) return 1;
    leaving.PutValue(0);
    const bool heard = HearsTheEnd(pairs[0].get()) && HearsTheEnd(pairs[1].get());
    leaving.PutValue(0);
    return heard ? 0 : 1;
  });
  EXPECT_EQ(left.Wait(), 0);
  EXPECT_EQ(leaving.Wait(), 0);
}

// The process has left the pair, but the requester's control thread, which is in a call, has not
// heard that.
TEST(TwoProcessTest, AProcessThatHasLeftAndListensAgain) {
  class Refusing final : public ListenerSink {
   public:
    void OnRequest(std::unique_ptr<IncomingConnection> request) override { request->Refuse(); }
  };
  ChildProcess serving([](ChildProcess& parent) {
    {
      auto context = OpenForTest();
      Refusing sink;
      auto listener = *context->Listen(0, &sink);
      parent.PutValue(listener->port());
      parent.GetValue<int>();
    }
    (*ControlThread::Get())->Drain();
    auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    parent.PutValue(listener.port());
    end.Await(end.connected);
    parent.GetValue<int>();
    return 0;
  });
  ChildProcess dialling([&serving](ChildProcess&) {
    auto context = OpenForTest();
    TestEnd end(*context);
    DialForTest(end.pair(), serving.GetValue<uint16_t>());
    end.Await(end.failed);
    {
      const BusyHandler busy;
      serving.PutValue(0);
      DialForTest(end.pair(), serving.GetValue<uint16_t>());
    }
    while (end.connected == 0 && end.failed == 1) sched_yield();
    serving.PutValue(0);
    return end.connected == 1 ? 0 : 1;
  });
  EXPECT_EQ(dialling.Wait(), 0);
  serving.Kill();
}

}  // namespace
}  // namespace viaduct::verbs::shm
