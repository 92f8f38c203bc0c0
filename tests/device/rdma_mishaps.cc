// What goes wrong with an RDMA device, over the one without a wire (tests/rdma_mock).
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {
namespace {

class MishapsTest : public DeviceTest {
 protected:
  ~MishapsTest() override {
    rdma_mock::FailRegistrations(0);
    rdma_mock::ReuseKeys(false);
    rdma_mock::SwallowAfterTheEnd(false);
    rdma_mock::ShowNoCompletions(false);
    rdma_mock::GiveLargeKeys(0);
    rdma_mock::LimitRegistrations(-1);
    rdma_mock::RefuseSendsAfter(-1);
    rdma_mock::MissNeighbours(0);
    rdma_mock::MissHosts(0);
    rdma_mock::LoseDisconnects(0);
    rdma_mock::GetMessagesStuck(0);
    rdma_mock::MeanwhileInMemory(nullptr);
    rdma_mock::TakeForReadOnly(nullptr);
    rdma_mock::FlushLate(false);
    rdma_mock::LoseConfirmations(0);
  }
};

// A page whose first access lasts: until LetGo, but not for long. One at a time.
class SlowPage {
 public:
  static constexpr size_t kBytes = 4096;

  SlowPage() : memory_(mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    current_ = this;
    struct sigaction action = {};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~SlowPage() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory_, kBytes);
  }
  SlowPage(const SlowPage&) = delete;
  SlowPage& operator=(const SlowPage&) = delete;

  void* memory() const { return memory_; }
  bool touched() const { return touched_; }
  void LetGo() { let_go_ = true; }
  // It was let go while the access lasted.
  bool in_use_until_then() const { return in_use_until_then_; }

 private:
  static void OnFault(int, siginfo_t* fault, void*) {
    SlowPage& page = *current_;
    if (fault->si_addr < page.memory_ ||
        fault->si_addr >= static_cast<char*>(page.memory_) + kBytes) {
      sigaction(SIGSEGV, &page.before_, nullptr);
      return;
    }
    page.touched_ = true;
    for (int i = 0; i < 200 && !page.let_go_; ++i) {
      const timespec pause = {0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    page.in_use_until_then_ = page.let_go_.load();
    mprotect(page.memory_, kBytes, PROT_READ | PROT_WRITE);
  }

  static inline SlowPage* current_ = nullptr;
  void* const memory_;
  struct sigaction before_ = {};
  std::atomic<bool> touched_{false};
  std::atomic<bool> let_go_{false};
  std::atomic<bool> in_use_until_then_{false};
};

TEST_F(MishapsTest, ARegionThatCannotBeChangedIsAsBefore) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::FailRegistrations(1);
  EXPECT_TRUE(
      absl::IsResourceExhausted(from.region().Modify(from.domain(), kLocalRead | kRemoteRead)));
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);
  ASSERT_EQ(from.Receive(3, 0, 8), PostResult::kOk) << "it may still be written";
  ASSERT_EQ(to.Send(4, 0, 8), PostResult::kOk);
  Expect(from.receives(), 3);
}

// A device that has windows of its own would like to write it.
TEST_F(MishapsTest, MemoryThatIsOnlyReadIsRegisteredAndBound) {
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  Bytes memory = Pattern(100, 1);
  rdma_mock::TakeForReadOnly(memory.data());
  EXPECT_FALSE(a().Register(end.domain(), memory.data(), memory.size(), kAllAccess).ok());
  auto region = a().Register(end.domain(), memory.data(), memory.size(), kLocalRead | kRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status();
  auto window = a().CreateWindow(end.domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok()) << window.status();
  BindRequest bind;
  bind.id = 1;
  bind.window = window->get();
  bind.region = (*region)->key();
  bind.address = reinterpret_cast<uint64_t>(memory.data());
  bind.length = 50;
  bind.access = kRemoteRead;
  Key key = 0;
  ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
  Expect(end.sends(), 1);
  EXPECT_NE(key, 0u);
  ASSERT_TRUE((*region)->Modify(end.domain(), kLocalRead).ok());
  window->reset();
  region->reset();
}

TEST_F(MishapsTest, NoRegionGetsTheKeyOfOneThatWasChanged) {
  rdma_mock::ReuseKeys(true);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_TRUE(from.region().Modify(from.domain(), kAllAccess).ok());
  Bytes memory = Pattern(100, 1);
  auto region = a().Register(from.domain(), memory.data(), memory.size(), kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_NE((*region)->key(), from.region().key());
  from.DestroyRegion();
  ASSERT_EQ(to.Receive(1, 0, 100), PostResult::kOk);
  const Segment segment = {reinterpret_cast<uint64_t>(memory.data()), (*region)->key(), 100};
  ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);
  EXPECT_EQ(to.Get(0, 100), memory);
}

// The kernel misses one that answers at once, until the discovery's time is over.
TEST_F(MishapsTest, ANeighbourThatWasMissedIsLookedForAgain) {
  rdma_mock::MissNeighbours(3);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
}

// The neighbour that was found is not the host.
TEST_F(MishapsTest, NothingIsHeardOfAHostWithoutAWayThere) {
  rdma_mock::MissHosts(1);
  End& end = NewEnd(a());
  ASSERT_TRUE(Dial(end, b(), 1).ok());
  EXPECT_EQ(AwaitEvent(end).outcome, ConnectOutcome::kUnreachable);
  EXPECT_FALSE(end.pair().Heard());
}

TEST_F(MishapsTest, ANeighbourThatNeverAnswersIsUnreachable) {
  rdma_mock::MissNeighbours(1'000'000);
  End& from = NewEnd(a());
  ConnectOptions options;
  options.address = b().address();
  options.port = 7;
  ASSERT_TRUE(from.pair().Connect(options).ok());
  ASSERT_TRUE(Run([&] { return from.events().Has(Event::kConnectFailed); }));
  EXPECT_EQ(from.events().Take().outcome, ConnectOutcome::kUnreachable);
}

// Half of what one process may lock: with an unfit key's registration beside it there is no room.
TEST_F(MishapsTest, ALargeRegionNeedsItsMemoryOnce) {
  End& end = NewEnd(a());
  Bytes memory = Pattern(100, 1);
  rdma_mock::LimitRegistrations(1);
  rdma_mock::GiveLargeKeys(1);
  auto region = a().Register(end.domain(), memory.data(), memory.size(), kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  rdma_mock::LimitRegistrations(0);
  EXPECT_TRUE(absl::IsResourceExhausted(
      a().Register(end.domain(), memory.data(), memory.size(), kAllAccess).status()));
}

TEST_F(MishapsTest, NoWindowTakesTheKeyOfARegionThatWasChanged) {
  rdma_mock::ReuseKeys(true);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Bytes memory = Pattern(100, 1);
  auto other = a().Register(from.domain(), memory.data(), memory.size(), kAllAccess);
  auto window = a().CreateWindow(from.domain(), WindowScope::kQueuePair);
  ASSERT_TRUE(other.ok() && window.ok());
  ASSERT_TRUE(from.region().Modify(from.domain(), kAllAccess).ok());
  BindRequest bind;
  bind.id = 1;
  bind.window = window->get();
  bind.region = (*other)->key();
  bind.address = reinterpret_cast<uint64_t>(memory.data());
  bind.length = memory.size();
  bind.access = kRemoteRead;
  Key key;
  ASSERT_EQ(from.pair().PostBind(bind, &key), PostResult::kOk);
  if (a().attributes().immediate_data) {
    EXPECT_EQ(key, from.region().key()) << "the device's own window: else this proves nothing";
  }
  Expect(from.sends(), 1);
  for (int id : {2, 3}) {
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(id, 0, 8), PostResult::kOk) << "the changed region's own memory";
    Expect(from.sends(), id);
    Expect(to.receives(), 1);
    window->reset();
  }
}

// The queue fills up while memory is made for a bind: its place in it was kept.
TEST_F(MishapsTest, ABindKeepsItsPlace) {
  static End* from;
  static int posted;
  EndOptions small;
  small.max_sends = 4;
  from = &NewEnd(a(), small);
  posted = 0;
  End& to = NewEnd(b());
  Connect(*from, to);
  auto window = a().CreateWindow(from->domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok());
  for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  BindRequest bind;
  bind.id = 9;
  bind.window = window->get();
  bind.region = from->region().key();
  bind.address = from->Address(0);
  bind.length = 8;
  bind.access = kRemoteRead;
  rdma_mock::MeanwhileInMemory([] {
    rdma_mock::MeanwhileInMemory(nullptr);
    while (from->Send(1, 0, 8) == PostResult::kOk) ++posted;
  });
  Key key = 0;
  EXPECT_EQ(from->pair().PostBind(bind, &key), PostResult::kOk);
  EXPECT_NE(key, 0u);
  EXPECT_EQ(posted, 3);
  for (int i = 0; i < posted; ++i) Expect(from->sends(), 1);
  Expect(from->sends(), 9);
}

// It becomes several requests of the device, of which the last ones are refused.
TEST_F(MishapsTest, ARefusedPartFailsTheWhole) {
  constexpr int kSegments = 252;
  EndOptions many;
  many.max_segments = kSegments;
  for (int taken : {0, 1, 9}) {
    End& from = NewEnd(a(), many);
    End& to = NewEnd(b(), many);
    Connect(from, to);
    std::vector<Segment> segments;
    for (int i = 0; i < kSegments; ++i) segments.push_back(from.At(i * 16, 8));
    SendRequest read;
    read.id = 1;
    read.opcode = Opcode::kRead;
    read.segments = segments;
    read.remote_address = to.Address(0);
    read.remote_key = to.region().key();
    rdma_mock::RefuseSendsAfter(taken);
    ASSERT_EQ(from.pair().PostSend(read), PostResult::kOk);
    rdma_mock::RefuseSendsAfter(-1);
    Expect(from.sends(), 1, Status::kTransport);
    ExpectDisconnected(from, DisconnectCause::kBroken);
    EXPECT_TRUE(Run([&] { return from.pair().SendIdle(); }));
    DestroyEnds();
  }
}

// Of a read the device takes fewer segments than of anything else.
TEST_F(MishapsTest, ALongReadFitsIntoTheSmallestQueue) {
  constexpr int kSegments = 252;
  EndOptions small;
  small.max_sends = 1;
  small.max_segments = kSegments;
  End& from = NewEnd(a(), small);
  End& to = NewEnd(b());
  Connect(from, to);
  to.Put(0, Pattern(kSegments, 1));
  std::vector<Segment> segments;
  for (int i = 0; i < kSegments; ++i) segments.push_back(from.At(i, 1));
  SendRequest read;
  read.id = 1;
  read.opcode = Opcode::kRead;
  read.segments = segments;
  read.remote_address = to.Address(0);
  read.remote_key = to.region().key();
  ASSERT_EQ(from.pair().PostSend(read), PostResult::kOk);
  Expect(from.sends(), 1);
  EXPECT_EQ(from.Get(0, kSegments), Pattern(kSegments, 1));
}

// The device has no room for as many requests with inline bytes.
TEST_F(MishapsTest, ALargeQueueHasNoInlineBytes) {
  EndOptions large;
  large.max_sends = a().attributes().max_requests_per_queue;
  End& from = NewEnd(a(), large);
  End& to = NewEnd(b());
  ConnectWithImmediate(from, to);
  from.Put(0, Pattern(16, 1));
  const Segment two[] = {from.At(0, 8), from.At(8, 8)};
  for (int id : {1, 2, 3}) ASSERT_EQ(to.Receive(id, id * 16, 16), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 16), PostResult::kOk);
  ASSERT_EQ(from.Send(5, two), PostResult::kOk);
  ASSERT_EQ(from.Write(6, 0, 16, to, 1000, kImmediate, 42), PostResult::kOk);
  for (int id : {4, 5, 6}) Expect(from.sends(), id);
  for (int id : {1, 2}) {
    Expect(to.receives(), id);
    EXPECT_EQ(to.Get(id * 16, 16), Pattern(16, 1));
  }
  EXPECT_EQ(Expect(to.receives(), 3).immediate, 42u);
  EXPECT_EQ(to.Get(1000, 16), Pattern(16, 1));
}

// Nor with as many segments.
TEST_F(MishapsTest, ALargeQueueTakesLongLists) {
  constexpr uint32_t kSegments = 16;
  EndOptions large;
  large.max_sends = a().attributes().max_requests_per_queue;
  large.max_segments = kSegments;
  End& from = NewEnd(a(), large);
  End& to = NewEnd(b());
  Connect(from, to);
  from.Put(0, Pattern(16 * kSegments, 1));
  std::vector<Segment> list;
  for (uint32_t i = 0; i < kSegments; ++i) list.push_back(from.At(16 * i, 16));
  ASSERT_EQ(to.Receive(1, 0, 16 * kSegments), PostResult::kOk);
  ASSERT_EQ(from.Send(2, list), PostResult::kOk);
  SendRequest request;
  request.id = 3;
  request.segments = list;
  request.remote_address = to.Address(1000);
  request.remote_key = to.region().key();
  request.opcode = Opcode::kWrite;
  ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  for (int id : {2, 3}) Expect(from.sends(), id);
  Expect(to.receives(), 1);
  for (int at : {0, 1000}) EXPECT_EQ(to.Get(at, 16 * kSegments), Pattern(16 * kSegments, 1));
  from.Put(0, Bytes(16 * kSegments));
  request.id = 4;
  request.opcode = Opcode::kRead;
  ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  Expect(from.sends(), 4);
  EXPECT_EQ(from.Get(0, 16 * kSegments), Pattern(16 * kSegments, 1));
}

// Who listens may hold what the sink that is being called waits for.
TEST_F(MishapsTest, AListenAtATakenPortWaitsForNoSink) {
  Requests requests;
  auto first = b().Listen(0, &requests);
  ASSERT_TRUE(first.ok()) << first.status();
  std::promise<void> answered;
  a().executor().Post([&] { answered.get_future().wait(); });
  std::future<absl::Status> second = std::async(
      std::launch::async, [&] { return a().Listen((*first)->port(), &requests).status(); });
  EXPECT_EQ(second.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  answered.set_value();
  EXPECT_TRUE(absl::IsAlreadyExists(second.get()));
  DrainExecutors();
}

// Closes its listener with the first request.
class OnceServed final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    request_ = std::move(request);
    listener.reset();
  }
  std::unique_ptr<Listener> listener;

 private:
  std::unique_ptr<IncomingConnection> request_;
};

