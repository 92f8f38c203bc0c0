#include "verbs/sim/simulation.h"

#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kSecond = 1'000'000'000;

// A process with one queue pair that accepts whatever comes and keeps what it hears.
class Process final : public ConnectionSink, public ListenerSink {
 public:
  // `shared_receives`: room in the shared receive queue; 0: the pair has receives of its own.
  explicit Process(Simulation& simulation, uint32_t shared_receives = 0)
      : context_(simulation.NewNode()), memory_(4096) {
    domain_ = *context_->CreateDomain(false);
    region_ = *context_->Register(*domain_, memory_.data(), memory_.size(),
                                  kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite);
    queue_ = *context_->CreateCompletionQueue(nullptr);
    listener_ = *context_->Listen(2000, this);
    QueuePairOptions options;
    options.domain = domain_.get();
    options.send_queue = options.receive_queue = queue_.get();
    options.sink = this;
    options.max_sends = options.max_receives = 512;
    if (shared_receives != 0) {
      SharedReceiveOptions shared;
      shared.domain = domain_.get();
      shared.max_receives = shared_receives;
      shared_ = *context_->CreateSharedReceiveQueue(shared);
      options.shared_receives = shared_.get();
    }
    pair_ = *context_->CreateQueuePair(options);
  }

  Context& context() { return *context_; }
  QueuePair& pair() { return *pair_; }
  std::vector<std::string>& heard() { return heard_; }

  void Dial(const Address& address, uint16_t port = 2000) {
    ConnectOptions options;
    options.address = address;
    options.port = port;
    ASSERT_TRUE(pair_->Connect(options).ok());
  }
  void Send(uint32_t length, uint16_t flags = kConfirm) {
    const Segment segment = Whole(length);
    SendRequest request;
    request.flags = flags;
    request.segments = absl::MakeConstSpan(&segment, 1);
    ASSERT_EQ(pair_->PostSend(request), PostResult::kOk);
  }
  void Receive() {
    const Segment segment = Whole(4096);
    ReceiveRequest request;
    request.segments = absl::MakeConstSpan(&segment, 1);
    ASSERT_EQ(shared_ ? shared_->PostReceive(request) : pair_->PostReceive(request),
              PostResult::kOk);
  }
  void Poll() {
    Completion completion;
    while (queue_->Poll(&completion, 1) == 1) statuses.push_back(completion.status);
  }

  std::vector<Status> statuses;

 private:
  Segment Whole(uint32_t length) {
    return Segment{reinterpret_cast<uint64_t>(memory_.data()), region_->key(), length};
  }
  void OnConnected(QueuePair&, absl::Span<const uint8_t>) override {
    heard_.push_back("connected");
  }
  void OnConnectFailed(QueuePair&, ConnectOutcome outcome, absl::Span<const uint8_t>) override {
    const char* names[] = {"refused", "nobody", "rejected", "unreachable", "no resources", "gone"};
    heard_.push_back(names[static_cast<int>(outcome)]);
  }
  void OnDisconnected(QueuePair&, DisconnectCause cause) override {
    const char* names[] = {"local", "peer", "broken"};
    heard_.push_back(names[static_cast<int>(cause)]);
  }
  void OnDropped(QueuePair&) override { heard_.push_back("dropped"); }
  void OnRefusedWrite(QueuePair&) override { heard_.push_back("refused write"); }
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    EXPECT_TRUE(request->Accept(*pair_, {}).ok());
  }

  std::unique_ptr<Context> context_;
  std::vector<uint8_t> memory_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<SharedReceiveQueue> shared_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<QueuePair> pair_;
  std::vector<std::string> heard_;
};

using Heard = std::vector<std::string>;

class SimulationTest : public testing::Test {
 protected:
  void RunFor(Nanos duration) {
    const Deadline end = Deadline::After(simulation_.executor(), duration);
    simulation_.executor().RunUntil([] { return false; }, end);
  }
  void ConnectBoth() { ConnectTo(b_); }
  void ConnectTo(Process& b) {
    a_.Dial(b.context().address());
    RunFor(kSecond);
    ASSERT_EQ(a_.heard(), Heard{"connected"});
    ASSERT_EQ(b.heard(), Heard{"connected"});
    a_.heard().clear();
    b.heard().clear();
  }

  Simulation simulation_;
  Process a_{simulation_};
  Process b_{simulation_};
};

TEST_F(SimulationTest, NodesHaveAddresses) {
  EXPECT_EQ(a_.context().address().ToString(), "10.0.0.1");
  EXPECT_EQ(b_.context().address().ToString(), "10.0.0.2");
}

