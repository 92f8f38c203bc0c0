// How connections end, and what can be done with an endpoint afterwards.
#include <cstdint>
#include <string>

#include "dat/core/handle_table.h"
#include "dat/core/notifier.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

using State = EndpointState;
using verbs::DisconnectMode;

class DisconnectTest : public EngineTest {};

// After this time a message that finds no receive no longer holds up the end.
constexpr verbs::Nanos kPastHeld = 2 * kSecond;

// The words that begin with one of `ids`: each work queue has an order, both together have none.
Words Of(const Words& words, const std::string& ids) {
  Words chosen;
  for (const std::string& word : words) {
    if (ids.find(word[0]) != std::string::npos) chosen.push_back(word);
  }
  return chosen;
}

// -------------------------------------------------------------------------------- graceful

TEST_F(DisconnectTest, GracefulDrainsFirst) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  // No receive is posted yet, so the sends that are to be confirmed stay outstanding.
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(a.Send(id, verbs::kConfirm).ok());
  ASSERT_TRUE(a.Receive(8).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  EXPECT_EQ(a->state(), State::kDisconnectPending);
  EXPECT_EQ(a.Send(4), Error(Code::kInvalidState, static_cast<uint8_t>(State::kDisconnectPending)))
      << "no new requests";
  ASSERT_TRUE(a.Receive(9).ok()) << "receives may still be posted";
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok()) << "no effect";
  RunFor(kSecond);
  EXPECT_FALSE(a.Heard());
  EXPECT_EQ(b->state(), State::kConnected);
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(b.Receive(id).ok());
  RunFor(kSecond);
  const Words words = a.Listen();
  EXPECT_EQ(words.size(), 6u);
  EXPECT_EQ(words.back(), "disconnected");
  EXPECT_EQ(Of(words, "123"), (Words{"1 ok", "2 ok", "3 ok"}));
  EXPECT_EQ(Of(words, "89"), (Words{"8 flushed", "9 flushed"}));
  EXPECT_EQ(b.Listen(), (Words{"1 ok", "2 ok", "3 ok", "disconnected"}));
  EXPECT_EQ(a->state(), State::kDisconnected);
  EXPECT_EQ(b->state(), State::kDisconnected);
}

TEST_F(DisconnectTest, GracefulWithNothingOutstandingEndsSoon) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kGraceful).ok());
  RunFor(kMilli);
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  EXPECT_EQ(b.Listen(), Words{"disconnected"});
}

TEST_F(DisconnectTest, GracefulDeliversUnconfirmedMessagesThatFindTheirReceives) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(b.Receive(1).ok());
  ASSERT_TRUE(b.Receive(2).ok());
  ASSERT_TRUE(a.Send(1).ok());
  ASSERT_TRUE(a.Send(2).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"1 ok", "2 ok", "disconnected"}));
  EXPECT_EQ(b.Listen(), (Words{"1 ok", "2 ok", "disconnected"}));
}

TEST_F(DisconnectTest, AbruptEndsADrain) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a.Send(1, verbs::kConfirm).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  RunFor(kMilli);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a->state(), State::kDisconnected);
  EXPECT_EQ(a.Listen(), (Words{"1 flushed", "disconnected"}));
  RunFor(kPastHeld);
  EXPECT_FALSE(a.Heard());
  EXPECT_EQ(b.Listen(), Words{"disconnected"});
}

TEST_F(DisconnectTest, BothSidesDrainAtOnce) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  for (End* end : {&a, &b}) {
    ASSERT_TRUE(end->Receive(1).ok());
    ASSERT_TRUE(end->Send(2, verbs::kConfirm).ok());
  }
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kGraceful).ok());
  RunFor(kSecond);
  for (End* end : {&a, &b}) {
    EXPECT_EQ((*end)->state(), State::kDisconnected);
    const Words words = end->Listen();
    ASSERT_EQ(words.size(), 3u);
    EXPECT_EQ(words.back(), "disconnected");
    EXPECT_EQ(Of(words, "1"), Words{"1 ok"});
  }
}

