// Listening, connecting, accepting, and the ways in which that fails.
#include <algorithm>
#include <memory>
#include <vector>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class ConnectTest : public DeviceTest {
 protected:
  // A listener whose requests go to requests_.
  std::unique_ptr<Listener> ListenAt(Context& context, uint16_t port = 0) {
    auto listener = context.Listen(port, &requests_);
    EXPECT_TRUE(listener.ok()) << listener.status();
    return *std::move(listener);
  }
  // A port where somebody listened until now, and nobody does any more.
  uint16_t DeadPort() { return ListenAt(b())->port(); }

  Requests requests_;
};

TEST_F(ConnectTest, BothSinksHearOfIt) {
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  Connect(active, passive);
  Settle();
  EXPECT_EQ(active.events().count(), 0u) << "once";
  EXPECT_EQ(passive.events().count(), 0u) << "once";
}

TEST_F(ConnectTest, PrivateDataTravelsBothWaysInEverySize) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  const size_t max = b().attributes().max_private_data;
  for (size_t size : {size_t{0}, size_t{1}, size_t{64}, max}) {
    End& active = NewEnd(a());
    End& passive = NewEnd(b());
    Bytes question = Pattern(size, 1);
    ASSERT_TRUE(Dial(active, b(), listener->port(), question).ok());
    const Bytes sent = question;
    std::fill(question.begin(), question.end(), 0);  // it was copied
    std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
    ASSERT_NE(request, nullptr);
    EXPECT_EQ(Bytes(request->private_data().begin(), request->private_data().end()), sent);
    const Bytes answer = Pattern(size, 2);
    ASSERT_TRUE(request->Accept(passive.pair(), answer).ok());
    EXPECT_EQ(AwaitEvent(active).private_data, answer);
    const Event event = AwaitEvent(passive);
    EXPECT_EQ(event.kind, Event::kConnected);
    EXPECT_TRUE(event.private_data.empty()) << "the passive side gets none";
  }
}

TEST_F(ConnectTest, TheRequestKnowsWhoAsks) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->peer_address(), a().address());
  EXPECT_NE(request->peer_port(), 0);
  EXPECT_EQ(request->peer_port(), active.pair().local_port());
  const uint16_t port = request->peer_port();
  End& passive = NewEnd(b());
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  ASSERT_EQ(AwaitEvent(active).kind, Event::kConnected);
  EXPECT_EQ(active.pair().local_port(), port) << "of the connection as of the attempt";
}

TEST_F(ConnectTest, RejectCarriesItsPrivateData) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  const size_t max = b().attributes().max_private_data;
  for (size_t size : {size_t{0}, size_t{7}, max}) {
    ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
    std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
    ASSERT_NE(request, nullptr);
    request->Reject(Pattern(size, 3));
    const Event event = AwaitEvent(active);
    EXPECT_EQ(event.kind, Event::kConnectFailed);
    EXPECT_EQ(event.outcome, ConnectOutcome::kRejected);
    EXPECT_EQ(event.private_data, Pattern(size, 3));
    // Back in Idle: the next round uses the same pair.
  }
}

TEST_F(ConnectTest, RefuseIsNotReject) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  for (bool undecided : {false, true}) {
    ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
    std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
    ASSERT_NE(request, nullptr);
    if (!undecided) request->Refuse();
    request.reset();  // refuses it if nothing was decided
    const Event event = AwaitEvent(active);
    EXPECT_EQ(event.kind, Event::kConnectFailed);
    EXPECT_EQ(event.outcome, ConnectOutcome::kRefused);
    EXPECT_TRUE(event.private_data.empty());
  }
}

TEST_F(ConnectTest, NobodyListensIsNotRefuse) {
  const uint16_t port = DeadPort();
  End& active = NewEnd(a());
  ASSERT_TRUE(active.Receive(1, 0, 16) == PostResult::kOk);
  EXPECT_FALSE(active.pair().Heard());
  ASSERT_TRUE(Dial(active, b(), port).ok());
  const Event event = AwaitEvent(active);
  EXPECT_EQ(event.kind, Event::kConnectFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kNobody);
  EXPECT_TRUE(active.pair().Heard()) << "the host has answered";
  EXPECT_NE(active.pair().open_receives(), 0u) << "receives are still posted";
  Settle();
  EXPECT_EQ(active.events().count(), 0u) << "nothing further comes";
  EXPECT_TRUE(active.receives().got().empty());
}

