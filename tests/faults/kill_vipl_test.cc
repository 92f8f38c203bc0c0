// kill -9 of either side of a stream, as a VIPL program sees it.
//
// Three processes and the one that kills: the survivor holds a connection to a bystander all the
// time, and one to a victim, which is killed at a random instant of a stream in both directions.
#include <vipl.h>

#include <cstring>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/conformance/vipl/side.h"
#include "tests/faults/killer.h"
#include "tests/faults/leftovers.h"

namespace viaduct::tests {
namespace {

constexpr VIP_ULONG kLong = 20000;  // ms
constexpr int64_t kNoticeMilliseconds = 10000;
constexpr int kWindow = 8;
constexpr int kReceives = kWindow + 1;  // descriptors 0.. for receives, the others for sends
constexpr size_t kWriteBytes = 16384;
constexpr size_t kWriteFrom = 512 * 1024;
constexpr int kBystanderName = 0, kVictimName = 1;
constexpr int kLongestPass = 20000;  // microseconds

struct Target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

VIP_VI_ATTRIBUTES StreamAttributes() {
  VIP_VI_ATTRIBUTES attributes = Attributes(VIP_SERVICE_RELIABLE_DELIVERY);
  attributes.EnableRdmaWrite = VIP_TRUE;
  return attributes;
}

// A VI that answers each message with a write and a message. The source begins with a window of
// them, so that a receive waits for every message.
class Stream {
 public:
  Stream() : side(StreamAttributes()), target_(side.nic, &kWritable, kWriteBytes) {}

  void Prepare() {
    next_ = kReceives;
    for (int n = 0; n < kReceives; ++n) PostReceive(n);
  }

  // Each tells the other where it may write; the source then fills the window.
  void Begin(bool source) {
    const Target mine = {reinterpret_cast<VIP_UINT64>(target_.data()), target_.handle()};
    VIP_DESCRIPTOR* d = NextSlot();
    std::memcpy(d->DS[0].Local.Data.Address, &mine, sizeof mine);
    Post(d);
    VIP_DESCRIPTOR* hello = side.NextReceive();
    ASSERT_NE(hello, nullptr);
    --receives;
    ASSERT_EQ(hello->CS.Status & VIP_STATUS_ERROR_MASK, 0u);
    std::memcpy(&theirs_, hello->DS[0].Local.Data.Address, sizeof theirs_);
    PostReceive(NumberOf(hello));
    for (int n = 0; source && n < kWindow; ++n) Answer();
  }

  // Runs until the first descriptor fails; only the survivor returns.
  void Run() {
    for (;;) {
      VIP_DESCRIPTOR* done = nullptr;
      const VIP_RETURN result = VipRecvWait(side.vi, kLong, &done);
      ASSERT_NE(done, nullptr) << "no message and no event, result " << result;
      --receives;
      if (result != VIP_SUCCESS) {
        ExpectFlushed(done, false);
        return;
      }
      PostReceive(NumberOf(done));
      Answer();
    }
  }

  // Everything that was posted comes back: what was done before the end, then only flushed ones.
  void Drain() {
    Drain(&VipRecvWait, &receives, true);
    Drain(&VipSendWait, &sends, false);
    EXPECT_EQ(receives, 0);
    EXPECT_EQ(sends, 0);
  }

  Side side;
  int receives = 0, sends = 0;  // posted and not yet back

 private:
  static constexpr VIP_MEM_ATTRIBUTES kWritable = {nullptr, VIP_TRUE, VIP_FALSE};

  int NumberOf(const VIP_DESCRIPTOR* d) const {
    return static_cast<int>((reinterpret_cast<const char*>(d) -
                             reinterpret_cast<const char*>(side.memory.descriptor(0))) /
                            (reinterpret_cast<const char*>(side.memory.descriptor(1)) -
                             reinterpret_cast<const char*>(side.memory.descriptor(0))));
  }
  void PostReceive(int n) {
    side.Receive(n, 64);
    ++receives;
  }
  VIP_DESCRIPTOR* NextSlot() {
    if (++next_ == Memory::kDescriptors) next_ = kReceives;
    return side.memory.Fill(next_, static_cast<size_t>(next_) * 4096, sizeof(Target));
  }
  void Post(VIP_DESCRIPTOR* d) {
    ASSERT_EQ(side.PostSend(d), VIP_SUCCESS);
    ++sends;
  }
  void Answer() {
    VIP_DESCRIPTOR* done = nullptr;
    while (VipSendDone(side.vi, &done) == VIP_SUCCESS) --sends;
    if (done != nullptr) {  // the end has come: Run sees it at its next receive
      --sends;
      return;
    }
    NextSlot();
    Post(side.memory.FillRdma(next_, VIP_CONTROL_OP_RDMAWRITE, kWriteFrom, kWriteBytes,
                              theirs_.address, theirs_.handle));
    Post(NextSlot());
  }
  static void ExpectFlushed(const VIP_DESCRIPTOR* d, bool may_be_in_flight) {
    const VIP_UINT32 errors = d->CS.Status & VIP_STATUS_ERROR_MASK;
    EXPECT_NE(d->CS.Status & VIP_STATUS_DONE, 0u);
    EXPECT_TRUE(errors == VIP_STATUS_DESC_FLUSHED_ERROR ||
                (may_be_in_flight && errors == VIP_STATUS_TRANSPORT_ERROR))
        << std::hex << d->CS.Status;
  }
  void Drain(VIP_RETURN (*wait)(VIP_VI_HANDLE, VIP_ULONG, VIP_DESCRIPTOR**), int* outstanding,
             bool failed) {
    while (*outstanding > 0) {
      VIP_DESCRIPTOR* done = nullptr;
      const VIP_RETURN result = wait(side.vi, kLong, &done);
      ASSERT_NE(done, nullptr) << *outstanding << " are missing, result " << result;
      --*outstanding;
      if (!failed && result == VIP_SUCCESS) continue;
      EXPECT_EQ(result, VIP_DESCRIPTOR_ERROR) << "a success behind a failure";
      failed = true;
      ExpectFlushed(done, wait == &VipSendWait);
    }
  }

