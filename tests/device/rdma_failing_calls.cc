// Each call to an RDMA device's libraries fails once, in each way in which it may, and so does each
// thing that the device or the kernel reports (tests/rdma_mock). The caller gets the error or never
// notices, the peer is notified of the end, nothing hangs or is left behind, and the next life is
// complete.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/device/device_under_test.h"
#include "tests/device/ends.h"
#include "tests/rdma_mock/failing_calls.h"
#include "tests/rdma_mock/kind.h"
#include "verbs/base/clock.h"
#include "verbs/base/control_thread.h"
#include "verbs/rdma/open.h"

namespace viaduct::verbs {
namespace {

constexpr Nanos kPatience = 20 * kNanosPerSecond;
constexpr size_t kBytes = 8192;
constexpr uint32_t kSegments = 40;  // more than the device takes at once

EventLoop& Loop() { return **ControlThread::Get(); }

absl::StatusOr<std::unique_ptr<Context>> OpenDevice(EventLoop& loop = Loop()) {
  return rdma::Open(loop, *Address::Parse("10.9.0.1"), "", /*spin=*/0);
}

// Thrown by a life that ends early, as it may if something has failed.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// False: `done` did not come true in time.
template <typename Done, typename Poll>
bool Await(const Done& done, const Poll& poll) {
  const Nanos end = Loop().Now() + kPatience;
  while (!done()) {
    if (Loop().Now() > end) return false;
    poll();
  }
  return true;
}

// Every object of the device has been given back, some of them a little later.
void ExpectLive(const std::string& before) {
  EXPECT_TRUE(Await([&] { return rdma_mock::LiveObjects() == before; }, [] { Loop().Drain(); }))
      << rdma_mock::LiveObjects() << "; before: " << before;
}

void Try(const absl::Status& status, const char* what) {
  if (!status.ok()) throw Refused(what + (": " + status.ToString()));
}
template <typename T>
T Made(absl::StatusOr<T> made, const char* what) {
  Try(made.status(), what);
  return *std::move(made);
}

struct Kind {
  const char* name;
  bool shared = false;    // receives
  bool drops = false;     // NoReceive::kDrop
  bool framed = false;    // where the device has no immediate data
  bool wildcard = false;  // domains
  bool rejects = false;
  bool abrupt = false;
  int connections = 1;  // of one pair of queue pairs, one after the other
};

// One end, which checks every result. Polled by the test's thread.
class Party {
 public:
  Party(Context& context, const Kind& kind) : memory_(kBytes) {
    domain_ = Made(context.CreateDomain(kind.wildcard), "a domain");
    region_ = Made(context.Register(*domain_, memory_.data(), kBytes, kAllAccess), "a region");
    // A program may change its mind: afterwards peers cannot reach this region any more.
    changed_ = Made(context.Register(*domain_, memory_.data(), kBytes, kAllAccess), "a region");
    Try(changed_->Modify(*domain_, kLocalRead | kLocalWrite), "a change of the region");
    window_ = Made(context.CreateWindow(*domain_, WindowScope::kQueuePair), "a window");
    other_window_ = Made(context.CreateWindow(*domain_, WindowScope::kDomain), "a window");
    sends_ = Made(context.CreateCompletionQueue(nullptr), "a queue");
    receives_ = Made(context.CreateCompletionQueue(nullptr), "a queue");
    QueuePairOptions options;
    if (kind.shared) {
      SharedReceiveOptions shared;
      shared.domain = domain_.get();
      shared.max_receives = 8;
      shared_ = Made(context.CreateSharedReceiveQueue(shared), "a shared queue");
      options.shared_receives = shared_.get();
    }
    options.domain = domain_.get();
    options.send_queue = sends_.get();
    options.receive_queue = receives_.get();
    options.sink = &events;
    options.max_sends = options.max_receives = 16;
    options.max_send_segments = kSegments;
    options.max_receive_segments = 2;
    options.remote_access = kRemoteRead | kRemoteWrite;
    if (kind.drops) options.no_receive = NoReceive::kDrop;
    pair_ = Made(context.CreateQueuePair(options), "a pair");
    options.max_sends = 20;
    Try(pair_->Modify(options), "a change of the pair");
  }

  Events events;
  QueuePair& pair() { return *pair_; }
  void DestroyPair() { pair_.reset(); }
  MemoryWindow& window(WindowScope scope) {
    return scope == WindowScope::kQueuePair ? *window_ : *other_window_;
  }
  Key key() const { return region_->key(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.data()); }