TEST_F(DisconnectTest, PeerEndsTheConnectionDuringTheDrain) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a.Send(1, verbs::kConfirm).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"1 flushed", "disconnected"}));
  EXPECT_EQ(b.Listen(), Words{"disconnected"});
}

TEST_F(DisconnectTest, PeerDiesDuringTheDrain) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a.Send(1, verbs::kConfirm).ok());
  ASSERT_TRUE(a.Send(2, verbs::kConfirm).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  simulation_.Kill(b_->context());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"1 transport", "2 flushed", "broken"}));
  EXPECT_EQ(a->state(), State::kDisconnected);
}

// ---------------------------------------------------------------------------------- abrupt

TEST_F(DisconnectTest, AbruptFlushesInOrderBeforeItsEvent) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(a.Send(id, verbs::kConfirm).ok());
  for (uint64_t id : {4, 5}) ASSERT_TRUE(a.Receive(id).ok());
  for (uint64_t id : {6, 7}) ASSERT_TRUE(b.Receive(id).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a->state(), State::kDisconnected);
  const Words words = a.Listen();
  ASSERT_EQ(words.size(), 6u);
  EXPECT_EQ(words.back(), "disconnected") << "behind every completion";
  EXPECT_EQ(Of(words, "123"), (Words{"1 flushed", "2 flushed", "3 flushed"}));
  EXPECT_EQ(Of(words, "45"), (Words{"4 flushed", "5 flushed"}));
  RunFor(kPastHeld);
  EXPECT_FALSE(a.Heard());
  // The messages that were in flight have arrived.
  EXPECT_EQ(b.Listen(), (Words{"6 ok", "7 ok", "disconnected"}));
}

TEST_F(DisconnectTest, WhatIsPostedAfterTheEndIsFlushed) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  ASSERT_TRUE(a.Send(1).ok());
  EXPECT_EQ(a.Listen(), Words{"1 flushed"});
  ASSERT_TRUE(a.Receive(2).ok());
  EXPECT_EQ(a.Listen(), Words{"2 flushed"});
}

TEST_F(DisconnectTest, BothSidesDisconnectAtOnce) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok()) << "no effect";
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  EXPECT_EQ(b.Listen(), Words{"disconnected"});
}

TEST_F(DisconnectTest, ResetConnectionBreaksBothSidesOnce) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a.Receive(1).ok());
  simulation_.ResetConnections(a_->context(), b_->context());
  RunFor(kSecond);
  simulation_.Kill(b_->context());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"1 flushed", "broken"}));
  EXPECT_EQ(b.Listen(), Words{"broken"});
}

TEST_F(DisconnectTest, RefusedRequestBreaksBothSides) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(b.Receive(1).ok());
  const verbs::Segment wrong = {0x1000, 0x7ffffff0, 8};
  verbs::SendRequest request;
  request.id = 2;
  request.segments = absl::MakeConstSpan(&wrong, 1);
  ASSERT_TRUE(a->PostSend(request, wrong.length).ok());
  RunUntil([&] { return a.Heard() && b.Heard(); });
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"2 local protection", "broken"}));
  EXPECT_EQ(b.Listen(), (Words{"1 flushed", "broken"}));
}

TEST_F(DisconnectTest, DisconnectIsRefusedWhereThereIsNothingToEnd) {
  End a(*a_);
  EXPECT_EQ(a->Disconnect(DisconnectMode::kAbrupt).code, Code::kInvalidState);
  EXPECT_EQ(a->Disconnect(DisconnectMode::kGraceful).code, Code::kInvalidState);
}

// The program may be about to take the message that has come; but a request that waits for the
// peer's answer would wait for ever.
TEST_F(DisconnectTest, AHeldMessageHoldsUpThePeersEndUnlessARequestWaits) {
  for (const bool waits : {false, true}) {
    End a(*a_), b(*b_);
    Join(a, *b_, b);
    ASSERT_TRUE(b.Send(1).ok());
    if (waits) {
      ASSERT_TRUE(a.Send(2, verbs::kConfirm).ok());
    }
    RunFor(kSecond);
    ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
    RunFor(kSecond / 2);
    EXPECT_EQ(a->state(), waits ? State::kDisconnected : State::kConnected);
    RunFor(kPastHeld);
    EXPECT_EQ(a->state(), State::kDisconnected);
  }
}

