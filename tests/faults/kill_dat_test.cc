// kill -9 of either side of a stream, as a DAT program sees it. The processes are those of
// kill_vipl_test.cc.
#include <cstring>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/killer.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

constexpr uint64_t kNoticeMicroseconds = 10000000;
constexpr uint64_t kWindow = 8;
constexpr uint64_t kReceives = kWindow + 1;
constexpr size_t kWriteBytes = 16384;
constexpr size_t kSlotBytes = 64;
constexpr size_t kHelloAt = kReceives * kSlotBytes, kFrom = 16384, kTargetAt = 2 * kWriteBytes;
constexpr size_t kMemory = 3 * kWriteBytes;
constexpr int kLongestPass = 20000;  // microseconds
constexpr auto kDefault = DAT_COMPLETION_DEFAULT_FLAG;

// An endpoint that answers each message with a write and a message.
class Stream {
 public:
  explicit Stream(Side& side, Memory& memory) : side_(side), memory_(memory), ep(side.NewEp()) {
    for (uint64_t n = 0; n < kReceives; ++n) PostReceive(n);
  }
  ~Stream() { EXPECT_EQ(dat_ep_free(ep), DAT_RETURN{DAT_SUCCESS}); }

  void Begin(bool source) {
    const DAT_RMR_TRIPLET mine =
        RemoteTriplet(reinterpret_cast<uintptr_t>(memory_.bytes.data()) + kTargetAt, kWriteBytes,
                      memory_.rmr_context);
    static_assert(sizeof mine <= kSlotBytes);
    std::memcpy(memory_.bytes.data() + kHelloAt, &mine, sizeof mine);
    PostSend();
    const auto hello = NextCompletion(side_.receive_evd);
    --receives;
    ASSERT_EQ(hello.status, DAT_DTO_SUCCESS);
    std::memcpy(&theirs_, memory_.bytes.data() + hello.user_cookie.as_64 * kSlotBytes,
                sizeof theirs_);
    PostReceive(hello.user_cookie.as_64);
    for (uint64_t n = 0; source && n < kWindow; ++n) Answer();
  }

  // Runs until the first receive is flushed; only the survivor returns.
  void Run() {
    for (;;) {
      const auto done = NextCompletion(side_.receive_evd);
      --receives;
      if (done.status != DAT_DTO_SUCCESS) {
        EXPECT_EQ(done.status, DAT_DTO_ERR_FLUSHED);
        return;
      }
      PostReceive(done.user_cookie.as_64);
      TakeSends();
      Answer();
    }
  }

  void Drain() {
    for (; receives > 0; --receives) {
      EXPECT_EQ(NextCompletion(side_.receive_evd).status, DAT_DTO_ERR_FLUSHED);
    }
    for (bool failed = false; sends > 0; --sends) {
      const auto done = NextCompletion(side_.request_evd);
      if (done.status == DAT_DTO_SUCCESS) {
        EXPECT_FALSE(failed) << "a success behind a failure";
      } else {
        failed = true;
        EXPECT_TRUE(done.status == DAT_DTO_ERR_FLUSHED || done.status == DAT_DTO_ERR_TRANSPORT)
            << done.status;
      }
    }
    EXPECT_TRUE(IsEmpty(side_.receive_evd));
    EXPECT_TRUE(IsEmpty(side_.request_evd));
  }

 private:
  Side& side_;
  Memory& memory_;
  DAT_RMR_TRIPLET theirs_ = {};

  void PostReceive(uint64_t n) {
    DAT_LMR_TRIPLET piece = memory_.Local(n * kSlotBytes, kSlotBytes);
    Must(dat_ep_post_recv(ep, 1, &piece, Cookie(n), kDefault));
    ++receives;
  }
  void PostSend() {
    DAT_LMR_TRIPLET piece = memory_.Local(kHelloAt, kSlotBytes);
    Must(dat_ep_post_send(ep, 1, &piece, Cookie(0), kDefault));
    ++sends;
  }
  void TakeSends() {
    DAT_EVENT event;
    while (dat_evd_dequeue(side_.request_evd, &event) == DAT_SUCCESS) {
      --sends;
      failed_sends_ |= event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS;
    }
  }
  void Answer() {
    if (failed_sends_) return;  // the end has come: Run sees it at its next receive
    DAT_LMR_TRIPLET piece = memory_.Local(kFrom, kWriteBytes);
    Must(dat_ep_post_rdma_write(ep, 1, &piece, Cookie(1), &theirs_, kDefault));
    ++sends;
    PostSend();
  }

  bool failed_sends_ = false;

 public:
  const DAT_EP_HANDLE ep;
  uint64_t receives = 0, sends = 0;  // posted and not yet back
};

bool VictimIsActive(int round) { return round % 2 == 0; }
bool VictimHasChild(int round) { return round % 4 >= 2; }
DAT_CONN_QUAL BystanderPort() { return Port(0); }
DAT_CONN_QUAL VictimPort() { return Port(1); }