  void Poll() {
    for (CompletionQueue* queue : {sends_.get(), receives_.get()}) {
      Completion got[8];
      for (int i = queue->Poll(got, 8); i-- > 0;) {
        const uint64_t id = got[i].id;
        EXPECT_EQ(open_.erase(id) + shared_open_.erase(id), 1u) << "completes twice: " << id;
        done_[id] = got[i].status;
        if (queue == receives_.get() && got[i].status == Status::kSuccess) ++received_;
      }
    }
  }
  bool IsDone(uint64_t id) const { return done_.contains(id); }
  Status StatusOf(uint64_t id) const { return done_.at(id); }
  bool all_done() const { return open_.empty(); }
  int received() const { return received_; }

  void Receive() {
    const Segment segment = {address(), key(), 64};
    ReceiveRequest request;
    request.id = NextId();
    request.segments = {&segment, 1};
    if (shared_ == nullptr) {
      Note(request.id, pair_->PostReceive(request), "a receive");
    } else {
      Note(request.id, shared_->PostReceive(request), "a shared receive");
      open_.erase(request.id);
      shared_open_.insert(request.id);  // perhaps no message takes it
    }
  }
  uint64_t Send(Opcode opcode, uint16_t flags, const Party& to, uint32_t count) {
    std::vector<Segment> segments(count, {address() + 1024, key(), 1});
    if (count == 1) segments[0].length = 48;
    SendRequest request;
    request.id = NextId();
    request.opcode = opcode;
    request.flags = flags;
    request.segments = segments;
    request.remote_address = to.address() + 2048;
    request.remote_key = to.key();
    return Note(request.id, pair_->PostSend(request), "a send");
  }
  uint64_t Bind(WindowScope scope) {
    BindRequest request;
    request.id = NextId();
    request.window = &window(scope);
    request.region = key();
    request.address = address() + 2048;
    request.length = 100;
    request.access = kRemoteRead | kRemoteWrite;
    Key bound = 0;
    return Note(request.id, pair_->PostBind(request, &bound), "a bind");
  }

 private:
  uint64_t NextId() { return ++last_id_; }
  uint64_t Note(uint64_t id, PostResult result, const char* what) {
    if (result != PostResult::kOk) {
      throw Refused(std::string(what) + ": " + std::to_string(static_cast<int>(result)));
    }
    open_.insert(id);
    return id;
  }

  Bytes memory_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<MemoryRegion> region_, changed_;
  std::unique_ptr<MemoryWindow> window_, other_window_;
  std::unique_ptr<CompletionQueue> sends_, receives_;
  std::unique_ptr<SharedReceiveQueue> shared_;
  std::unique_ptr<QueuePair> pair_;
  uint64_t last_id_ = 0;
  std::set<uint64_t> open_, shared_open_;
  std::map<uint64_t, Status> done_;
  int received_ = 0;
};

// Two parties and what they do with each other. Ends as it should, or with Refused.
class Life {
 public:
  Life(Context& a, Context& b, const Kind& kind)
      : a_context_(a), b_context_(b), kind_(kind), a_(a, kind), b_(b, kind) {
    if (!kind.framed) return;
    a_.events.hook = [this](const Event& event) {
      if (event.kind == Event::kConnected) a_.pair().EnableImmediate(ImmediateForm::kFramed);
    };
  }

  void Live() {
    listener_ = Made(b_context_.Listen(0, &requests_), "a listener");
    for (int i = 0; i < kind_.connections; ++i) {
      Connect();
      if (kind_.rejects) return;
      Talk();
      Part();
    }
  }

 private:
  void Poll() {
    a_.Poll();
    b_.Poll();
  }
  template <typename Done>
  void Wait(const Done& done, const char* what) {
    if (Await(done, [this] { Poll(); })) return;
    ADD_FAILURE() << what << " never came";
    throw Refused(what);
  }
  Event Next(Party& party, const char* what) {
    Wait([&] { return party.events.count() != 0; }, what);
    return party.events.Take();
  }

