// The line of a name's waiters (dat/core/waiting_line.cc) on a host whose ports others hold: how a
// waiter moves up, and how often it checks ports; whom it asks, and what becomes of its place
// meanwhile; tasks that are late.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "dat/core/connection_header.h"
#include "dat/core/connection_manager.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/service_point.h"
#include "dat/core/testing_request.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"
#include "verbs/base/executor.h"
#include "verbs/device.h"
#include "verbs/sim/simulation.h"

namespace viaduct::core {
namespace {

// Runs tasks as a thread of its own does: one whose time has come may be delayed before it takes a
// lock. By then nobody can cancel it.
class DelayingExecutor final : public verbs::Executor {
 public:
  explicit DelayingExecutor(verbs::Executor& executor) : executor_(executor) {}

  verbs::Nanos Now() const override { return executor_.Now(); }
  void Post(Task task) override { executor_.Post(std::move(task)); }
  bool Post(verbs::PreparedTask& task) override { return executor_.Post(task); }
  TimerId RunAt(verbs::Nanos when, Task task) override {
    ++timers;
    return executor_.RunAt(when, [this, task = std::move(task)] {
      if (delays) {
        delayed.push_back(task);
      } else {
        task();
      }
    });
  }
  bool Cancel(TimerId timer) override { return executor_.Cancel(timer); }
  bool OnExecutor() const override { return executor_.OnExecutor(); }
  void Drain() override { executor_.Drain(); }
  std::unique_ptr<verbs::Parker> NewParker() override { return executor_.NewParker(); }

  bool delays = false;
  std::vector<Task> delayed;
  int timers = 0;  // set so far

 private:
  verbs::Executor& executor_;
};

// What other processes of the host do at their ports.
struct Host {
  std::set<uint16_t> served;     // as waiters
  std::set<uint16_t> strangers;  // as programs that are not ours
  int looks = 0;
  int tries = 0;                                   // to listen
  std::vector<uint16_t> told;                      // ports of waiters that were sent a note
  std::map<uint16_t, verbs::ListenerSink*> sinks;  // of the process below, by their port
};

// A process of that host.
class HostContext final : public verbs::Context {
 public:
  HostContext(std::unique_ptr<verbs::Context> node, Host& host)
      : node_(std::move(node)), host_(host), executor_(node_->executor()) {}