TEST_F(ConnectTest, ReceivesSurviveAFailedAttempt) {
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  ASSERT_EQ(active.Receive(77, 0, 100), PostResult::kOk);
  ASSERT_TRUE(Dial(active, b(), DeadPort()).ok());
  ASSERT_EQ(AwaitEvent(active).kind, Event::kConnectFailed);
  Connect(active, passive);
  passive.Put(0, Pattern(100, 1));
  ASSERT_EQ(passive.Send(1, 0, 100), PostResult::kOk);
  EXPECT_EQ(Expect(active.receives(), 77).length, 100u);
  EXPECT_EQ(active.Get(0, 100), Pattern(100, 1));
}

TEST_F(ConnectTest, HeardAfterAnyAnswer) {
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  Connect(active, passive);
  EXPECT_TRUE(active.pair().Heard());
}

TEST_F(ConnectTest, APortIsTakenOnce) {
  std::unique_ptr<Listener> first = ListenAt(b());
  EXPECT_NE(first->port(), 0);
  EXPECT_EQ(b().Listen(first->port(), &requests_).status().code(),
            absl::StatusCode::kAlreadyExists);
  std::unique_ptr<Listener> second = ListenAt(b());
  EXPECT_NE(second->port(), first->port());
  const uint16_t port = first->port();
  first.reset();
  EXPECT_EQ(ListenAt(b(), port)->port(), port) << "free again";
}

TEST_F(ConnectTest, ARequestOutlivesItsListener) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  ASSERT_TRUE(Dial(active, b(), listener->port(), Pattern(9, 4)).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  listener.reset();
  EXPECT_EQ(request->private_data().size(), 9u);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  EXPECT_EQ(AwaitEvent(active).kind, Event::kConnected);
  EXPECT_EQ(AwaitEvent(passive).kind, Event::kConnected);
}

TEST_F(ConnectTest, RequestsMayBeAnsweredInAnyOrder) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  std::vector<End*> active, passive;
  std::vector<std::unique_ptr<IncomingConnection>> pending;
  for (int i = 0; i < 4; ++i) {
    active.push_back(&NewEnd(a()));
    passive.push_back(&NewEnd(b()));
    ASSERT_TRUE(Dial(*active[i], b(), listener->port(), Bytes(1, i)).ok());
    pending.push_back(AwaitRequest(requests_));
    ASSERT_NE(pending[i], nullptr);
    EXPECT_EQ(pending[i]->private_data()[0], i);
  }
  for (int i : {2, 0, 3, 1}) {
    const Bytes answer(1, 10 + i);
    ASSERT_TRUE(pending[i]->Accept(passive[i]->pair(), answer).ok());
    EXPECT_EQ(AwaitEvent(*active[i]).private_data, answer);
    EXPECT_EQ(AwaitEvent(*passive[i]).kind, Event::kConnected);
  }
}

TEST_F(ConnectTest, AcceptNeedsAnIdlePair) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  End& busy = NewEnd(b());
  busy.pair().Flush();  // Error
  ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  EXPECT_EQ(request->Accept(busy.pair(), {}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok()) << "nothing has happened before";
  EXPECT_EQ(AwaitEvent(active).kind, Event::kConnected);
  EXPECT_EQ(AwaitEvent(passive).kind, Event::kConnected);
  EXPECT_EQ(busy.events().count(), 0u);
}

TEST_F(ConnectTest, ConnectAndModifyNeedAnIdlePair) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  const auto refused = [&] {
    return Dial(active, b(), listener->port()).code() == absl::StatusCode::kFailedPrecondition &&
           active.pair().Modify(active.pair_options()).code() ==
               absl::StatusCode::kFailedPrecondition;
  };
  EXPECT_TRUE(active.pair().Modify(active.pair_options()).ok());
  ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
  EXPECT_TRUE(refused()) << "Connecting";
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  ASSERT_EQ(AwaitEvent(active).kind, Event::kConnected);
  EXPECT_TRUE(refused()) << "Connected";
  active.pair().Disconnect(DisconnectMode::kAbrupt);
  EXPECT_TRUE(refused()) << "Error";
  active.pair().Reset();
  EXPECT_TRUE(active.pair().Modify(active.pair_options()).ok());
}