// The kernel would answer in the name of a program that has said no.
TEST_F(MishapsTest, ARequestThatNobodyHasReadIsRefusedWithItsListener) {
  if (!a().attributes().immediate_data) GTEST_SKIP() << "on iWARP no reason goes with a reject";
  OnceServed once;
  auto listener = b().Listen(0, &once);
  ASSERT_TRUE(listener.ok()) << listener.status();
  once.listener = *std::move(listener);
  Requests others;
  auto other = b().Listen(0, &others);
  ASSERT_TRUE(other.ok()) << other.status();
  End& first = NewEnd(a());
  End& second = NewEnd(a());
  End& third = NewEnd(a());
  const uint16_t port = once.listener->port();
  a().executor().Post([&] {  // so that all requests are there when the first is read
    EXPECT_TRUE(Dial(first, b(), port).ok());
    EXPECT_TRUE(Dial(second, b(), port).ok());
    EXPECT_TRUE(Dial(third, b(), (*other)->port()).ok());
  });
  const Event refused = AwaitEvent(second);
  EXPECT_EQ(refused.kind, Event::kConnectFailed);
  EXPECT_EQ(refused.outcome, ConnectOutcome::kRefused);
  EXPECT_EQ(first.events().count(), 0u);
  const auto request = AwaitRequest(others);
  ASSERT_NE(request, nullptr) << "it was read beside the second";
  End& to = NewEnd(b());
  EXPECT_TRUE(request->Accept(to.pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(third).kind, Event::kConnected);
  DrainExecutors();
}

// The device takes fewer segments: they are copied.
TEST_F(MishapsTest, ARegionEndsBehindItsCopyForASend) {
  constexpr int kSegments = 20;
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b());
  Connect(from, to);
  SlowPage page;
  auto region = a().Register(from.domain(), page.memory(), SlowPage::kBytes, kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  const Segment segment = {reinterpret_cast<uint64_t>(page.memory()), (*region)->key(), 8};
  const std::vector<Segment> segments(kSegments, segment);
  ASSERT_EQ(to.Receive(1, 0, 8 * kSegments), PostResult::kOk);
  std::thread poster([&] { from.Send(2, segments); });
  while (!page.touched()) std::this_thread::yield();
  region->reset();
  page.LetGo();
  poster.join();
  EXPECT_FALSE(page.in_use_until_then());
}

TEST_F(MishapsTest, ARegionChangesBehindItsCopyOfAMessage) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), drops);
  Connect(from, to);
  SlowPage page;
  auto region = b().Register(to.domain(), page.memory(), SlowPage::kBytes, kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  const Segment segment = {reinterpret_cast<uint64_t>(page.memory()), (*region)->key(), 8};
  ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  std::promise<void> begun, over;
  a().executor().Post([&] {  // it polls, too, and takes no signal
    begun.set_value();
    over.get_future().wait();
  });
  begun.get_future().wait();
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  std::thread poller([&] { to.receives().Poll(); });
  while (!page.touched()) std::this_thread::yield();
  EXPECT_TRUE((*region)->Modify(to.domain(), kLocalRead).ok());
  page.LetGo();
  poller.join();
  over.set_value();
  EXPECT_FALSE(page.in_use_until_then());
  Expect(to.receives(), 1);
  DrainExecutors();
}