  void Connect() {
    for (int i = 0; i < 3; ++i) {
      a_.Receive();
      b_.Receive();
    }
    ConnectOptions options;
    options.address = b_context_.address();
    options.port = listener_->port();
    options.may_frame = kind_.framed;
    const absl::Status dialled = a_.pair().Connect(options);
    EXPECT_TRUE(dialled.ok() || absl::IsResourceExhausted(dialled)) << dialled;
    Try(dialled, "Connect");
    Wait([&] { return requests_.count() + a_.events.count() != 0; }, "the request");
    const std::unique_ptr<IncomingConnection> request = requests_.Take();
    if (request == nullptr) CheckFailed(a_.events.Take());
    if (kind_.rejects) {
      request->Reject({});
      const Event event = Next(a_, "the reject");
      EXPECT_EQ(event.kind, Event::kConnectFailed);
      return;
    }
    if (kind_.framed) b_.pair().EnableImmediate(ImmediateForm::kFramed);
    const absl::Status accepted = request->Accept(b_.pair(), {});
    if (!accepted.ok()) {
      EXPECT_TRUE(absl::IsResourceExhausted(accepted)) << accepted;
      const Event refused = Next(a_, "the refusal");
      if (!MayLookRejected()) {
        EXPECT_EQ(refused.outcome, ConnectOutcome::kRefused);
      }
      CheckFailed(refused);
    }
    const Event begin_b = Next(b_, "the begin of the passive side");
    const Event begin_a = Next(a_, "the begin of the active side");
    // A side that was notified of the connection is also notified of its end.
    if (begin_a.kind != Event::kConnected) {
      if (begin_b.kind == Event::kConnected) ExpectEnd(b_);
      CheckFailed(begin_a);
    }
    if (begin_b.kind != Event::kConnected) {
      ExpectEnd(a_);
      CheckFailed(begin_b);
    }
  }

  // iWARP has only one kind of reject, and a kernel that fails an accept answers for the program.
  static bool MayLookRejected() {
    const char* const failed = rdma_mock::FailedCall();
    return rdma_mock::IsIwarp() || (failed != nullptr && std::string(failed) == "rdma_accept");
  }
  // The outcome must not be a reject, because no program has rejected the request.
  [[noreturn]] static void CheckFailed(const Event& event) {
    EXPECT_EQ(event.kind, Event::kConnectFailed);
    if (!MayLookRejected()) {
      EXPECT_NE(event.outcome, ConnectOutcome::kRejected);
    }
    throw Refused("no connection: " + std::to_string(static_cast<int>(event.outcome)));
  }

  void ExpectEnd(Party& party) {
    const Event event = Next(party, "the end");
    EXPECT_EQ(event.kind, Event::kDisconnected);
    Wait([&] { return party.all_done(); }, "what is flushed");
  }

  void Do(Party& from, uint64_t id, Party& to, int messages) {
    Wait([&] { return from.IsDone(id); }, "a completion");
    if (from.StatusOf(id) == Status::kSuccess) {
      const int before = expected_[&to];
      expected_[&to] = before + messages;
      Wait([&] { return to.received() >= expected_[&to] || to.events.count() != 0; }, "a message");
      if (to.received() >= expected_[&to]) return;
    } else if (kind_.drops && a_.events.count() + b_.events.count() == 0) {
      throw Refused("it failed alone");
    }
    Lost();
  }
  // Both sides are notified.
  [[noreturn]] void Lost() {
    ExpectEnd(a_);
    ExpectEnd(b_);
    throw Refused("the connection is lost");
  }

  void Talk() {
    const uint16_t confirm = kConfirm;
    Do(a_, a_.Send(Opcode::kSend, 0, b_, 1), b_, 1);
    Do(b_, b_.Send(Opcode::kSend, confirm, a_, 1), a_, 1);
    a_.Receive();
    Do(b_, b_.Send(Opcode::kSend, 0, a_, kSegments), a_, 1);
    Do(a_, a_.Send(Opcode::kWrite, confirm, b_, 1), b_, 0);
    Do(a_, a_.Send(Opcode::kRead, 0, b_, 1), b_, 0);
    Do(b_, b_.Send(Opcode::kRead, kFence, a_, kSegments), a_, 0);
    Do(b_, b_.Bind(WindowScope::kQueuePair), a_, 0);
    Do(a_, a_.Bind(WindowScope::kDomain), b_, 0);
    const bool immediate = a_context_.attributes().immediate_data || kind_.framed;
    if (immediate && !kind_.drops) {
      b_.Receive();
      Do(a_, a_.Send(Opcode::kWrite, kImmediate, b_, 1), b_, 1);
    }
  }

  void Part() {
    if (kind_.abrupt) {
      b_.pair().Disconnect(DisconnectMode::kAbrupt);
      Wait([&] { return b_.all_done(); }, "what is flushed");
    } else {
      b_.pair().Disconnect(DisconnectMode::kGraceful);
      ExpectEnd(b_);
    }
    ExpectEnd(a_);
    a_.pair().Reset();
    b_.pair().Reset();
  }