TEST(Simulation, ANodeIsOpenedAgainAtItsAddress) {
  Simulation simulation;
  const Address here = Address::V4(0x7f000001), next = Address::V4(0x0a000001);
  ListenerSink* const nobody = nullptr;
  for (int round = 0; round < 2; ++round) {
    const std::unique_ptr<Context> context = simulation.OpenNode(here);
    EXPECT_EQ(context->address(), here);
    EXPECT_TRUE(context->Listen(2000, nobody).ok()) << "the port of the one before is free";
  }
  const std::unique_ptr<Context> taken = simulation.OpenNode(next);
  EXPECT_NE(simulation.NewNode()->address(), next);
}

TEST_F(SimulationTest, NoSuchHostIsUnreachable) {
  a_.Dial(Address::V4(0x0a0000ff));
  RunFor(kSecond);
  EXPECT_EQ(a_.heard(), Heard{"unreachable"});
  EXPECT_FALSE(a_.pair().Heard());
}

TEST_F(SimulationTest, DeathBreaksTheConnectionsOfThePeers) {
  ConnectBoth();
  a_.Send(100);  // nobody will ever confirm it
  a_.Send(100);
  simulation_.Kill(b_.context());
  RunFor(kSecond);
  EXPECT_EQ(a_.heard(), Heard{"broken"});
  EXPECT_TRUE(b_.heard().empty()) << "the dead hear nothing";
  a_.Poll();
  EXPECT_EQ(a_.statuses, (std::vector<Status>{Status::kTransport, Status::kFlushed}));
}

TEST_F(SimulationTest, TheDeadListenNoMore) {
  simulation_.Kill(b_.context());
  a_.Dial(b_.context().address());
  RunFor(kSecond);
  EXPECT_EQ(a_.heard(), Heard{"nobody"});
}

TEST_F(SimulationTest, DeathAnswersAttemptsOnTheirWay) {
  a_.Dial(b_.context().address());
  simulation_.Kill(b_.context());
  RunFor(kSecond);
  EXPECT_EQ(a_.heard(), Heard{"refused"});
}

TEST_F(SimulationTest, WhatADeadProcessHadSentArrives) {
  ConnectBoth();
  b_.Receive();
  a_.Send(100);
  simulation_.Kill(a_.context());
  RunFor(kSecond);
  b_.Poll();
  EXPECT_EQ(b_.statuses, (std::vector<Status>{Status::kSuccess}));
  EXPECT_EQ(b_.heard(), Heard{"broken"});
}

// Messages without a receive delay the end for a second, and for another after each that finds one.
class HeldTest : public SimulationTest {
 protected:
  static constexpr int kMessages = 3;

  void SendAndLeave() { SendToAndLeave(b_); }
  void SendToAndLeave(Process& b, int messages = kMessages) {
    ConnectTo(b);
    for (int i = 0; i < messages; ++i) a_.Send(100, 0);
    a_.pair().Disconnect(DisconnectMode::kGraceful);
    RunFor(kSecond / 2);
    ASSERT_EQ(a_.heard(), Heard{"local"});
    ASSERT_EQ(b.heard(), Heard{});
  }
  void ExpectTaken(size_t messages) {
    b_.Poll();
    EXPECT_EQ(b_.statuses, std::vector<Status>(messages, Status::kSuccess));
  }
};

TEST_F(HeldTest, AreTakenOneByOne) {
  SendAndLeave();
  for (int i = 1; i < kMessages; ++i) {
    b_.Receive();
    RunFor(kSecond * 4 / 5);
    ExpectTaken(i);
    EXPECT_EQ(b_.heard(), Heard{});
  }
  b_.Receive();
  RunFor(kSecond / 10);
  ExpectTaken(kMessages);
  EXPECT_EQ(b_.heard(), Heard{"peer"});
}

TEST_F(HeldTest, AreGivenUp) {
  SendAndLeave();
  b_.Receive();
  RunFor(3 * kSecond);
  ExpectTaken(1);
  EXPECT_EQ(b_.heard(), Heard{"peer"});
}

// The pair has taken as many shared receives as it may, and nobody polls completions.
class HeldByAFullRingTest : public HeldTest {
 protected:
  static constexpr int kTaken = 256;

  HeldByAFullRingTest() {
    for (int i = 0; i < kTaken; ++i) shared_.Receive();
  }

  Process shared_{simulation_, kTaken};
};

TEST_F(HeldByAFullRingTest, AreGivenUpWithoutAReceive) {
  SendToAndLeave(shared_, kTaken + 1);
  RunFor(3 * kSecond);
  EXPECT_EQ(shared_.heard(), Heard{"peer"});
}

