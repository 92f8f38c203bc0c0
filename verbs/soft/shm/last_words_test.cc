// What a process is told, and what it is not told, at the ends of requests and connections.
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/testing_bare_peer.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

// The next thing that is said to `bare` is the answer to this request.
void ExpectNothingElse(BarePeer& bare, uint32_t connection) {
  bare.Say(RequestInVain(connection));
  EXPECT_EQ(bare.Next(), MessageType::kNotHere);
}

// The pair lets go after the refusal has come: by then a Close would be about another connection.
TEST(LastWordsTest, NoCloseBehindARefusal) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
  const auto link = bare.BeAsked();
  bare.Say(BuildMessage(MessageType::kRefuse, link->id, {}, {}));
  for (bool refused = false; !refused;) {
    bare.loop().RunAndWait([&] { refused = bare.peer().idle(); });
  }
  bare.loop().RunAndWait([&] { bare.peer().CloseLink(link, Status::kSuccess); });
  ExpectNothingElse(bare, kTheirs);
}

// A process that does not read any more might as well have gone.
TEST(LastWordsTest, WhoeverCannotBeToldIsLeft) {
  const auto context = OpenForTest();
  TestEnd end(*context);
  BarePeer bare(0);
  bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
  const auto link = bare.BeAsked(static_cast<SoftQueuePair*>(&end.pair()));
  bare.StopReading();
  bare.loop().RunAndWait([&] { bare.peer().CloseLink(link, Status::kSuccess); });
  for (bool dead = false; !dead;) bare.loop().RunAndWait([&] { dead = bare.peer().dead(); });
}

// The requester has already had the answer to its Close.
TEST(LastWordsTest, NoAnswerToACancelledRequest) {
  const auto context = OpenForTest();
  BarePeer bare(1);
  const auto link = ShmLink::Make(bare.loop());
  bare.loop().RunAndWait([&] {
    link->Bind(bare.peer().shared_from_this(), 0);
    link->phase = ShmLink::Phase::kClosed;
    link->cancelled = true;
    bare.peer().TurnDown(link, MessageType::kReject, {});
    bare.peer().Redirect(link, 1, {});
    bare.peer().Accept(link, {}, {});
  });
  ExpectNothingElse(bare, 0);
}

// The refusal of the request that the Close cancels is under way.
TEST(LastWordsTest, ACloseBehindARefusalIsNoHarm) {
  const auto context = OpenForTest();
  BarePeer bare(1);
  bare.Say(RequestInVain(0));
  bare.Say(BuildMessage(MessageType::kClose, 0, CloseBody{}));
  EXPECT_EQ(bare.Next(), MessageType::kNotHere);
  ExpectNothingElse(bare, 0);
}

class Keeper final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    request_ = std::move(request);
  }
  // On the executor.
  bool came() const { return request_ != nullptr; }
  // Only when the request is known to have come.
  IncomingConnection& request() { return *request_; }

 private:
  std::unique_ptr<IncomingConnection> request_;
};

TEST(LastWordsTest, ARequestThatIsCancelledIsNotConnected) {
  const auto context = OpenForTest();
  TestEnd end(*context);
  Keeper sink;
  const std::unique_ptr<Listener> listener = *context->Listen(0, &sink);
  BarePeer bare(1);
  EXPECT_TRUE(bare.arena().PayConnection(0));
  bare.Say(BuildMessage(MessageType::kRequest, 0, RequestFor(listener->port())));
  bare.Say(BuildMessage(MessageType::kClose, 0, CloseBody{}));
  EXPECT_EQ(bare.Next(), MessageType::kClose);
  EXPECT_EQ(bare.Next(), MessageType::kReleased);
  EXPECT_TRUE(sink.request().Accept(end.pair(), {}).ok());
  end.Await(end.failed);
  EXPECT_EQ(end.outcome, ConnectOutcome::kGone);
  ExpectNothingElse(bare, 0);
}