// The peer is idle, and nothing else would tell it. On iWARP there is TCP for that.
TEST_F(MishapsTest, ADisconnectThatWasLostIsRepeated) {
  if (!a().attributes().immediate_data) GTEST_SKIP() << "on iWARP nothing is lost";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  for (DisconnectMode mode : {DisconnectMode::kAbrupt, DisconnectMode::kGraceful}) {
    Connect(from, to);
    rdma_mock::LoseDisconnects(1);
    from.pair().Disconnect(mode);
    if (mode == DisconnectMode::kGraceful) ExpectDisconnected(from, DisconnectCause::kLocal);
    for (int i = 0; i < 10; ++i) DrainExecutors();  // as far as it goes without an answer
    EXPECT_FALSE(to.events().Has(Event::kDisconnected));
    rdma_mock::RepeatDisconnects();
    ExpectDisconnected(to, DisconnectCause::kPeer);
    from.pair().Reset();
    to.pair().Reset();
  }
}

// What the device flushes behind the end of the connection is nobody's.
TEST_F(MishapsTest, ASharedReceiveThatNobodyPollsGoesBack) {
  End& from = NewEnd(a());
  auto domain = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok());
  SharedReceiveOptions shared;
  shared.domain = domain->get();
  shared.max_receives = 1;
  auto queue = b().CreateSharedReceiveQueue(shared);
  ASSERT_TRUE(queue.ok()) << queue.status();
  EndOptions options;
  options.domain = domain->get();
  options.shared_receives = queue->get();
  End& to = NewEnd(b(), options);
  Connect(from, to);
  const Segment segment = to.At(0, 8);
  ReceiveRequest request;
  request.id = 1;
  request.segments = absl::MakeConstSpan(&segment, 1);
  ASSERT_EQ((*queue)->PostReceive(request), PostResult::kOk);
  rdma_mock::GetMessagesStuck(1);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  rdma_mock::ShowNoCompletions(true);
  to.pair().Disconnect(DisconnectMode::kAbrupt);
  rdma_mock::ShowNoCompletions(false);
  ExpectDisconnected(from, DisconnectCause::kPeer);
  for (int i = 0; i < 10; ++i) to.receives().Poll();
  EXPECT_EQ((*queue)->available(), 1u);
  EXPECT_EQ((*queue)->outstanding(), 1u);
  from.pair().Reset();
  to.pair().Reset();
  from.sends().got().clear();
  Connect(from, to);
  from.Put(0, Pattern(8, 1));
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
  EXPECT_EQ(to.Get(0, 8), Pattern(8, 1));
  EXPECT_EQ((*queue)->outstanding(), 0u);
  DestroyEnds();
}