TEST_F(ConnectTest, GivingUpLeavesAnIdlePairAndNoEvent) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  active.pair().Disconnect(DisconnectMode::kAbrupt);
  Settle();
  EXPECT_EQ(active.events().count(), 0u);
  // The passive side learns it at the latest when it accepts, and its pair is Idle again too.
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  const Event event = AwaitEvent(passive);
  EXPECT_EQ(event.kind, Event::kConnectFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
  listener.reset();
  Connect(active, passive);
}

TEST_F(ConnectTest, GivingUpAtOnceAsWell) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
    active.pair().Disconnect(DisconnectMode::kAbrupt);
  }
  Settle();
  EXPECT_EQ(active.events().count(), 0u);
  listener.reset();
  while (requests_.Take() != nullptr) {
  }
  Connect(active, passive);
}

TEST_F(ConnectTest, DestructionInTheMiddleOfAnAttempt) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& first = NewEnd(a());
  ASSERT_TRUE(Dial(first, b(), listener->port()).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  first.DestroyPair();
  Settle();
  EXPECT_EQ(first.events().count(), 0u);
  request.reset();

  End& second = NewEnd(a());
  End& passive = NewEnd(b());
  ASSERT_TRUE(Dial(second, b(), listener->port()).ok());
  request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  passive.DestroyPair();
  // The passive pair may have been connected for a moment; after its destruction it reports
  // nothing.
  const size_t told = passive.events().count();
  EXPECT_LE(told, 1u);
  // The active side may have seen the connection for a moment.
  Event event = AwaitEvent(second);
  if (event.kind == Event::kConnected) event = AwaitEvent(second);
  EXPECT_TRUE(event.kind == Event::kDisconnected || event.kind == Event::kConnectFailed);
  EXPECT_EQ(passive.events().count(), told);
}

TEST_F(ConnectTest, AContextReachesItself) {
  End& active = NewEnd(a());
  End& passive = NewEnd(a());
  Connect(active, passive);
  active.Put(0, Pattern(3000, 1));
  ASSERT_EQ(passive.Receive(1, 0, 4096), PostResult::kOk);
  ASSERT_EQ(active.Send(2, 0, 3000), PostResult::kOk);
  EXPECT_EQ(Expect(passive.receives(), 1).length, 3000u);
  EXPECT_EQ(passive.Get(0, 3000), Pattern(3000, 1));
  active.pair().Disconnect(DisconnectMode::kGraceful);
  ExpectDisconnected(active, DisconnectCause::kLocal);
  ExpectDisconnected(passive, DisconnectCause::kPeer);
}

TEST_F(ConnectTest, BothDirectionsAtOnce) {
  Requests at_a, at_b;
  auto listener_a = a().Listen(0, &at_a);
  auto listener_b = b().Listen(0, &at_b);
  ASSERT_TRUE(listener_a.ok() && listener_b.ok());
  End &a1 = NewEnd(a()), &a2 = NewEnd(a()), &b1 = NewEnd(b()), &b2 = NewEnd(b());
  ASSERT_TRUE(Dial(a1, b(), (*listener_b)->port()).ok());
  ASSERT_TRUE(Dial(b1, a(), (*listener_a)->port()).ok());
  std::unique_ptr<IncomingConnection> from_b = AwaitRequest(at_a);
  std::unique_ptr<IncomingConnection> from_a = AwaitRequest(at_b);
  ASSERT_TRUE(from_a != nullptr && from_b != nullptr);
  ASSERT_TRUE(from_a->Accept(b2.pair(), {}).ok());
  ASSERT_TRUE(from_b->Accept(a2.pair(), {}).ok());
  for (End* end : {&a1, &a2, &b1, &b2}) EXPECT_EQ(AwaitEvent(*end).kind, Event::kConnected);
}

TEST_F(ConnectTest, SendsMayBePostedInsideOnConnected) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  for (End* end : {&active, &passive}) {
    ASSERT_EQ(end->Receive(1, 0, 64), PostResult::kOk);
    end->Put(100, Pattern(64, 6));
    end->events().hook = [end](const Event& event) {
      if (event.kind != Event::kConnected) return;
      EXPECT_EQ(end->Send(2, 100, 64), PostResult::kOk);
    };
  }
  ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  for (End* end : {&active, &passive}) {
    Expect(end->receives(), 1);
    Expect(end->sends(), 2);
    EXPECT_EQ(end->Get(0, 64), Pattern(64, 6));
  }
}