// A sink may destroy its pair when the accept fails, and the requester then marks the connection.
TEST(LastWordsTest, AMarkBehindACloseFindsNoPair) {
  const auto context = OpenForTest();
  TestEnd end(*context);
  TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
  BarePeer bare(1);
  EXPECT_TRUE(bare.arena().PayConnection(0));
  bare.Say(BuildMessage(MessageType::kRequest, 0, RequestFor(listener.port())));
  EXPECT_EQ(bare.Next(), MessageType::kAccept);
  bool idle = false;
  end.on_failed = [&] { idle = bare.peer().idle(); };
  bare.Say(BuildMessage(MessageType::kClose, 0, CloseBody{}));
  end.Await(end.failed);
  EXPECT_TRUE(idle) << "the marks are forgotten before";
}

TEST(LastWordsTest, ADeathLeavesNoConnection) {
  Accepted accepted;
  TestEnd& end = accepted.end();
  BarePeer& bare = accepted.bare();
  bare.HangUp();
  end.Await(end.disconnected);
  end.DestroyPair();
  bare.loop().RunAndWait([&] { EXPECT_TRUE(bare.peer().idle()); });
}

TEST(LastWordsTest, WhoIsDeadIsNotAsked) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  const std::shared_ptr<ShmLink> link = ShmLink::Make(bare.loop());
  link->wanted = std::make_unique<ShmLink::Wanted>();
  bare.loop().RunAndWait([&] {
    bare.peer().Die();
    EXPECT_FALSE(bare.peer().Request(link, {}));
    EXPECT_TRUE(bare.peer().idle());
  });
}

// So that the other process finds the pages of a connection for which it is asked.
TEST(LastWordsTest, ANumberIsPaidForBeforeItIsSaid) {
  const auto context = OpenForTest();
  BarePeer bare(0);
  const auto link = bare.BeAsked();
  const auto exists = [](const void* byte) {
    unsigned char page = 0;
    const auto start = reinterpret_cast<uintptr_t>(byte) / 4096 * 4096;
    return mincore(reinterpret_cast<void*>(start), 1, &page) == 0 && (page & 1) != 0;
  };
  const ConnectionBlock& block = bare.arena().connection(link->id);
  EXPECT_TRUE(exists(&block));
  EXPECT_TRUE(exists(&block.reply[1][kReplySlots - 1]));
}

TEST(LastWordsTest, ANumberIsFreeBehindARefusal) {
  const auto context = OpenForTest();
  for (const MessageType type : {MessageType::kRefuse, MessageType::kRedirect}) {
    BarePeer bare(0);
    bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
    const uint32_t id = bare.BeAsked()->id;
    bare.Say(BuildMessage(type, id, RedirectBody{}));
    ExpectNothingElse(bare, kTheirs);
    EXPECT_EQ(bare.BeAsked()->id, id) << static_cast<int>(type);
  }
}

// Nobody needs the link any more, and nothing else would let go of it.
TEST(LastWordsTest, ALinkEndsWithItsAttempt) {
  const auto context = OpenForTest();
  for (const MessageType type : {MessageType::kRefuse, MessageType::kNotHere}) {
    TestEnd end(*context);
    BarePeer bare(0);
    bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
    const std::weak_ptr<ShmLink> link = bare.BeAsked(static_cast<SoftQueuePair*>(&end.pair()));
    bare.Say(BuildMessage(type, link.lock()->id, {}, {}));
    end.Await(end.failed);
    ExpectNothingElse(bare, kTheirs);
    EXPECT_TRUE(link.expired()) << static_cast<int>(type);
  }
}

TEST(LastWordsTest, ARejectionSaysNoMoreThanThereIsRoomFor) {
  const auto context = OpenForTest();
  Keeper sink;
  const std::unique_ptr<Listener> listener = *context->Listen(0, &sink);
  BarePeer bare(1);
  bare.Say(BuildMessage(MessageType::kRequest, 0, RequestFor(listener->port())));
  bare.Say(RequestInVain(1));
  EXPECT_EQ(bare.Next(), MessageType::kNotHere);
  sink.request().Reject(std::vector<uint8_t>(kMaxMessage));
  EXPECT_EQ(bare.Next(), MessageType::kReject);
}