// What a pair has taken ahead is flushed in the device's time, and not behind the pair's end.
TEST_F(MishapsTest, ASharedReceiveThatIsFlushedLateIsNotLost) {
  if (!a().attributes().immediate_data)
    GTEST_SKIP() << "on iWARP no device says when it is flushed";
  SharedReceiveOptions shared;
  auto domain = b().CreateDomain(false);
  ASSERT_TRUE(domain.ok()) << domain.status();
  shared.domain = domain->get();
  shared.max_receives = 4;
  auto queue = b().CreateSharedReceiveQueue(shared);
  ASSERT_TRUE(queue.ok()) << queue.status();
  EXPECT_TRUE(Run([&] { return rdma_mock::LivePairs() == 0; }));
  EndOptions options;
  options.domain = domain->get();
  options.shared_receives = queue->get();
  End& from = NewEnd(a());
  End& to = NewEnd(b(), options);
  Connect(from, to);
  const Segment segment = to.At(0, 8);
  ReceiveRequest request;
  request.id = 1;
  request.segments = absl::MakeConstSpan(&segment, 1);
  ASSERT_EQ((*queue)->PostReceive(request), PostResult::kOk);
  rdma_mock::GetMessagesStuck(1);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  rdma_mock::FlushLate(true);
  to.pair().Disconnect(DisconnectMode::kAbrupt);
  ExpectDisconnected(from, DisconnectCause::kPeer);
  EXPECT_TRUE(Run([&] { return rdma_mock::LivePairs() == 1; }));
  rdma_mock::FlushLate(false);
  EXPECT_TRUE(Run([&] { return rdma_mock::LivePairs() == 0; }));
  from.pair().Reset();
  to.pair().Reset();
  from.sends().got().clear();
  Connect(from, to);
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
  EXPECT_EQ((*queue)->outstanding(), 0u);
  DestroyEnds();
}

