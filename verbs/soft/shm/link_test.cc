// One link, whose peer is this test: it writes the peer's line by hand.
#include "verbs/soft/shm/link.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/base/fd.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/descriptor.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/message.h"
#include "verbs/soft/shm/peer.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {
namespace {

// A poster needs room and sees the peer's progress after the last poll and before the link cools:
// what that progress confirms is still to be found.
TEST(LinkTest, ALinkThatCoolsLooksForConfirmationsOnceMore) {
  ControlThread& loop = **ControlThread::Get();
  auto context = OpenForTest();
  TestEnd end(*context, 4096, 2 * kSlots);
  auto& pair = static_cast<SoftQueuePair&>(end.pair());
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  ASSERT_TRUE(arena->PayConnection(0));
  const auto peer = std::make_shared<Peer>(Host::Get(loop), loop, 0, Descriptor(), 0, arena);
  const auto link = ShmLink::Make(loop);
  link->Bind(peer, 0);
  link->Hold(pair);
  ASSERT_TRUE(pair.Attach(*link).ok());
  loop.Post([&] {
    peer->Die();  // nobody is told anything
    EXPECT_TRUE(pair.Established(*link, {}));
  });
  loop.Drain();
  loop.Drain();  // the look that followed

  Completion completion;
  for (uint64_t i = 0; i < kSlots; i++) end.Send(i, 0, 8, kConfirm);
  EXPECT_EQ(end.sends().Poll(&completion, 1), 0);
  EXPECT_EQ(end.receives().Poll(&completion, 1), 0);
  link->Heat();
  constexpr uint64_t kTaken = kSlots / 2;
  arena->connection(0).credit[1].head.store(kTaken);
  end.Send(kSlots, 0, 8, kConfirm);
  link->Cool();
  EXPECT_TRUE(link->Arrived());
  pair.MarkArrived();
  for (uint64_t i = 0; i < kTaken; i++) EXPECT_EQ(end.Next(end.sends()).id, i);
  EXPECT_FALSE(link->Arrived()) << "one look is enough";
  end.DestroyPair();
  loop.Drain();
}

// Between its Attach and its answer: what the peer hears is that nobody takes the request. Two
// answers would be nonsense to it, for which it ends every connection of the two processes.
TEST(LinkTest, ADisconnectInsideAnAcceptIsOneAnswer) {
  ControlThread& loop = **ControlThread::Get();
  auto context = OpenForTest();
  TestEnd end(*context);
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets), 0);
  const Fd theirs(sockets[1]);
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  ASSERT_TRUE(arena->PayConnection(0));
  const auto peer =
      std::make_shared<Peer>(Host::Get(loop), loop, 1,
                             OpenHighAs<Descriptor>([&] { return sockets[0]; }), getpid(), arena);
  const auto link = ShmLink::Make(loop);
  link->Bind(peer, 0);
  link->phase = ShmLink::Phase::kRequested;
  auto& pair = static_cast<SoftQueuePair&>(end.pair());
  link->Hold(pair);
  ASSERT_TRUE(pair.Attach(*link).ok());
  pair.Disconnect(DisconnectMode::kAbrupt);
  ShmLink::Answer accept;
  accept.type = MessageType::kAccept;
  link->GiveAnswer(std::move(accept));
  for (int i = 0; i < 3; ++i) loop.Drain();
  Message message;
  ASSERT_EQ(ReceiveMessage(theirs.get(), &message), SocketResult::kDone);
  EXPECT_EQ(message.type, MessageType::kRefuse);
  EXPECT_EQ(ReceiveMessage(theirs.get(), &message), SocketResult::kAgain);
  loop.RunAndWait([&] { peer->Die(); });
  EXPECT_EQ(end.failed, 0);
}

}  // namespace
}  // namespace viaduct::verbs::shm