TEST_F(ConnectTest, NoReceiveCompletesBeforeOnConnectedReturned) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  End& active = NewEnd(a());
  End& passive = NewEnd(b());
  ASSERT_EQ(active.Receive(1, 0, 64), PostResult::kOk);
  // The passive side sends at once; the active one polls inside its sink.
  passive.events().hook = [&](const Event& event) {
    if (event.kind != Event::kConnected) return;
    EXPECT_EQ(passive.Send(2, 0, 1), PostResult::kOk);
  };
  int early = 0;
  active.events().hook = [&](const Event& event) {
    if (event.kind != Event::kConnected) return;
    Completion completion;
    for (int i = 0; i < 100; ++i) early += active.receives().queue().Poll(&completion, 1);
  };
  Forget(active);  // only the hook polls its queue meanwhile
  ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
  std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
  ASSERT_NE(request, nullptr);
  ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
  ASSERT_EQ(AwaitEvent(active).kind, Event::kConnected);
  Expect(active.receives(), 1);
  EXPECT_EQ(early, 0);
}

TEST_F(ConnectTest, PairsMayBeDestroyedInTheirSinks) {
  std::unique_ptr<Listener> listener = ListenAt(b());
  const uint16_t dead = DeadPort();
  {
    End& active = NewEnd(a());
    active.events().hook = [&](const Event&) { active.DestroyPair(); };
    ASSERT_TRUE(Dial(active, b(), dead).ok());
    EXPECT_EQ(AwaitEvent(active).kind, Event::kConnectFailed);
  }
  {
    End& active = NewEnd(a());
    End& passive = NewEnd(b());
    active.events().hook = [&](const Event&) { active.DestroyPair(); };
    passive.events().hook = [&](const Event& event) {
      if (event.kind == Event::kDisconnected) passive.DestroyPair();
    };
    ASSERT_TRUE(Dial(active, b(), listener->port()).ok());
    std::unique_ptr<IncomingConnection> request = AwaitRequest(requests_);
    ASSERT_NE(request, nullptr);
    ASSERT_TRUE(request->Accept(passive.pair(), {}).ok());
    EXPECT_EQ(AwaitEvent(active).kind, Event::kConnected);
    // The passive side saw a connection that ended, or none.
    Event event = AwaitEvent(passive);
    if (event.kind == Event::kConnected) event = AwaitEvent(passive);
    EXPECT_TRUE(event.kind == Event::kDisconnected || event.kind == Event::kConnectFailed);
  }
  Settle();
}

TEST_F(ConnectTest, ManyConnectionsOverOneQueue) {
  constexpr int kConnections = 40;
  Inbox inbox_a(a()), inbox_b(b());
  std::vector<End*> active, passive;
  EndOptions options;
  options.memory = 4096;
  for (int i = 0; i < kConnections; ++i) {
    options.shared_inbox = &inbox_a;
    active.push_back(&NewEnd(a(), options));
    options.shared_inbox = &inbox_b;
    passive.push_back(&NewEnd(b(), options));
    Connect(*active[i], *passive[i]);
    ASSERT_EQ(passive[i]->Receive(i, 0, 16), PostResult::kOk);
  }
  for (int i = kConnections - 1; i >= 0; --i) {
    active[i]->Put(0, Pattern(16, i));
    ASSERT_EQ(active[i]->Send(1000 + i, 0, 16), PostResult::kOk);
  }
  ASSERT_TRUE(Run([&] {
    return inbox_a.got().size() == kConnections && inbox_b.got().size() == kConnections;
  }));
  std::vector<int> seen(kConnections);
  for (const Completion& completion : inbox_b.got()) {
    ASSERT_LT(completion.id, static_cast<uint64_t>(kConnections));
    EXPECT_EQ(completion.status, Status::kSuccess);
    EXPECT_EQ(completion.context, passive[completion.id]);
    EXPECT_EQ(passive[completion.id]->Get(0, 16), Pattern(16, completion.id));
    ++seen[completion.id];
  }
  EXPECT_EQ(seen, std::vector<int>(kConnections, 1));
  for (const Completion& completion : inbox_a.got()) {
    EXPECT_EQ(completion.context, active[completion.id - 1000]);
  }
  // The pairs complete into local inboxes, so they must go first.
  for (int i = 0; i < kConnections; ++i) {
    active[i]->DestroyPair();
    passive[i]->DestroyPair();
    Forget(*active[i]);
    Forget(*passive[i]);
  }
}

}  // namespace
}  // namespace viaduct::verbs