// It would be repeated after seconds.
TEST_F(MishapsTest, AMessageSaysThatTheConnectionIsThere) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_TRUE(Dial(from, b(), (*listener)->port()).ok());
  const auto request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
  rdma_mock::LoseConfirmations(1);
  ASSERT_TRUE(request->Accept(to.pair(), {}).ok());
  ASSERT_EQ(AwaitEvent(from).kind, Event::kConnected);
  EXPECT_EQ(to.events().count(), 0u);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  EXPECT_EQ(AwaitEvent(to).kind, Event::kConnected);
  Expect(to.receives(), 1);
  Expect(from.sends(), 2);
}

// The peer's end is not known here yet when the request is posted.
TEST_F(MishapsTest, WhatTheDeviceNeverCompletesGoesWithItsPair) {
  const int domains = rdma_mock::LiveDomains();
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::SwallowAfterTheEnd(true);
  std::promise<void> posted;
  a().executor().Post([&] { posted.get_future().wait(); });
  to.pair().Disconnect(DisconnectMode::kAbrupt);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  posted.set_value();
  Expect(from.sends(), 1, Status::kFlushed);
  ExpectDisconnected(from, DisconnectCause::kPeer);
  DestroyEnds();
  EXPECT_TRUE(Run([&] { return rdma_mock::LiveDomains() == domains; }));
}

