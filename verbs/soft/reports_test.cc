// What a pair reports to its sink soon after it has happened: everything is reported, before the
// end of its own connection, and nothing in a later connection.
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/control_thread.h"
#include "verbs/device.h"
#include "verbs/soft/context.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/testing_wire.h"

namespace viaduct::verbs {
namespace {

using Arrival = std::function<void(SoftQueuePair&)>;

// Hands its pair whatever the test lets arrive.
class ScriptedLink final : public Link {
 public:
  explicit ScriptedLink(SoftQueuePair& pair) : pair_(pair) {}
  void Arrive(std::deque<Arrival> arrivals) {
    arrivals_ = std::move(arrivals);
    pair_.MarkArrived();
  }

  void Pump() override {}
  bool Poll(int) override {
    const std::deque<Arrival> arrivals = std::exchange(arrivals_, {});
    for (const Arrival& arrival : arrivals) arrival(pair_);
    return !arrivals.empty();
  }
  bool Arrived() const override { return !arrivals_.empty(); }
  bool AllTaken() const override { return arrivals_.empty(); }
  void Start() override {}
  void Heat() override {}
  bool Cool() override { return false; }
  void Disconnect(Status) override {}

 private:
  SoftQueuePair& pair_;
  std::deque<Arrival> arrivals_;
};

struct Sink final : ConnectionSink {
  void OnConnected(QueuePair&, absl::Span<const uint8_t>) override { heard += "connected "; }
  void OnConnectFailed(QueuePair&, ConnectOutcome how, absl::Span<const uint8_t>) override {
    heard += "failed ";
    outcome = how;
  }
  void OnDisconnected(QueuePair&, DisconnectCause) override { heard += "disconnected "; }
  void OnDropped(QueuePair&) override {
    heard += "dropped ";
    if (on_dropped) std::exchange(on_dropped, nullptr)();
  }
  void OnRefusedWrite(QueuePair&) override { heard += "refused-write "; }
  void OnDamage(QueuePair&, Damage) override {
    heard += "damage ";
    if (on_damage) std::exchange(on_damage, nullptr)();
  }

  std::string heard;
  ConnectOutcome outcome = ConnectOutcome::kGone;
  std::function<void()> on_dropped;
  std::function<void()> on_damage;
};

void DropMessage(SoftQueuePair& pair) {
  pair.StartReceive();
  pair.FinishReceive(0, Trailer{});
}
void RefuseWrite(SoftQueuePair& pair) {
  pair.PlaceWrite(/*key=*/12345, 0, 8, false, [](unsigned char*, uint64_t, uint32_t) {});
  pair.FinishWrite(8, Trailer{});
}
void Fail(SoftQueuePair& pair) { pair.Fail(Status::kTransport); }
void FailCorrupt(SoftQueuePair& pair) {
  pair.SetCorrupt();
  Fail(pair);
}

// Everything runs on the loop: a pair's report comes after the task that causes it.
class ReportsTest : public testing::Test {
 protected:
  ReportsTest()
      : context_(TestWireOptions(loop_, link_, outcome_)),
        domain_(*context_.CreateDomain(false)),
        queue_(*context_.CreateCompletionQueue(nullptr)) {
    QueuePairOptions options;
    options.domain = domain_.get();
    options.send_queue = options.receive_queue = queue_.get();
    options.sink = &sink_;
    options.max_sends = options.max_receives = 1;
    options.no_receive = NoReceive::kDrop;
    pair_ = *context_.CreateQueuePair(options);
  }
  void Connect() {
    ConnectOptions options;
    options.address = *Address::Parse("127.0.0.1");
    options.port = 1;
    ASSERT_TRUE(pair_->Connect(options).ok());
    Settle();
  }
  void Settle() {
    for (int i = 0; i < 3; ++i) loop_.Drain();
  }
  void Arrive(std::deque<Arrival> arrivals) {
    link_->Arrive(std::move(arrivals));
    Completion none;
    queue_->Poll(&none, 1);
  }