void AcceptNext(Side& side, DAT_EP_HANDLE ep) {
  Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
}
void ConnectNow(Side& side, DAT_EP_HANDLE ep, DAT_CONN_QUAL port) {
  side.Connect(ep, port);
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
}

void LiveAsVictim(int round, NumberPipe& pipe) {
  Side side;
  Memory memory(side, kMemory);
  Stream stream(side, memory);
  if (VictimIsActive(round)) {
    ConnectNow(side, stream.ep, VictimPort());
  } else {
    side.Listen(VictimPort());
    pipe.Put(0);
    AcceptNext(side, stream.ep);
  }
  stream.Begin(true);
  pipe.Put(VictimHasChild(round) ? ForkIdleChild() : 0);
  stream.Run();
}

void LiveAsBystander(NumberPipe& pipe) {
  Side side;
  DAT_EP_HANDLE ep = side.NewEp();
  side.PostReceive(ep, 1);
  side.Listen(BystanderPort());
  pipe.Put(0);
  AcceptNext(side, ep);
  while (NextCompletion(side.receive_evd, DAT_TIMEOUT_INFINITE).status == DAT_DTO_SUCCESS) {
    side.PostReceive(ep, 1);
    Must(side.TrySend(ep, 2));
    EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
  }
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
}

void ExpectUnaffected(Side& side, DAT_EP_HANDLE ep) {
  side.PostReceive(ep, 1);
  Must(side.TrySend(ep, 2));
  EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
  EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
  EXPECT_EQ(StateOf(ep), DAT_EP_STATE_CONNECTED);
  EXPECT_TRUE(IsEmpty(side.connect_evd));
}

void Survive(Peer& peer, int rounds) {
  Side other, side;
  Memory memory(side, kMemory);
  DAT_EP_HANDLE bystander = other.NewEp();
  peer.Await("bystander listens");
  ConnectNow(other, bystander, BystanderPort());
  const DAT_PSP_HANDLE psp = side.Listen(VictimPort());
  const Holdings listening = HoldingsNow();
  Must(dat_psp_free(psp));
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE(round);
    const bool passive = VictimIsActive(round);
    Stream stream(side, memory);
    const DAT_PSP_HANDLE listener = passive ? side.Listen(VictimPort()) : DAT_HANDLE_NULL;
    peer.Tell("next");
    if (passive) {
      AcceptNext(side, stream.ep);
      Must(dat_psp_free(listener));
    } else {
      peer.Await("victim listens");
      ConnectNow(side, stream.ep, VictimPort());
    }
    stream.Begin(false);
    stream.Run();
    const uint64_t noticed = NowMicroseconds();
    const DAT_EVENT event = Next(side.connect_evd);
    EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
                event.event_number == DAT_CONNECTION_EVENT_BROKEN)
        << event.event_number;
    EXPECT_EQ(event.event_data.connect_event_data.ep_handle, stream.ep);
    const auto killed = peer.Receive<uint64_t>();
    EXPECT_LT(noticed, killed + kNoticeMicroseconds * static_cast<uint64_t>(Slowness()));
    stream.Drain();
    EXPECT_EQ(StateOf(stream.ep), DAT_EP_STATE_DISCONNECTED);
    ExpectUnaffected(other, bystander);
    EXPECT_TRUE(IsEmpty(side.connect_evd)) << "more than one event";
    EXPECT_TRUE(IsEmpty(side.async_evd));
    EXPECT_TRUE(HoldsAtMost(listening));  // the victim's child still lives
    peer.Tell("survived");
  }
  Must(dat_ep_disconnect(bystander, DAT_CLOSE_GRACEFUL_FLAG));
  NextConnection(other.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, bystander);
}

void KillVictims(Peer& peer, int rounds) {
  KeepOrphans();
  RandomInstant instant;
  NumberPipe ready;
  Victim bystander([&] { LiveAsBystander(ready); });
  ready.OnlyGet();
  ready.Get();
  peer.Tell("bystander listens");
  for (int round = 0; round < rounds; ++round) {
    peer.Await("next");
    NumberPipe pipe;
    Victim victim([&] { LiveAsVictim(round, pipe); });
    pipe.OnlyGet();
    if (!VictimIsActive(round)) {
      pipe.Get();
      peer.Tell("victim listens");
    }
    const pid_t orphan = pipe.Get();
    instant.Pass(kLongestPass);
    const uint64_t now = NowMicroseconds();
    victim.Kill();
    peer.Send(now);
    peer.Await("survived");
    if (orphan != 0) KillOrphan(orphan);
  }
  EXPECT_EQ(bystander.Join(), 0);
}

TEST(Kill, DatSurvivorGetsItsEventAndNothingElseSuffers) {
  const int rounds = Rounds(20, 1000);
  PairOptions options;
  options.seconds = 60 + 5 * rounds;
  RunPair([rounds](Peer& peer) { Survive(peer, rounds); },
          [rounds](Peer& peer) { KillVictims(peer, rounds); }, options);
  if (HasOwnNetwork()) {
    EXPECT_TRUE(NetworkIsEmpty());
  }
}

}  // namespace
}  // namespace viaduct::tests