TEST_F(MishapsTest, PostsBesideTheEndLeaveNothingOpen) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  for (int round = 0; round < 100; ++round) {
    Connect(from, to);
    std::atomic<bool> over{false};
    std::thread poster([&] {
      while (!over) {
        from.Send(1, 0, 8);
        from.Receive(2, 0, 8);
      }
    });
    from.pair().Disconnect(DisconnectMode::kAbrupt);
    over = true;
    poster.join();
    ASSERT_TRUE(Run([&] { return to.events().Has(Event::kDisconnected); }));
    EXPECT_TRUE(Run([&] { return from.pair().SendIdle() && from.pair().ReceiveIdle(); })) << round;
    // A send that found no receive may have ended it before.
    DrainExecutors();
    for (End* end : {&from, &to}) {
      while (end->events().Take().kind != Event::kNone) {
      }
    }
    from.sends().got().clear();
    from.receives().got().clear();
    from.pair().Reset();
    to.pair().Reset();
  }
}

TEST_F(MishapsTest, AnAcceptWithoutMemoryDecidesTheRequest) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a());
  End& poor = NewEnd(b(), drops);
  End& other = NewEnd(b());
  Requests requests;
  auto listener = b().Listen(0, &requests);
  ASSERT_TRUE(listener.ok()) << listener.status();
  ASSERT_TRUE(Dial(from, b(), (*listener)->port()).ok());
  const std::unique_ptr<IncomingConnection> request = AwaitRequest(requests);
  ASSERT_NE(request, nullptr);
  rdma_mock::LimitRegistrations(0);
  EXPECT_TRUE(absl::IsResourceExhausted(request->Accept(poor.pair(), {})));
  rdma_mock::LimitRegistrations(-1);
  EXPECT_TRUE(absl::IsFailedPrecondition(request->Accept(other.pair(), {})));
  const Event failed = AwaitEvent(from);
  EXPECT_EQ(failed.kind, Event::kConnectFailed);
  EXPECT_EQ(failed.outcome, ConnectOutcome::kRefused);
}