  Context& a_context_;
  Context& b_context_;
  const Kind kind_;
  Requests requests_;
  Party a_, b_;
  std::map<const Party*, int> expected_;
  std::unique_ptr<Listener> listener_;
};

// Whether to print what each failure led to.
bool Told() { return std::getenv("RDMA_FAILING_CALLS_TOLD") != nullptr; }

class FailingCalls : public testing::TestWithParam<Kind> {};

// Runs in a process of its own, because an open device stays open. The process ends with 0, with 1
// if the test has failed there, or with:
constexpr int kNothingFailed = 7;
int OpenWithFailure(int n, int form) {
  const std::string before = rdma_mock::LiveObjects();
  rdma_mock::FailCall(n, form);
  auto context = OpenDevice();
  const char* const failed = rdma_mock::FailedCall();
  rdma_mock::FailCall(0, 0);
  SCOPED_TRACE(failed != nullptr ? failed : "nothing");
  if (!context.ok()) {
    EXPECT_NE(failed, nullptr) << context.status();
    ExpectLive(before);
    context = OpenDevice();
    EXPECT_TRUE(context.ok()) << context.status();
  }
  try {
    if (context.ok()) Life(**context, **context, Kind{.name = "Plain"}).Live();
  } catch (const Refused& early) {
    ADD_FAILURE() << early.what();
  }
  if (testing::Test::HasFailure()) return 1;
  return failed == nullptr ? kNothingFailed : 0;
}

TEST(FailingCallsOfOpening, EachFails) {
  for (int form = 0; form < rdma_mock::kFailureForms; ++form) {
    int n = 1;
    for (int ended = 0; ended == 0; ++n) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        alarm(60);
        _exit(OpenWithFailure(n, form));
      }
      int status;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status)) << form << ", call " << n << ": wait status " << status;
      ended = WEXITSTATUS(status);
      EXPECT_TRUE(ended == 0 || ended == kNothingFailed) << form << ", call " << n;
    }
    EXPECT_GT(n, 10);
  }
}

// A child may not use what librdmacm has of the parent's device.
TEST(FailingCallsOfOpening, AChildOfOneWithADeviceIsRefused) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(60);
    EventLoop& loop = Loop();  // for its child too, which under TSan may not start a thread
    const auto context = OpenDevice(loop);
    EXPECT_TRUE(context.ok()) << context.status();
    const pid_t its_child = fork();
    if (its_child == 0) _exit(absl::IsFailedPrecondition(OpenDevice(loop).status()) ? 0 : 1);
    int status = -1;
    EXPECT_EQ(waitpid(its_child, &status, 0), its_child);
    EXPECT_EQ(status, 0);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Returns how a life ends: the message of Refused, or an empty string if it ends as it should.
std::string HowItEnds(Context& a, Context& b, const Kind& kind) {
  const std::string before = rdma_mock::LiveObjects();
  std::string how;
  try {
    Life(a, b, kind).Live();
  } catch (const Refused& early) {
    how = early.what();
  }
  ExpectLive(before);
  return how;
}

TEST_P(FailingCalls, EachFails) {
  if (GetParam().framed && !rdma_mock::IsIwarp()) GTEST_SKIP() << "it has immediate data";
  const std::unique_ptr<DeviceUnderTest> device = DeviceUnderTest::Make();
  for (int form = 0; form < rdma_mock::kFailureForms; ++form) {
    std::set<std::string> survived;
    bool whole = false;
    for (int n = 1; !whole && !HasFailure(); ++n) {
      rdma_mock::FailCall(n, form);
      const std::string how = HowItEnds(device->a(), device->b(), GetParam());
      whole = rdma_mock::FailedCall() == nullptr;
      const std::string failed = whole ? "nothing" : rdma_mock::FailedCall();
      rdma_mock::FailCall(0, 0);
      SCOPED_TRACE(failed + " failed in form " + std::to_string(form) + ": " + how);
      if (Told()) printf("%d %d %s: %s\n", form, n, failed.c_str(), how.c_str());
      if (whole) {
        EXPECT_EQ(how, "");
        EXPECT_GT(n, 20);
      } else if (survived.insert(failed).second) {
        EXPECT_EQ(HowItEnds(device->a(), device->b(), GetParam()), "") << "the next life";
      }
      EXPECT_FALSE(HasFailure());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, FailingCalls,
                         testing::Values(Kind{.name = "Plain", .connections = 2},
                                         Kind{.name = "Shared", .shared = true, .abrupt = true},
                                         Kind{.name = "Drops", .drops = true},
                                         Kind{.name = "Framed", .framed = true, .connections = 2},
                                         Kind{.name = "Wildcard", .wildcard = true, .abrupt = true},
                                         Kind{.name = "Rejected", .rejects = true}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace viaduct::verbs