  Memory target_;
  Target theirs_ = {};
  int next_ = kReceives;
};

// The variants of a round.
bool VictimIsActive(int round) { return round % 2 == 0; }
bool VictimHasChild(int round) { return round % 4 >= 2; }

void LiveAsVictim(int round, NumberPipe& pipe) {
  Stream stream;
  stream.Prepare();
  if (VictimIsActive(round)) {
    ASSERT_EQ(stream.side.Connect(kVictimName), VIP_SUCCESS);
  } else {
    stream.side.Accept(kVictimName);
  }
  stream.Begin(true);
  pipe.Put(VictimHasChild(round) ? ForkIdleChild() : 0);
  stream.Run();
}

void LiveAsBystander() {
  Side side;
  side.Receive(0);
  side.Accept(kBystanderName);
  for (;;) {
    VIP_DESCRIPTOR* done = nullptr;
    if (VipRecvWait(side.vi, VIP_INFINITE, &done) != VIP_SUCCESS) break;  // the survivor is done
    ASSERT_EQ(side.TextOf(done), "ping");
    side.Receive(0);
    side.SendText(16, "pong");
  }
  VipDisconnect(side.vi);
}

class Bystander {
 public:
  Bystander() : errors_(side_.nic.handle) {
    side_.Receive(0);
    side_.Connect(kBystanderName);
  }
  ~Bystander() { EXPECT_EQ(VipDisconnect(side_.vi), VIP_SUCCESS); }
  void ExpectUnaffected() {
    side_.SendText(16, "ping");
    EXPECT_EQ(side_.TextOf(side_.NextReceive()), "pong");
    side_.Receive(0);
    EXPECT_EQ(side_.State(), VIP_STATE_CONNECTED);
    EXPECT_TRUE(errors_.empty());
  }

 private:
  Side side_;
  ErrorLog errors_;
};

void Survive(Peer& peer, int rounds) {
  Bystander bystander;
  Stream stream;
  ErrorLog errors(stream.side.nic.handle);
  Holdings before = HoldingsNow();
  ++before.threads;  // the first error starts the thread that calls the program back
  for (int round = 0; round < rounds && !::testing::Test::HasFailure(); ++round) {
    stream.Prepare();
    peer.Tell("next");
    if (VictimIsActive(round)) {
      stream.side.Accept(kVictimName);
    } else {
      ASSERT_EQ(stream.side.Connect(kVictimName), VIP_SUCCESS) << "round " << round;
    }
    stream.Begin(false);
    stream.Run();
    const int64_t noticed = NowMilliseconds();
    stream.Drain();
    VIP_ERROR_DESCRIPTOR error;
    ASSERT_TRUE(errors.Next(&error)) << "round " << round;
    EXPECT_EQ(error.ErrorCode, VIP_ERROR_CONN_LOST);
    EXPECT_EQ(error.ViHandle, stream.side.vi);
    EXPECT_EQ(stream.side.State(), VIP_STATE_ERROR);
    EXPECT_LT(noticed - peer.Receive<int64_t>(), kNoticeMilliseconds * Slowness())
        << "round " << round;
    bystander.ExpectUnaffected();
    EXPECT_EQ(VipDisconnect(stream.side.vi), VIP_SUCCESS);
    EXPECT_EQ(stream.side.State(), VIP_STATE_IDLE);
    EXPECT_TRUE(errors.empty()) << "more than one event";
    // The victim's child still lives.
    EXPECT_TRUE(HoldsAtMost(before)) << "round " << round;
    peer.Tell("survived");
  }
}

void KillVictims(Peer& peer, int rounds) {
  KeepOrphans();
  RandomInstant instant;
  Victim bystander(LiveAsBystander);
  for (int round = 0; round < rounds; ++round) {
    peer.Await("next");
    NumberPipe pipe;
    Victim victim([&] { LiveAsVictim(round, pipe); });
    pipe.OnlyGet();
    const pid_t orphan = pipe.Get();
    instant.Pass(kLongestPass);
    const int64_t now = NowMilliseconds();
    victim.Kill();
    peer.Send(now);
    peer.Await("survived");
    if (orphan != 0) KillOrphan(orphan);
  }
  EXPECT_EQ(bystander.Join(), 0);
}

TEST(Kill, ViplSurvivorGetsItsEventAndNothingElseSuffers) {
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