  ControlThread& loop_ = **ControlThread::Get();
  std::unique_ptr<ScriptedLink> link_;
  TestOutcome outcome_ = [](SoftQueuePair& pair, const Link& link) { pair.Established(link, {}); };
  SoftContext context_;
  Sink sink_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<QueuePair> pair_;
};

TEST_F(ReportsTest, EachComesBeforeTheEnd) {
  Connect();
  // These arrive while the sink is called for the first one.
  sink_.on_dropped = [this] { Arrive({DropMessage, DropMessage, Fail}); };
  loop_.RunAndWait([this] { Arrive({DropMessage}); });
  Settle();
  EXPECT_EQ(sink_.heard, "connected dropped dropped dropped disconnected ");
}

TEST_F(ReportsTest, NoneIsOfTheConnectionBefore) {
  Connect();
  loop_.RunAndWait([this] {
    Arrive({DropMessage, RefuseWrite});
    pair_->Disconnect(DisconnectMode::kAbrupt);
  });
  Settle();
  pair_->Reset();
  Connect();
  loop_.RunAndWait([this] { Arrive({DropMessage}); });
  Settle();
  EXPECT_EQ(sink_.heard, "connected connected dropped ");
}

TEST_F(ReportsTest, NoneIsOfTheConnectionBeforeThoughItsSinkIsBeingTold) {
  Connect();
  sink_.on_dropped = [this] {
    pair_->Disconnect(DisconnectMode::kAbrupt);
    pair_->Reset();
    Connect();
  };
  loop_.RunAndWait([this] { Arrive({DropMessage, DropMessage, RefuseWrite}); });
  Settle();
  EXPECT_EQ(sink_.heard, "connected dropped connected ");
}

TEST_F(ReportsTest, AConnectionHasEndedUntilTheResetUnlessThisSideEndedIt) {
  Connect();
  loop_.RunAndWait([this] { Arrive({Fail}); });
  Settle();
  EXPECT_TRUE(pair_->Ended());
  pair_->Reset();
  EXPECT_FALSE(pair_->Ended());
  Connect();
  pair_->Disconnect(DisconnectMode::kGraceful);
  Settle();
  EXPECT_EQ(sink_.heard, "connected disconnected connected disconnected ");
  EXPECT_FALSE(pair_->Ended());
}

TEST_F(ReportsTest, DamageComesBeforeTheEnd) {
  Connect();
  loop_.RunAndWait([this] { Arrive({FailCorrupt}); });
  Settle();
  EXPECT_EQ(sink_.heard, "connected damage disconnected ");
}

TEST_F(ReportsTest, TheEndIsNotToldBehindAnAbruptOneInsideTheDamage) {
  Connect();
  sink_.on_damage = [this] { pair_->Disconnect(DisconnectMode::kAbrupt); };
  loop_.RunAndWait([this] { Arrive({FailCorrupt}); });
  Settle();
  EXPECT_EQ(sink_.heard, "connected damage ");
}

TEST_F(ReportsTest, TheEndIsNotToldOfTheNextAttempt) {
  Connect();
  sink_.on_damage = [this] {
    pair_->Reset();
    Connect();
  };
  loop_.RunAndWait([this] { Arrive({FailCorrupt}); });
  Settle();
  EXPECT_EQ(sink_.heard, "connected damage connected ");
}

TEST_F(ReportsTest, AnOutcomeIsThatOfItsOwnAttempt) {
  outcome_ = [](SoftQueuePair&, const Link&) {};  // the test decides
  Connect();
  const std::unique_ptr<ScriptedLink> first = std::move(link_);
  pair_->Disconnect(DisconnectMode::kAbrupt);
  Connect();
  auto& pair = static_cast<SoftQueuePair&>(*pair_);
  loop_.RunAndWait([&] {
    EXPECT_FALSE(pair.Established(*first, {}));
    EXPECT_FALSE(pair.ConnectFailed(*first, ConnectOutcome::kRejected, {}));
    EXPECT_FALSE(pair.NotHere(*first));
    EXPECT_FALSE(pair.StartAgain(*first));
    EXPECT_EQ(sink_.heard, "");
    EXPECT_TRUE(pair.Established(*link_, {}));
  });
  Settle();
  EXPECT_EQ(sink_.heard, "connected ");
}

// Somebody may listen where there was no memory to find out, whatever another wire says.
TEST_F(ReportsTest, WhoCouldNotBeLookedForIsNotNobody) {
  using Note = void (SoftQueuePair::*)();
  constexpr Note kShort = &SoftQueuePair::NoteNoResources, kFull = &SoftQueuePair::NoteBacklogFull;
  struct Case {
    std::vector<Note> notes;
    ConnectOutcome outcome;
  };
  const std::vector<Case> cases = {
      {{}, ConnectOutcome::kNobody},
      {{kFull}, ConnectOutcome::kRefused},
      {{kShort}, ConnectOutcome::kNoResources},
      {{kFull, kShort}, ConnectOutcome::kNoResources},
  };
  for (const Case& one : cases) {
    outcome_ = [&one](SoftQueuePair& pair, const Link& link) {
      for (const Note note : one.notes) (pair.*note)();
      pair.ConnectFailed(link, ConnectOutcome::kNobody, {});
    };
    Connect();
    EXPECT_EQ(sink_.outcome, one.outcome);
  }
}

}  // namespace
}  // namespace viaduct::verbs