TEST_F(HeldByAFullRingTest, AreWaitedForWithAReceive) {
  SendToAndLeave(shared_, kTaken + 1);
  shared_.Receive();
  RunFor(3 * kSecond);
  EXPECT_EQ(shared_.heard(), Heard{});
  shared_.Poll();
  EXPECT_EQ(shared_.statuses, std::vector<Status>(kTaken + 1, Status::kSuccess));
  RunFor(kSecond / 10);
  EXPECT_EQ(shared_.heard(), Heard{"peer"});
}

TEST_F(HeldTest, AreNotWaitedForWhileARequestIsUnanswered) {
  ConnectBoth();
  a_.Send(100, 0);
  b_.Send(100);  // a_ has no receive either
  a_.pair().Disconnect(DisconnectMode::kGraceful);
  RunFor(kSecond / 2);
  EXPECT_EQ(b_.heard(), Heard{"peer"});
}

TEST_F(HeldTest, OutliveTheirSender) {
  SendAndLeave();
  simulation_.Kill(a_.context());
  RunFor(kSecond / 10);
  for (int i = 0; i < kMessages; ++i) b_.Receive();
  RunFor(kSecond / 10);
  ExpectTaken(kMessages);
  EXPECT_EQ(b_.heard(), Heard{"peer"});
}

TEST_F(HeldTest, DoNotReachTheNextConnection) {
  SendAndLeave();
  b_.pair().Disconnect(DisconnectMode::kAbrupt);
  b_.pair().Reset();
  a_.pair().Reset();
  a_.heard().clear();
  ConnectBoth();
  RunFor(3 * kSecond);
  EXPECT_EQ(b_.heard(), Heard{});
}

TEST_F(SimulationTest, AResetBreaksBothSides) {
  ConnectBoth();
  b_.Receive();
  a_.Send(100);
  simulation_.ResetConnections(b_.context(), a_.context());
  RunFor(kSecond);
  EXPECT_EQ(a_.heard(), Heard{"broken"});
  EXPECT_EQ(b_.heard(), Heard{"broken"});
  b_.Poll();
  EXPECT_EQ(b_.statuses, (std::vector<Status>{Status::kFlushed})) << "lost on its way";
}

TEST_F(SimulationTest, SilenceLastsUntilTheNodeIsReachableAgain) {
  simulation_.SetReachable(b_.context(), false);
  a_.Dial(b_.context().address());
  RunFor(10 * kSecond);
  EXPECT_TRUE(a_.heard().empty());
  EXPECT_FALSE(a_.pair().Heard());
  simulation_.SetReachable(b_.context(), true);
  RunFor(kSecond);
  EXPECT_EQ(a_.heard(), Heard{"connected"});
  EXPECT_TRUE(a_.pair().Heard());
}

// Everything that happens, in order, with its time.
std::vector<std::string> EverythingThatHappens(uint64_t seed) {
  SimOptions options;
  options.seed = seed;
  Simulation simulation(options);
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(std::make_unique<Process>(simulation));
  SimExecutor& executor = simulation.executor();
  const auto run = [&](Nanos duration) {
    executor.RunUntil([] { return false; }, Deadline::After(executor, duration));
  };
  processes[0]->Dial(processes[1]->context().address());
  processes[2]->Dial(processes[3]->context().address());
  run(kSecond / 1000);
  for (int i = 0; i < 40; ++i) {
    for (int pair = 0; pair < 4; pair += 2) {
      processes[pair + 1]->Receive();
      processes[pair]->Send(i * 100);
    }
    run(20'000);
    for (auto& process : processes) process->Poll();
  }
  simulation.Kill(processes[3]->context());
  run(kSecond / 10);
  std::vector<std::string> everything = simulation.trace();
  for (auto& process : processes) {
    everything.insert(everything.end(), process->heard().begin(), process->heard().end());
    for (Status status : process->statuses) {
      everything.push_back(std::to_string(static_cast<int>(status)));
    }
  }
  return everything;
}

TEST(Simulation, ASeedRepeatsItsRun) {
  const std::vector<std::string> first = EverythingThatHappens(7);
  EXPECT_GT(first.size(), 200u);
  EXPECT_EQ(EverythingThatHappens(7), first);
}

TEST(Simulation, AnotherSeedIsAnotherRun) {
  EXPECT_NE(EverythingThatHappens(8), EverythingThatHappens(7));
}

}  // namespace
}  // namespace viaduct::verbs