// A pair that a request has broken ends in its turn, and says so then.
TEST_F(MishapsTest, ARefusedSendWaitsForThoseBeforeIt) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(3, 0, 8), PostResult::kOk);
  rdma_mock::ShowNoCompletions(true);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  const Segment unknown = {from.Address(0), 0x123456, 8};
  ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&unknown, 1)), PostResult::kOk);
  DrainExecutors();
  EXPECT_FALSE(from.pair().Ended());
  rdma_mock::ShowNoCompletions(false);
  Expect(from.sends(), 1);
  Expect(from.sends(), 2, Status::kLocalProtection);
  EXPECT_TRUE(from.pair().Ended());
  ExpectBroken(from);
}

// The places of frames come with the connection.
TEST_F(MishapsTest, ASendNeedsNoMemory) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ConnectAs(from, to,
            a().attributes().immediate_data ? ImmediateForm::kNative : ImmediateForm::kFramed);
  rdma_mock::LimitRegistrations(0);
  ASSERT_EQ(to.Receive(1, 0, 1000), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 1000), PostResult::kOk);
  Expect(from.sends(), 2);
  EXPECT_EQ(Expect(to.receives(), 1).length, 1000u);
}

// The slot for a frame and the memory behind it hold more than that memory alone.
TEST_F(MishapsTest, AMessageWithoutAFrameMayFillTheSlotOfOne) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  drops.memory = 80'000;
  End& to = NewEnd(a(), drops);
  EndOptions large;
  large.memory = 80'000;
  End& from = NewEnd(b(), large);
  ConnectAs(to, from, ImmediateForm::kNone, /*may_frame=*/true);
  ASSERT_EQ(to.Receive(1, 0, 80'000), PostResult::kOk);
  ASSERT_EQ(to.Receive(2, 0, 80'000), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 65536), PostResult::kOk);
  Expect(from.sends(), 3);
  EXPECT_EQ(Expect(to.receives(), 1).length, 65536u);
  if (!a().attributes().immediate_data) {
    ASSERT_EQ(from.Send(4, 0, 65548), PostResult::kOk);
    Expect(to.receives(), 2, Status::kLocalLength);
  }
}

}  // namespace
}  // namespace viaduct::verbs