TEST(LastWordsTest, EachEndKnowsItsPort) {
  const auto context = OpenForTest();
  TestEnd from(*context), to(*context);
  Keeper sink;
  const std::unique_ptr<Listener> listener = *context->Listen(0, &sink);
  DialForTest(from.pair(), listener->port());
  ControlThread& loop = **ControlThread::Get();
  for (bool came = false; !came;) loop.RunAndWait([&] { came = sink.came(); });
  EXPECT_NE(from.pair().local_port(), 0);
  EXPECT_EQ(sink.request().peer_port(), from.pair().local_port());
  ASSERT_TRUE(sink.request().Accept(to.pair(), {}).ok());
  EXPECT_EQ(to.pair().local_port(), listener->port());
  EXPECT_TRUE(to.pair().Heard());
  from.Await(from.connected);
}

// To ring is to send a message on the peer's socket.
TEST(LastWordsTest, WhoHasHungUpIsNotRungAgain) {
  const auto context = OpenForTest();
  BarePeer bare(1);
  std::atomic<uint32_t>& bell = bare.arena().direction(0).bell;
  bare.loop().RunAndWait([&] {
    bare.HangUp();
    bell = kBellSocket;
    bare.peer().MarkPeer(0);
    EXPECT_EQ(bell, kBellOff);
  });
}

TEST(LastWordsTest, WhoCannotFenceIsFencedFor) {
  const auto context = OpenForTest();
  for (const uint32_t fenced : {0u, 1u}) {
    BarePeer bare(0);
    bare.Say(BuildMessage(MessageType::kWelcome, 0, HelloBody{1, fenced, 0}));
    ExpectNothingElse(bare, kTheirs);
    EXPECT_EQ(bare.peer().needs_fence(), fenced == 0 || !RegisterGlobalFence());
  }
  EXPECT_EQ(kGreeting.fenced, 0u);
  EXPECT_TRUE(BarePeer(1).peer().needs_fence());
}

TEST(LastWordsTest, ARequesterThatIsGivenUpIsTold) {
  const auto context = OpenForTest("127.0.0.1", /*silence=*/1'000'000);
  TestEnd end(*context);
  TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
  BarePeer bare(1);
  EXPECT_TRUE(bare.arena().PayConnection(0));
  bare.Say(BuildMessage(MessageType::kRequest, 0, RequestFor(listener.port())));
  EXPECT_EQ(bare.Next(), MessageType::kAccept);
  EXPECT_EQ(bare.Next(), MessageType::kClose);
  end.Await(end.failed);
}