// ------------------------------------------------------------------------------- the observer

struct Observer final : EndpointObserver {
  void OnDisconnected(bool broken) override { words.push_back(broken ? "broken" : "ended"); }
  void OnDropped() override { words.push_back("dropped"); }
  void OnRefusedWrite() override { words.push_back("refused"); }
  void OnRefusedRead() override { words.push_back("refused read"); }
  void OnDamage(verbs::Damage) override { words.push_back("damage"); }
  Words words;
};

TEST_F(DisconnectTest, ObserverHearsOfThePeersDoingOnly) {
  Observer observer;
  End a(*a_), b(*b_);
  Endpoint::Parts parts = a.Parts();
  parts.observer = &observer;
  ASSERT_TRUE(a->Modify(&parts, nullptr).ok());
  Join(a, *b_, b);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
  RunFor(kSecond);
  EXPECT_TRUE(observer.words.empty());
  EXPECT_EQ(b.Listen(), Words{"disconnected"});
  ASSERT_TRUE(a->Reset().ok());
  ASSERT_TRUE(b->Reset().ok());
  a.Listen();
  Join(a, *b_, b);
  ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
  RunFor(kSecond);
  EXPECT_EQ(observer.words, Words{"ended"});
}

// ------------------------------------------------------------------------- the next life

TEST_F(DisconnectTest, EndpointsAreUsedAgainAfterReset) {
  End a(*a_), b(*b_);
  for (int round = 0; round < 3; ++round) {
    Join(a, *b_, b);
    ASSERT_TRUE(b.Receive(1).ok());
    ASSERT_TRUE(a.Send(2, verbs::kConfirm).ok());
    RunFor(kSecond);
    EXPECT_EQ(a->Reset().code, Code::kInvalidState) << "connected";
    ASSERT_TRUE((round == 1 ? b : a)->Disconnect(DisconnectMode::kAbrupt).ok());
    RunFor(kSecond);
    EXPECT_EQ(a.Listen(), (Words{"2 ok", "disconnected"}));
    EXPECT_EQ(b.Listen(), (Words{"1 ok", "disconnected"}));
    for (End* end : {&a, &b}) {
      ASSERT_TRUE((*end)->Reset().ok());
      ASSERT_TRUE((*end)->Reset().ok()) << "no effect";
      EXPECT_EQ((*end)->state(), State::kUnconnected);
      EXPECT_EQ((*end)->remote_qualifier(), 0u);
      EXPECT_TRUE((*end)->remote_address().IsUnspecified());
    }
  }
}

TEST_F(DisconnectTest, OldConnectionDoesNotReachTheNewOne) {
  End a(*a_), b(*b_), c(*b_);
  Join(a, *b_, b);
  ASSERT_TRUE(a->Disconnect(DisconnectMode::kAbrupt).ok());
  ASSERT_TRUE(a->Reset().ok());
  EXPECT_EQ(a.Listen(), Words{"disconnected"});
  // b has not heard of the end yet, and its messages are still in flight.
  ASSERT_TRUE(b.Send(1).ok());
  ASSERT_TRUE(a.Receive(2).ok());
  Join(a, *b_, c);
  RunFor(kSecond);
  EXPECT_EQ(b.Listen(), (Words{"1 ok", "disconnected"}));
  EXPECT_FALSE(a.Heard()) << "nothing was sent to it";
}

TEST_F(DisconnectTest, IdleEndpointFlushesWhatIsPosted) {
  End a(*a_), b(*b_);
  ASSERT_TRUE(a.Receive(1).ok());
  ASSERT_TRUE(a->FlushPosted().ok());
  EXPECT_EQ(a.Listen(), Words{"1 flushed"});
  EXPECT_EQ(a->state(), State::kUnconnected);
  Join(a, *b_, b);
  EXPECT_EQ(a->FlushPosted().code, Code::kInvalidState);
}

// ------------------------------------------------------------------------------------ free