  const verbs::DeviceAttributes& attributes() const override { return node_->attributes(); }
  const verbs::Address& address() const override { return node_->address(); }
  DelayingExecutor& executor() override { return executor_; }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateDomain(bool wildcard) override {
    return node_->CreateDomain(wildcard);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> Register(verbs::ProtectionDomain& domain,
                                                                void* address, size_t length,
                                                                uint32_t access,
                                                                verbs::AddressBase base) override {
    return node_->Register(domain, address, length, access, base);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateWindow(
      verbs::ProtectionDomain& domain, verbs::WindowScope scope) override {
    return node_->CreateWindow(domain, scope);
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(
      const verbs::SharedReceiveOptions& options) override {
    return node_->CreateSharedReceiveQueue(options);
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      verbs::CompletionSink* sink) override {
    return node_->CreateCompletionQueue(sink);
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(
      const verbs::QueuePairOptions& options) override {
    return node_->CreateQueuePair(options);
  }
  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(uint16_t port,
                                                          verbs::ListenerSink* sink) override {
    ++host_.tries;
    if (host_.served.contains(port) || host_.strangers.contains(port)) {
      return absl::AlreadyExistsError("taken");
    }
    host_.sinks[port] = sink;
    return node_->Listen(port, sink);
  }
  bool IsServed(uint16_t port) override {
    ++host_.looks;
    return host_.served.contains(port) || node_->IsServed(port);
  }
  verbs::TakeAnswer WouldTake(uint16_t port, absl::Span<const uint8_t>, verbs::Deadline) override {
    if (!host_.served.contains(port)) return verbs::TakeAnswer::kNo;
    host_.told.push_back(port);
    return verbs::TakeAnswer::kYes;
  }

 private:
  const std::unique_ptr<verbs::Context> node_;
  Host& host_;
  DelayingExecutor executor_;
};

// A waiter that stands in line behind others.
class LineTest : public EngineTest {
 protected:
  static constexpr size_t kPlace = 9;
  static constexpr verbs::Nanos kTick = 10 * kMilli;

  LineTest() {
    auto context = std::make_unique<HostContext>(simulation_.NewNode(), host_);
    executor_ = &context->executor();
    auto manager =
        std::make_shared<ConnectionManager>(std::move(context), ConnectionManager::Ports());
    EXPECT_TRUE(InterfaceAdapter::Open(std::move(manager), &adapter_).ok());
    EXPECT_TRUE(
        EventDispatcher::Create(*adapter_, 1, kRequestStream, /*eager=*/false, &requests_).ok());
    ports_ = adapter_->connections().PortsOf(Hashed());
    host_.served.insert(ports_.begin(), ports_.begin() + kPlace);
    options_.name = Hashed();
    options_.shared = options_.one_shot = true;
    Wait();
  }
  ~LineTest() override {
    if (point_) WaitNoMore();
    (void)adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt);
  }

  void ExpectAt(size_t place) {
    std::vector<size_t> places;
    for (size_t i = 0; i < ports_.size(); ++i) {
      const bool others = host_.served.contains(ports_[i]);
      if (!others && adapter_->context().IsServed(ports_[i])) places.push_back(i);
    }
    EXPECT_EQ(places, std::vector<size_t>{place});
  }
  bool HasPlace(size_t place) { return adapter_->context().IsServed(ports_[place]); }

  void Wait() {
    options_.since = Now();
    EXPECT_TRUE(ServicePoint::CreatePublic(*adapter_, options_, *requests_, &point_).ok());
  }
  void WaitNoMore() { EXPECT_TRUE(std::exchange(point_, {})->Free().ok()); }
  // Does what a waiter does that has got a request; `takes` is the answer of those who are asked.
  bool Pass(TestingRequest::Takes takes) {
    TestingRequest request(a_->address(), std::move(takes));
    return adapter_->connections().PassToEarlierWaiter(request, options_);
  }
  // Passes a request that nobody takes; returns how many ports were checked for somebody to ask.
  int LooksOfAPass() {
    const int before = host_.looks;
    EXPECT_FALSE(Pass([](uint16_t, verbs::Deadline) { return false; }));
    return host_.looks - before;
  }
  // Makes a point of DAT, which shares its name with nobody.
  Ref<ServicePoint> ServeAlone() {
    ServicePoint::Options alone;
    alone.name = options_.name;
    Ref<ServicePoint> point;
    EXPECT_TRUE(ServicePoint::CreatePublic(*adapter_, alone, *requests_, &point).ok());
    return point;
  }
  // Lets time pass in which tasks are delayed.
  void RunDelayedFor(verbs::Nanos duration) {
    executor_->delays = true;
    RunFor(duration);
    executor_->delays = false;
  }
  // The tasks go on. Returns how many timers they set.
  int TimersOfTheDelayed() {
    const int before = executor_->timers;
    for (const verbs::Executor::Task& task : std::exchange(executor_->delayed, {})) task();
    return executor_->timers - before;
  }
  // The waiter's answer to another process that sends this note.
  bool Takes(size_t place, const LineNote& note) {
    return host_.sinks.at(ports_[place])->TakesHandOff(EncodeLineNote(note, options_.name));
  }

  Host host_;
  std::vector<uint16_t> ports_;
  Ref<InterfaceAdapter> adapter_;
  DelayingExecutor* executor_;  // the adapter's
  ServicePoint::Options options_;

 private:
  Ref<EventDispatcher> requests_;
  Ref<ServicePoint> point_;
};

// Each check of a port dials it, and wakes up the process there.
TEST_F(LineTest, WhoStandsFarBehindLooksNoMoreThanTwiceAtATime) {
  constexpr int kTicks = 100;
  RunFor(kTicks * kTick);
  EXPECT_GE(host_.looks, kTicks);
  EXPECT_LE(host_.looks, 2 * kTicks + 2);
  ExpectAt(kPlace);
}

TEST_F(LineTest, AHoleMovesBack) {
  host_.served.erase(ports_[3]);
  RunFor(kTick);
  ExpectAt(kPlace);
  host_.served.insert(ports_[3]);
  host_.served.erase(ports_[kPlace - 1]);
  RunFor(kTick);
  ExpectAt(kPlace - 1);
}

TEST_F(LineTest, SeveralHolesArePassedAtOnce) {
  for (size_t place = 4; place < kPlace; ++place) host_.served.erase(ports_[place]);
  RunFor(kTick);
  ExpectAt(4);
  host_.served.clear();
  RunFor(kTick);
  ExpectAt(0);
}

TEST_F(LineTest, AStrangersPortIsPassed) {
  host_.served.erase(ports_[kPlace - 1]);
  host_.strangers.insert(ports_[kPlace - 1]);
  RunFor(3 * kTick);
  ExpectAt(kPlace);
  host_.served.erase(ports_[kPlace - 2]);
  RunFor(kTick);
  ExpectAt(kPlace - 2);
}

// For the kernel each try is a listener that is made and destroyed.
TEST_F(LineTest, AStrangersPortIsNotTriedAtEachLook) {
  host_.served.erase(ports_[kPlace - 1]);
  host_.strangers.insert(ports_[kPlace - 1]);
  const int before = host_.tries;
  RunFor(300 * kTick);
  EXPECT_LE(host_.tries - before, 4);
  host_.strangers.clear();
  RunFor(100 * kTick);
  ExpectAt(kPlace - 1);
}

// The processes in between may serve another name, and never move.
TEST_F(LineTest, TheFrontIsSoonSomebodys) {
  host_.served.erase(ports_[0]);
  RunFor(kTick);
  ExpectAt(0);
}

// Otherwise the checks of the earlier wait would go on for ever beside those of the next one.
TEST_F(LineTest, AWaitThatHasLeftTheLineLooksNoMore) {
  RunFor(ConnectionManager::kShortWait);
  WaitNoMore();
  RunFor(ConnectionManager::kLinger + kMilli);
  EXPECT_FALSE(HasPlace(kPlace));
  Wait();
  constexpr int kTicks = 100;
  host_.looks = 0;
  RunFor(kTicks * kTick);
  EXPECT_LE(host_.looks, 2 * kTicks + 2);
}

// The next wait has a timer of its own, which nobody could cancel if the task set another one.
TEST_F(LineTest, ATaskThatIsLateLeavesTheNextWaitsChecksAlone) {
  RunDelayedFor(kTick);
  ASSERT_EQ(executor_->delayed.size(), 1u) << "a check";
  WaitNoMore();
  RunFor(ConnectionManager::kShortWaitLinger + kMilli);
  EXPECT_FALSE(HasPlace(kPlace));
  Wait();
  EXPECT_EQ(TimersOfTheDelayed(), 0);
}

TEST_F(LineTest, ATaskThatIsLateLeavesTheNextLingerAlone) {
  host_.served.clear();
  RunFor(ConnectionManager::kShortWait);
  ExpectAt(0);
  WaitNoMore();
  RunDelayedFor(ConnectionManager::kLinger);
  ASSERT_EQ(executor_->delayed.size(), 1u) << "the end of the linger";
  const Ref<ServicePoint> alone = ServeAlone();  // takes the port over
  ASSERT_TRUE(alone);
  EXPECT_TRUE(alone->Free().ok());
  EXPECT_FALSE(HasPlace(0));
  Wait();
  WaitNoMore();  // it lingers
  EXPECT_EQ(TimersOfTheDelayed(), 0);
}

// So a waiter that moves up between two questions is asked at the place to which it moves.
TEST_F(LineTest, OthersAreAskedAgainstTheWayInWhichTheyMoveUp) {
  std::vector<uint16_t> asked;
  EXPECT_FALSE(Pass([&](uint16_t port, verbs::Deadline) {
    asked.push_back(port);
    return false;
  }));
  std::vector<uint16_t> others(ports_.begin(), ports_.begin() + kPlace);
  std::reverse(others.begin(), others.end());
  EXPECT_EQ(asked, others);
}

// The others ask nobody as long as they take themselves for alone.
TEST_F(LineTest, WhoJoinsTellsEverybodyAhead) {
  EXPECT_EQ(host_.told, std::vector<uint16_t>(ports_.begin(), ports_.begin() + kPlace));
}

TEST_F(LineTest, WhoHasMetNobodyTwiceIsAlone) {
  std::swap(host_.strangers, host_.served);  // nobody of ours
  EXPECT_NE(LooksOfAPass(), 0);
  EXPECT_NE(LooksOfAPass(), 0) << "somebody may have joined meanwhile";
  EXPECT_EQ(LooksOfAPass(), 0);
}

TEST_F(LineTest, WhoIsAloneHearsOfAnother) {
  std::swap(host_.strangers, host_.served);
  while (LooksOfAPass() != 0) {
  }
  EXPECT_TRUE(Takes(kPlace, {LineNote::kJoins, adapter_->context().address().v4()}));
  EXPECT_NE(LooksOfAPass(), 0);
}

// A waiter that joined behind its new place has told only those who were ahead then.
TEST_F(LineTest, WhoMovesUpLooksForOthersAgain) {
  std::swap(host_.strangers, host_.served);
  while (LooksOfAPass() != 0) {
  }
  host_.strangers.clear();
  RunFor(2 * kSecond);
  ExpectAt(0);
  EXPECT_NE(LooksOfAPass(), 0);
}

TEST_F(LineTest, OnlyWaitersAtOneAddressAreOneLine) {
  const uint32_t here = adapter_->context().address().v4();
  const auto since = static_cast<uint64_t>(options_.since);
  EXPECT_TRUE(Takes(kPlace, {since + 1, here})) << "it came later";
  EXPECT_FALSE(Takes(kPlace, {since, here}));
  EXPECT_FALSE(Takes(kPlace, {since + 1, here + 1}));
  EXPECT_FALSE(Takes(kPlace, {LineNote::kJoins, here + 1}));
}

TEST_F(LineTest, APointOfDatStandsInNoLine) {
  WaitNoMore();
  const Ref<ServicePoint> point = ServeAlone();
  ASSERT_TRUE(point);
  EXPECT_FALSE(Takes(kPlace, {LineNote::kJoins, adapter_->context().address().v4()}));
  EXPECT_FALSE(Takes(kPlace, {uint64_t{1} << 60, adapter_->context().address().v4()}));
  ASSERT_TRUE(point->Free().ok());
}

// The point's requesters would ask the process that has the port.
TEST_F(LineTest, APointOfDatTakesNoPlaceOverBehindAnothersPort) {
  WaitNoMore();
  options_.name = Direct();
  host_.served.insert(*Direct().direct_port());
  Wait();
  WaitNoMore();  // it lingers
  ServicePoint::Options alone;
  alone.name = Direct();
  Ref<EventDispatcher> requests;
  ASSERT_TRUE(
      EventDispatcher::Create(*adapter_, 1, kRequestStream, /*eager=*/false, &requests).ok());
  Ref<ServicePoint> point;
  EXPECT_EQ(ServicePoint::CreatePublic(*adapter_, alone, *requests, &point).code,
            Code::kConnQualInUse);
}

TEST_F(LineTest, APlaceIsKeptWhileItsRequestIsPassedOn) {
  RunFor(ConnectionManager::kShortWait);
  EXPECT_TRUE(Pass([&](uint16_t, verbs::Deadline) {
    WaitNoMore();  // the request has ended the wait
    RunFor(kSecond + ConnectionManager::kLinger / 2);
    EXPECT_TRUE(HasPlace(kPlace));
    return true;
  }));
  // And then it is kept for the next wait, for the whole time.
  RunFor(ConnectionManager::kLinger - kMilli);
  EXPECT_TRUE(HasPlace(kPlace));
  RunFor(2 * kMilli);
  EXPECT_FALSE(HasPlace(kPlace));
}

// The request goes to no other port, although others of the line are there.
TEST_F(LineTest, WhatComesWhileARequestIsPassedOnIsHeld) {
  RunFor(ConnectionManager::kShortWait);
  End a(*a_);
  EXPECT_TRUE(Pass([&](uint16_t, verbs::Deadline) {
    WaitNoMore();
    ConnectParameters parameters;
    parameters.target = {adapter_->context().address(), Hashed()};
    EXPECT_TRUE(a->Connect(parameters).ok());
    RunFor(kSecond);
    EXPECT_FALSE(a.Heard());
    return true;
  }));
  RunUntil([&] { return a.Heard(); });
  EXPECT_EQ(a.Listen(), Words{"non-peer rejected"});
}

}  // namespace
}  // namespace viaduct::core