// The type of the next message; 0 if none comes.
MessageType NextAt(int socket) {
  pollfd entry = {socket, POLLIN, 0};
  Message message;
  const bool came =
      poll(&entry, 1, 20'000) == 1 && ReceiveMessage(socket, &message) == SocketResult::kDone;
  return came ? message.type : MessageType{};
}

// The last connection ends when the last adapter has gone already.
TEST(LastWordsTest, WhoHasNoUserLeavesAProcessWithItsLastConnection) {
  ChildProcess requester([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    pid_t pid;
    const auto socket = DialTo("viaduct", port, &pid);
    const std::shared_ptr<Arena> arena = Arena::Create();
    if (!socket.ok() || arena == nullptr || !arena->PayConnection(0)) return 1;
    const auto next = [&] { return NextAt(socket->get()); };
    const int fds[] = {arena->fd()};
    SendMessage(socket->get(), BuildMessage(MessageType::kHello, 0, kGreeting), fds);
    SendMessage(socket->get(), BuildMessage(MessageType::kRequest, 0, RequestFor(port)), {});
    if (next() != MessageType::kWelcome || next() != MessageType::kAccept) return 2;
    SendMessage(socket->get(), BuildMessage(MessageType::kEstablished, 0, {}, {}), {});
    if (next() != MessageType::kClose) return 3;
    parent.GetValue<int>();
    SendMessage(socket->get(), BuildMessage(MessageType::kClose, 0, CloseBody{}), {});
    if (next() != MessageType::kReleased) return 4;
    pollfd entry = {socket->get(), POLLIN, 0};
    return poll(&entry, 1, 20'000) == 1 && (entry.revents & POLLHUP) != 0 ? 0 : 5;
  });
  {
    const auto context = OpenForTest();
    TestEnd end(*context);
    TestListener listener(*context, [&]() -> QueuePair& { return end.pair(); });
    requester.PutValue(listener.port());
    end.Await(end.connected);
  }
  requester.PutValue(0);
  EXPECT_EQ(requester.Wait(), 0);
}

class RejectsAll final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    request->Reject(std::vector<uint8_t>(kMaxPrivateData));
    rejected_++;
  }
  int rejected() const { return rejected_.load(); }

 private:
  std::atomic<int> rejected_{0};
};