TEST_F(DisconnectTest, FreeInEveryStateOfTheActiveSide) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  const size_t handles = HandleTable::Size();
  const char* const phases[] = {"idle",      "dialling",      "waiting", "between rounds",
                                "connected", "disconnecting", "ended"};
  for (const std::string phase : phases) {
    SCOPED_TRACE(phase);
    {
      End a(*a_), b(*b_);
      ASSERT_TRUE(b.Receive(1).ok());
      if (phase == "dialling" || phase == "waiting") {
        ASSERT_TRUE(a.Connect(*b_, Direct(), "", In(kSecond)).ok());
      }
      if (phase == "waiting") {
        const Ref<ConnectionRequest> request = AwaitRequest(*b_);
        ASSERT_TRUE(a->Free().ok());
        RunFor(kMilli);
        ASSERT_TRUE(request->Accept(&*b, {}).ok());
        RunFor(kMilli);
        EXPECT_EQ(b.Listen(), (Words{"1 flushed", "accept completion error"}));
      } else if (phase == "between rounds") {
        ASSERT_TRUE(
            a.ConnectVipl(*b_, ServiceName::FromQualifier(6000), kSecond, In(kSecond)).ok());
        RunFor(25 * kMilli);
        ASSERT_TRUE(a->Free().ok());
      } else if (phase == "connected" || phase == "disconnecting" || phase == "ended") {
        ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
        ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
        RunUntil([&] { return a.Heard() && b.Heard(); });
        EXPECT_EQ(b.Listen(), Words{"established"});
        if (phase == "disconnecting") {
          ASSERT_TRUE(a.Send(2, verbs::kConfirm).ok());
          ASSERT_TRUE(a.Send(3, verbs::kConfirm).ok());
          ASSERT_TRUE(a->Disconnect(DisconnectMode::kGraceful).ok());
        }
        if (phase == "ended") {
          ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok());
          RunFor(kMilli);
        }
        ASSERT_TRUE(a->Free().ok());
        RunFor(kPastHeld);
        const Words words = b.Listen();
        ASSERT_EQ(words.size(), 2u);
        EXPECT_EQ(words[0], phase == "disconnecting" ? "1 ok" : "1 flushed");
        EXPECT_EQ(words[1], "disconnected");
      } else {
        ASSERT_TRUE(a->Free().ok());
      }
      EXPECT_FALSE(ShareObject<Endpoint>(a->handle()));
      EXPECT_EQ(a->Free().code, Code::kInvalidHandle);
      a.Listen();
      RunFor(2 * kSecond);
      EXPECT_FALSE(a.Heard()) << "nothing after the Free";
    }
    while (const Ref<ConnectionRequest> late = b_->NextRequest()) late->Destroy();
    EXPECT_EQ(HandleTable::Size(), handles);
  }
}

TEST_F(DisconnectTest, FreeOfTheAcceptingSide) {
  const Ref<ServicePoint> point = b_->Listen(Direct());
  End a(*a_), b(*b_);
  ASSERT_TRUE(a.Connect(*b_, Direct()).ok());
  ASSERT_TRUE(AwaitRequest(*b_)->Accept(&*b, {}).ok());
  ASSERT_EQ(b->state(), State::kCompletionPending);
  ASSERT_TRUE(b->Free().ok());
  RunFor(kSecond);
  EXPECT_EQ(a.Listen(), (Words{"established", "disconnected"}));
  EXPECT_FALSE(b.Heard());
}

TEST_F(DisconnectTest, FreeGivesBackWhatTheEndpointUsed) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  EXPECT_EQ(a.events().Free(), InvalidState(StateDetail::kDispatcherInUse));
  EXPECT_EQ(a_->zone().Free(), InvalidState(StateDetail::kZoneInUse));
  ASSERT_TRUE(a->Free().ok());
  EXPECT_TRUE(a.events().Free().ok());
}

// -------------------------------------------------------------------- the adapter's close