// The requester reads nothing until the last adapter has gone. Most answers do not fit into the
// socket.
TEST(LastWordsTest, WhoHasNoUserLeavesAProcessWhenItHasBeenToldAll) {
  constexpr int kRequests = 1000;
  ChildProcess requester([](ChildProcess& parent) {
    const auto port = parent.GetValue<uint16_t>();
    pid_t pid;
    const auto socket = DialTo("viaduct", port, &pid);
    const std::shared_ptr<Arena> arena = Arena::Create();
    if (!socket.ok() || arena == nullptr) return 1;
    const auto next = [&] { return NextAt(socket->get()); };
    const int fds[] = {arena->fd()};
    SendMessage(socket->get(), BuildMessage(MessageType::kHello, 0, kGreeting), fds);
    for (int i = 0; i < kRequests; i++) {
      const std::string request = BuildMessage(MessageType::kRequest, i, RequestFor(port));
      while (SendMessage(socket->get(), request, {}) == SocketResult::kAgain) sched_yield();
    }
    parent.GetValue<int>();
    if (next() != MessageType::kWelcome) return 2;
    for (int i = 0; i < kRequests; i++) {
      if (next() != MessageType::kReject) return 3;
    }
    pollfd entry = {socket->get(), POLLIN, 0};
    return poll(&entry, 1, 20'000) == 1 && (entry.revents & POLLHUP) != 0 ? 0 : 4;
  });
  {
    const auto context = OpenForTest();
    RejectsAll sink;
    const auto listener = *context->Listen(0, &sink);
    requester.PutValue(listener->port());
    while (sink.rejected() < kRequests) sched_yield();
    (*ControlThread::Get())->Drain();  // they have been answered
  }
  (*ControlThread::Get())->Drain();  // the pair would have been dropped
  requester.PutValue(0);
  EXPECT_EQ(requester.Wait(), 0);
}

// Expects that the second of two reads waits, since one is served at a time.
void ExpectOneRead(TestEnd& end, BarePeer& bare, int side, uint32_t connection) {
  for (uint64_t id : {1, 2}) end.OneSided(Opcode::kRead, id, 0, 8, 4096, 1);
  bare.loop().Drain();  // it may have been polling
  const Slot* ring = bare.arena().connection(connection).data[side];
  EXPECT_TRUE(Arrives<kSlots>(ring[0].word.load(), 0));
  EXPECT_FALSE(Arrives<kSlots>(ring[1].word.load(), 1));
}

TEST(LastWordsTest, ARequestSaysHowManyReadsAreServed) {
  Accepted accepted(/*reads_in=*/1);
  ExpectOneRead(accepted.end(), accepted.bare(), 0, 0);
}

TEST(LastWordsTest, AnAcceptSaysHowManyReadsAreServed) {
  Answered answered(/*reads_in=*/1);
  ExpectOneRead(answered.end(), answered.bare(), 1, answered.id());
}

TEST(LastWordsTest, ARequesterServesReads) {
  Answered answered(/*reads_in=*/1);
  TestEnd& end = answered.end();
  ConnectionBlock& block = answered.bare().arena().connection(answered.id());
  const ReadLead read = {reinterpret_cast<uint64_t>(end.memory().data()), end.key(), 8};
  std::memcpy(block.data[0][0].body, &read, sizeof read);
  block.data[0][0].word.store(Word::Pack(Op::kRead, kLast, 1, sizeof read, Parity<kSlots>(0)));
  answered.bare().loop().RunAndWait([&] { static_cast<SoftQueuePair&>(end.pair()).Attend(); });
  EXPECT_TRUE(Arrives<kReplySlots>(block.reply[1][0].word.load(), 0));
}

// A message that came before the verdict is taken first, although nothing announced it.
TEST(LastWordsTest, AMessageComesBeforeAVerdict) {
  Accepted accepted;
  TestEnd& end = accepted.end();
  end.Receive(1, 0, 8);
  accepted.PutMessage();
  CloseBody close = {};
  close.verdict = static_cast<uint32_t>(Status::kRemoteAccess);
  accepted.bare().Say(BuildMessage(MessageType::kClose, 0, close));
  end.Await(end.disconnected);
  EXPECT_EQ(end.cause, DisconnectCause::kBroken);
  EXPECT_EQ(end.Next(end.receives()).status, Status::kSuccess);
}

TEST(LastWordsTest, AMessageComesBeforeADeath) {
  Accepted accepted;
  TestEnd& end = accepted.end();
  end.Receive(1, 0, 8);
  accepted.PutMessage();
  accepted.bare().HangUp();
  end.Await(end.disconnected);
  EXPECT_EQ(end.cause, DisconnectCause::kBroken);
  EXPECT_EQ(end.Next(end.receives()).status, Status::kSuccess);
}

// Others have its socket, as its own children may, so that only the end of the process shows.
TEST(LastWordsTest, WhoDiesIsHeardFirst) {
  ChildProcess process([](ChildProcess& parent) { return parent.GetValue<int>(); });
  const auto context = OpenForTest();
  BarePeer bare(1, process.pid());
  bare.loop().RunAndWait([&] {
    process.Kill();
    bare.Say(RequestInVain(0));
  });
  EXPECT_EQ(bare.Next(), MessageType::kNotHere);
  EXPECT_EQ(bare.Next(), MessageType{});
}

// The peer has left in order; when it dies, its last message still waits for a receive.
TEST(LastWordsTest, ADeathBehindACloseIsNone) {
  Accepted accepted;
  TestEnd& end = accepted.end();
  BarePeer& bare = accepted.bare();
  accepted.PutMessage();
  bare.Say(BuildMessage(MessageType::kClose, 0, CloseBody{1, 0, 0, 0}));
  bare.Say(RequestInVain(1));
  EXPECT_EQ(bare.Next(), MessageType::kNotHere);
  bare.HangUp();
  for (bool dead = false; !dead;) bare.loop().RunAndWait([&] { dead = bare.peer().dead(); });
  end.Receive(1, 0, 8);
  end.Await(end.disconnected);
  EXPECT_EQ(end.cause, DisconnectCause::kPeer);
}

// The outcome of a request under way: a process that wants no memory of ours counts as not there,
// and one that goes after it has welcomed us has refused.
TEST(LastWordsTest, WhoGoesBeforeTheWelcomeIsNotHere) {
  for (const bool welcome : {false, true}) {
    const auto context = OpenForTest();
    TestEnd end(*context);
    BarePeer bare(0);
    const auto link = bare.BeAsked(static_cast<SoftQueuePair*>(&end.pair()));
    if (welcome) {
      bare.Say(BuildMessage(MessageType::kWelcome, 0, kGreeting));
      bare.Say(RequestInVain(kTheirs));
      EXPECT_EQ(bare.Next(), MessageType::kNotHere);
    }
    bare.HangUp();
    end.Await(end.failed);
    EXPECT_EQ(end.outcome, welcome ? ConnectOutcome::kRefused : ConnectOutcome::kNobody);
  }
}

// Tries to accept, and to hand off, after a rejection.
class RejectsFirst final : public ListenerSink {
 public:
  explicit RejectsFirst(QueuePair& pair) : pair_(pair) {}
  void OnRequest(std::unique_ptr<IncomingConnection> request) override {
    request->Reject({});
    EXPECT_EQ(request->Accept(pair_, {}).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(request->HandOff(1, {}, Deadline::Infinite()).code(),
              absl::StatusCode::kFailedPrecondition);
  }

 private:
  QueuePair& pair_;
};

TEST(LastWordsTest, ARequestIsDecidedOnce) {
  const auto context = OpenForTest();
  TestEnd end(*context);
  RejectsFirst sink(end.pair());
  const std::unique_ptr<Listener> listener = *context->Listen(0, &sink);
  BarePeer bare(1);
  EXPECT_TRUE(bare.arena().PayConnection(0));
  bare.Say(BuildMessage(MessageType::kRequest, 0, RequestFor(listener->port())));
  EXPECT_EQ(bare.Next(), MessageType::kReject);
  ExpectNothingElse(bare, 0);
}

class TakesAll final : public ListenerSink {
 public:
  void OnRequest(std::unique_ptr<IncomingConnection>) override {}
  bool TakesHandOff(absl::Span<const uint8_t>) override { return true; }
};

TEST(LastWordsTest, WhoDoesNotAnswerMayYetTakeAHandOff) {
  const auto context = OpenForTest();
  uint16_t port = 2000;
  absl::StatusOr<ListeningFd> silent = ListenAt("viaduct", port);
  while (absl::IsAlreadyExists(silent.status())) silent = ListenAt("viaduct", ++port);
  ASSERT_TRUE(silent.ok()) << silent.status();
  EXPECT_TRUE(absl::IsUnavailable(Host::AskToTake(port, {}, Deadline::At(0))));
}

TEST(LastWordsTest, AFreePortIsLookedFor) {
  const auto context = OpenForTest();
  Host& host = Host::Get(**ControlThread::Get());
  const uint16_t first = *host.Listen(0);
  // The next ports in turn are taken.
  std::vector<ListeningFd> others;
  for (uint32_t port = first; port < first + 8u; port++) {
    const uint32_t next = port < 65535 ? port + 1 : port + 1 - 16384;
    absl::StatusOr<ListeningFd> other = ListenAt("viaduct", static_cast<uint16_t>(next));
    if (other.ok()) others.push_back(*std::move(other));
  }
  const absl::StatusOr<uint16_t> second = host.Listen(0);
  ASSERT_TRUE(second.ok()) << second.status();
  host.StopListening(*second);
  host.StopListening(first);
}

TEST(LastWordsTest, WhoTakesNoHandOffSaysSo) {
  const auto context = OpenForTest();
  TestEnd end(*context);
  TestListener none(*context, [&]() -> QueuePair& { return end.pair(); });
  TakesAll sink;
  const std::unique_ptr<Listener> all = *context->Listen(0, &sink);
  const auto ask = [](uint16_t port, size_t bytes) {
    return Host::AskToTake(port, std::vector<uint8_t>(bytes), Deadline::Infinite());
  };
  EXPECT_TRUE(absl::IsNotFound(ask(none.port(), 1)));
  EXPECT_TRUE(ask(all->port(), kMaxNoteBytes).ok());
  EXPECT_TRUE(absl::IsNotFound(ask(all->port(), kMaxNoteBytes + 1)));
}

}  // namespace
}  // namespace viaduct::verbs::shm