TEST_F(DisconnectTest, GracefulCloseIsRefusedWhileAnythingIsOpen) {
  EXPECT_EQ(a_->adapter().Close(InterfaceAdapter::CloseMode::kGraceful),
            InvalidState(StateDetail::kAdapterInUse));
  EXPECT_TRUE(a_->requests().Free().ok());
  EXPECT_TRUE(a_->zone().Free().ok());
  EXPECT_TRUE(a_->adapter().Close(InterfaceAdapter::CloseMode::kGraceful).ok());
  EXPECT_EQ(a_->adapter().Close(InterfaceAdapter::CloseMode::kGraceful),
            InvalidHandle<InterfaceAdapter>());
}

// An adapter's own dispatcher for asynchronous events is not the consumer's to free, and another
// adapter's dispatcher is none of its objects.
TEST_F(DisconnectTest, GracefulCloseForgivesItsOwnDispatcherAlone) {
  const Ref<EventDispatcher> errors = b_->MakeDispatcher();
  ASSERT_TRUE(a_->adapter().SetAsyncDispatcher(*errors, /*own=*/false).ok());
  EXPECT_TRUE(a_->requests().Free().ok());
  EXPECT_EQ(a_->adapter().Close(InterfaceAdapter::CloseMode::kGraceful),
            InvalidState(StateDetail::kAdapterInUse));
  EXPECT_TRUE(a_->zone().Free().ok());
  EXPECT_TRUE(a_->adapter().Close(InterfaceAdapter::CloseMode::kGraceful).ok());
  ASSERT_TRUE(b_->adapter().SetAsyncDispatcher(*errors, /*own=*/true).ok());
  EXPECT_TRUE(b_->requests().Free().ok());
  EXPECT_TRUE(b_->zone().Free().ok());
  EXPECT_TRUE(b_->adapter().Close(InterfaceAdapter::CloseMode::kGraceful).ok());
}

TEST_F(DisconnectTest, AbruptCloseEndsEverything) {
  const size_t before = HandleTable::Size();
  End peer(*b_), dialled(*b_), refused(*b_), reserving(*b_), unheard(*b_);
  const size_t peers = HandleTable::Size() - before;
  {
    Node node(simulation_);
    End connected(node), dialling(node), draining(node), reserved(node), passive(node);
    const Ref<ServicePoint> point = node.Listen(Direct());
    Join(peer, node, connected, Hashed());
    ASSERT_TRUE(dialled.Connect(node, Direct()).ok());
    const Ref<ConnectionRequest> request = AwaitRequest(node);
    ASSERT_TRUE(request);
    ASSERT_TRUE(request->Accept(&*draining, {}).ok());
    RunUntil([&] { return draining.Heard(); });
    ASSERT_TRUE(draining.Send(1, verbs::kConfirm).ok());
    ASSERT_TRUE(draining->Disconnect(DisconnectMode::kGraceful).ok());
    const Ref<ServicePoint> own_name = b_->Listen(Direct());
    ASSERT_TRUE(dialling.Connect(*b_, Direct(), "", In(kSecond)).ok());
    const Ref<ConnectionRequest> undecided = AwaitRequest(*b_);
    ASSERT_TRUE(undecided);
    Ref<ServicePoint> reserved_point, passive_point;
    ASSERT_TRUE(ServicePoint::CreateReserved(node.adapter(), ServiceName::FromQualifier(6000),
                                             *reserved, node.requests(), &reserved_point)
                    .ok());
    ASSERT_TRUE(ServicePoint::CreateReserved(node.adapter(), ServiceName::FromQualifier(6001),
                                             *passive, node.requests(), &passive_point)
                    .ok());
    ASSERT_TRUE(reserving.Connect(node, ServiceName::FromQualifier(6001)).ok());
    ServicePoint::Options options;
    options.name = ServiceName::FromQualifier(6002);
    options.provider_endpoint = true;
    const Ref<ServicePoint> provider_point = node.Listen(options);
    ASSERT_TRUE(refused.Connect(node, options.name).ok());
    RunFor(kMilli);
    ASSERT_EQ(node.requests().Queued(), 2u);
    ASSERT_EQ(passive->state(), State::kPassivePending);

    ASSERT_TRUE(node.adapter().Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
    EXPECT_EQ(HandleTable::Size(), before + peers + 2) << "b's new point and request are left";
    Ref<EventDispatcher> late;
    EXPECT_EQ(EventDispatcher::Create(node.adapter(), 1, kAllStreams, false, &late),
              InvalidHandle<InterfaceAdapter>());
    RunFor(kPastHeld);
    EXPECT_EQ(peer.Listen(), Words{"disconnected"});
    EXPECT_EQ(dialled.Listen(), (Words{"established", "disconnected"}));
    EXPECT_EQ(reserving.Listen(), Words{"non-peer rejected"});
    EXPECT_EQ(refused.Listen(), Words{"non-peer rejected"});
    ASSERT_TRUE(undecided->Accept(&*unheard, {}).ok());
    RunFor(kSecond);
    EXPECT_EQ(unheard.Listen(), Words{"accept completion error"});
    EXPECT_TRUE(own_name->Free().ok());
  }
}

TEST_F(DisconnectTest, AbruptCloseWakesWaiters) {
  Node node(simulation_);
  const Ref<EventDispatcher> events = node.MakeDispatcher();
  executor().RunAt(Now() + kSecond, [&] {
    ASSERT_TRUE(node.adapter().Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  });
  Event event;
  uint32_t more = 7;
  EXPECT_EQ(events->Wait(In(10 * kSecond), {}, &event, &more).code, Code::kAbort);
  EXPECT_EQ(Now(), kSecond);
}

// ----------------------------------------------------------------------------- waiting

// A thread that waits for several events has seen those that are there.
TEST_F(DisconnectTest, NotifierThatIsSetDuringAWaitHearsOfNothingTheWaiterHasSeen) {
  const Ref<EventDispatcher> events = a_->MakeDispatcher();
  Ref<Notifier> notifier;
  ASSERT_TRUE(Notifier::Create(a_->adapter(), {}, &notifier).ok());
  ASSERT_TRUE(events->PostSoftware(nullptr).ok());
  Handle told = nullptr;
  executor().RunAt(Now() + kMilli, [&] {
    EXPECT_TRUE(events->SetNotifier(notifier.get()).ok());
    EXPECT_EQ(notifier->Take(&told).code, Code::kQueueEmpty);
    EXPECT_TRUE(events->PostSoftware(nullptr).ok());
  });
  EventDispatcher::WaitOptions options;
  options.threshold = 2;
  options.exclusive = true;
  Event event;
  uint32_t more = 0;
  ASSERT_TRUE(events->Wait(In(kSecond), options, &event, &more).ok());
  EXPECT_EQ(more, 1u);
  EXPECT_EQ(notifier->Take(&told).code, Code::kQueueEmpty);
  ASSERT_TRUE(events->PostSoftware(nullptr).ok());
  EXPECT_TRUE(notifier->Take(&told).ok());
  EXPECT_EQ(told, events->handle());
  ASSERT_TRUE(events->Free().ok());
  ASSERT_TRUE(notifier->Free().ok());
}

TEST_F(DisconnectTest, WaitEndsWithTheEventOrAtTheDeadline) {
  End a(*a_), b(*b_);
  Join(a, *b_, b);
  Event event;
  uint32_t more = 0;
  const verbs::Nanos start = Now();
  EXPECT_EQ(a.events().Wait(In(5 * kMilli), {}, &event, &more).code, Code::kTimeout);
  EXPECT_EQ(Now(), start + 5 * kMilli);
  EXPECT_EQ(more, 0u);
  for (uint64_t id : {1, 2, 3}) ASSERT_TRUE(a.Receive(id).ok());
  executor().RunAt(Now() + kMilli, [&] { ASSERT_TRUE(b.Send(4).ok()); });
  executor().RunAt(Now() + 2 * kMilli,
                   [&] { ASSERT_TRUE(b->Disconnect(DisconnectMode::kAbrupt).ok()); });
  EventDispatcher::WaitOptions four;
  four.threshold = 4;
  ASSERT_TRUE(a.events().Wait(In(kSecond), four, &event, &more).ok());
  EXPECT_EQ(Word(event), "1 ok");
  EXPECT_EQ(more, 3u);
  EXPECT_EQ(a.Listen(), (Words{"2 flushed", "3 flushed", "disconnected"}));
}

}  // namespace
}  // namespace viaduct::core
