// How our end of a connection ends, and what is still received, answered and reported then. The
// peer is a plain socket that sends what a test wants, byte by byte.
#include <sys/mman.h>

#include <array>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/pass_lock.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = Event::Kind;
using Op = RdmapOpcode;

// Checklist 29, 55.
TEST_F(LinkTest, HowThePeerLeaves) {
  {
    SCOPED_TRACE("FIN");
    TestPeer peer = Accepted();
    peer.Shutdown();
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kPeer);
    EXPECT_EQ(peer.ReceiveEnd().hex, "");
  }
  {
    SCOPED_TRACE("FIN inside an FPDU");
    TestPeer peer = Accepted();
    peer.SendHex("001a4143");
    peer.Shutdown();
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
  {
    SCOPED_TRACE("RST");
    TestPeer peer = Accepted();
    peer.Reset();
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
  {
    SCOPED_TRACE("FIN while it owes the answer to a read");
    TestPeer peer = Accepted();
    SendRequest request;
    request.opcode = Opcode::kRead;
    request.remote_key = 1;
    ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
    peer.ReceiveFpduHex();
    peer.Shutdown();
    EXPECT_EQ(end_->NextSend().status, Status::kTransport);
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
}

// The peer disconnects, and its process ends: what we go on sending meets a reset, but the FIN came
// before it.
TEST_F(LinkTest, PeerDisconnectsAndExitsWhileWeSend) {
  for (int round = 0; round < 50; ++round) {
    TestPeer peer = Accepted();
    peer.Shutdown();
    peer.Close();
    SendRequest request;
    for (int i = 0; i < 200; ++i) (void)end_->pair->PostSend(request);
    ASSERT_EQ(NextDisconnect(), DisconnectCause::kPeer) << round;
  }
}

// A poller need not wait for the loop, whether the link is hot or not.
TEST_F(LinkTest, PollersReadWhatCameBeforeAResetThatASendMeets) {
  for (const bool hot : {false, true}) {
    SCOPED_TRACE(hot);
    TestPeer peer = Accepted({.separate_queues = true});
    AwaitFirstWord(peer);
    std::optional<LoopHold> hold;
    HoldWhileCold(&hold);
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    Completion completion;
    EXPECT_EQ(end_->separate->Poll(&completion, 1), 0);  // clears the mark of earlier arrivals
    if (hot) {
      peer.SendHex(kWriteRtr);
      while (!pair().hot() && !deadline.Passed(end_->loop)) {
        pair().MarkArrived();  // as the loop would
        end_->separate->Poll(&completion, 1);
      }
    }
    ASSERT_EQ(pair().hot(), hot);
    SendTwo(peer);
    peer.Reset();
    SendIntoReset();
    ASSERT_EQ(end_->separate->Poll(&completion, 1), 1);
    EXPECT_EQ(completion.length, 1u);
    ASSERT_EQ(end_->separate->Poll(&completion, 1), 1);
    EXPECT_EQ(completion.length, 2u);
    EXPECT_FALSE(end_->pair->Ended());
    EXPECT_EQ(end_->separate->Poll(&completion, 1), 0);
    EXPECT_TRUE(end_->pair->Ended());
  }
}

// A link that holds as much as it may reads on after a reset, for receives that are posted in time,
// and to the end if none are.
TEST_F(LinkTest, HeldMessagesBeforeAResetThatASendMeets) {
  for (const uint32_t receives : {0, 9}) {
    SCOPED_TRACE(receives);
    TestPeer peer = Accepted({.separate_queues = true});
    SendAllThatIsHeld(peer);
    {
      const LoopHold hold(end_->loop);
      // One more is too much.
      std::vector<uint8_t> bytes =
          Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(100000), true), "41");
      const std::vector<uint8_t> sixth = Message(6, 20000);
      bytes.insert(bytes.end(), sixth.begin(), sixth.end());
      peer.Send(bytes);
      Completion completion;
      const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
      while (end_->memory[100000] == 0 && !deadline.Passed(end_->loop)) {
        pair().MarkArrived();  // as the loop would
        end_->separate->Poll(&completion, 1);
      }
      for (uint32_t i = 7; i <= 8; ++i) peer.Send(Fpdu(SendHeader(i), "41"));
      peer.Reset();
      SendIntoReset();
      for (uint32_t i = 1; i <= receives; ++i) end_->Receive(i, 0, 50000);
    }
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
    for (uint32_t i = 1; i <= receives; ++i) {
      ASSERT_EQ(end_->NextReceive().status, i <= 8 ? Status::kSuccess : Status::kFlushed) << i;
    }
  }
}

// The peer is alive and may send for ever, so its messages are not waited for.
TEST_F(LinkTest, ASendThatFailsWithoutAReset) {
  TestPeer peer = Answered("10020004 80108010", {.crc = false});
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  AwaitFirstWord(peer);
  constexpr size_t kBytes = 4096;
  void* const gone =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  const auto region = *end_->context->Register(*end_->domain, gone, kBytes, kLocalRead);
  munmap(gone, kBytes);
  const Segment segment{reinterpret_cast<uint64_t>(gone), region->key(), kBytes};
  SendRequest request;
  request.segments = {&segment, 1};
  {
    const LoopHold hold(end_->loop);
    ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
    EXPECT_TRUE(end_->pair->Ended());
  }
  EXPECT_EQ(end_->NextSend().status, Status::kFlushed);
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// One thread's send takes the error of the reset; what another thread reads then looks like a FIN.
TEST_F(LinkTest, ResetIsNoDisconnectWhileAnotherThreadSends) {
  for (int round = 0; round < 20; ++round) {
    TestPeer peer = Accepted({.separate_queues = true});
    std::thread poster([&] {
      SendRequest request;
      request.flags = kSuppress;
      while (!end_->pair->Ended()) {
        Completion completion;
        (void)end_->pair->PostSend(request);
        end_->send_queue->Poll(&completion, 1);
      }
    });
    Completion completion;
    for (int i = 0; i < 100; ++i) end_->separate->Poll(&completion, 1);
    peer.Reset();
    while (!end_->pair->Ended()) end_->separate->Poll(&completion, 1);
    poster.join();
    ASSERT_EQ(NextDisconnect(), DisconnectCause::kBroken) << round;
  }
}

// With two queues, a poll of one checks whether something came for the other.
TEST_F(LinkTest, ResetIsNoDisconnectWithSeparateQueues) {
  for (int round = 0; round < 20; ++round) {
    TestPeer peer = Accepted({.separate_queues = true});
    end_->Receive(1, 0, 8);
    Completion completion;
    for (int i = 0; i < 100; ++i) end_->separate->Poll(&completion, 1);
    peer.Reset();
    do {
      end_->send_queue->Poll(&completion, 1);
    } while (end_->separate->Poll(&completion, 1) == 0);
    EXPECT_EQ(completion.status, Status::kFlushed);
    ASSERT_EQ(NextDisconnect(), DisconnectCause::kBroken) << round;
  }
}

// What was sent before the peer's FIN is received before the end is reported.
TEST_F(LinkTest, LastMessagesBeforeTheFin) {
  TestPeer peer = Accepted();
  SendTwo(peer);
  peer.Shutdown();
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kPeer);
  ExpectTwoAndAFlush();
}

// The program may end the connection, or the process, as soon as it has the message.
TEST_F(LinkTest, AMessagesConfirmationLeavesBeforeItShows) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  const LoopHold hold(end_->loop);
  end_->Receive(1, 0, 8);
  std::vector<uint8_t> bytes = Fpdu(SendHeader(1), "41");
  const std::vector<uint8_t> read = ReadFpdu(1, {.sink_stag = 7, .sink_offset = 9});
  bytes.insert(bytes.end(), read.begin(), read.end());
  peer.Send(bytes);
  peer.AwaitTaken();
  Completion completion;
  const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
  do {
    pair().MarkArrived();  // as the loop would
    ASSERT_FALSE(deadline.Passed(end_->loop));
  } while (end_->separate->Poll(&completion, 1) == 0);
  EXPECT_TRUE(peer.Readable());
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 9, true), "")));
}

// A poll that takes as many messages as it may leaves the rest of a read after them to the loop.
TEST_F(LinkTest, AReadThatIsCutBehindTheLastMessageOfALookIsAnswered) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  for (uint64_t i = 0; i < 2; ++i) end_->Receive(i, 0, 8);
  std::vector<uint8_t> bytes = Fpdu(SendHeader(1), "41");
  for (const auto& next : {Fpdu(SendHeader(2), "42"), ReadFpdu(1, {.sink_stag = 7})}) {
    bytes.insert(bytes.end(), next.begin(), next.end());
  }
  const std::span<const uint8_t> sent(bytes);
  {
    std::optional<LoopHold> hold;
    HoldWhileCold(&hold);
    // Held as by a poller of the other queue, so that the pair stays cold.
    const PassLockHolder other(&end_->send_queue->lock());
    peer.Send(sent.first(bytes.size() - 8));
    peer.AwaitTaken();
    pair().MarkArrived();  // as the loop would
    Completion completion;
    EXPECT_EQ(end_->separate->Poll(&completion, 1), 1);
    peer.Send(sent.last(8));
    peer.AwaitTaken();
    EXPECT_EQ(end_->separate->Poll(&completion, 1), 1);
    EXPECT_FALSE(pair().hot());
  }
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 0, true), "")));
}

// By an empty read the peer asks whether its message was received, which it was. A link that ends
// still answers such questions. Anything else is no longer taken, nor is what comes after it.
TEST_F(LinkTest, ConfirmsWhatWasReceivedBeforeTheEnd) {
  const std::vector<uint8_t> first = ReadFpdu(1, {.sink_stag = 7});
  const std::vector<uint8_t> second = ReadFpdu(2, {.sink_stag = 8});
  const auto answer = [](uint32_t stag) {
    return ToHex(Fpdu(TaggedHeader(Op::kReadResponse, stag, 0, true), ""));
  };
  std::vector<uint8_t> corrupt = second;
  corrupt.back() ^= 1;
  struct Row {
    const char* name;
    std::vector<std::vector<uint8_t>> fpdus;
    std::string answers;
  };
  const Row rows[] = {
      {"nothing", {}, ""},
      {"two questions", {first, second}, answer(7) + answer(8)},
      {"behind a message", {first, Fpdu(SendHeader(2), "42"), second}, answer(7)},
      {"behind a read with data", {ReadFpdu(1, {.sink_stag = 7, .size = 1}), second}, ""},
      {"corrupt", {first, corrupt}, answer(7)},
      {"out of order", {second}, ""},
      {"cut", {first, std::vector<uint8_t>(second.begin(), second.end() - 1)}, answer(7)},
      {"a Terminate", {Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true), "00000000"), first}, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TestPeer peer = Accepted({.separate_queues = true});
    AwaitFirstWord(peer);
    end_->Receive(1, 0, 8);
    end_->Receive(2, 0, 8);
    peer.Send(Fpdu(SendHeader(1), "41"));
    EXPECT_EQ(end_->NextReceive().length, 1u);
    {
      const LoopHold hold(end_->loop);
      for (const std::vector<uint8_t>& fpdu : row.fpdus) peer.Send(fpdu);
      peer.AwaitTaken();
      end_->pair->Disconnect(DisconnectMode::kAbrupt);
    }
    const TestPeer::End end = peer.ReceiveEnd();
    EXPECT_EQ(end.hex, row.answers);
    EXPECT_FALSE(end.timed_out);
    EXPECT_FALSE(end.reset);
    EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
  }
}

// At most as many reads as may be in flight are answered, however many the peer sends.
TEST_F(LinkTest, ConfirmsNoMoreThanAgreedAtTheEnd) {
  TestPeer peer = Accepted({.reads = 2, .separate_queues = true});
  AwaitFirstWord(peer);
  {
    const LoopHold hold(end_->loop);
    for (uint32_t i = 1; i <= 3; ++i) peer.Send(ReadFpdu(i, {.sink_stag = i}));
    peer.AwaitTaken();
    end_->pair->Disconnect(DisconnectMode::kAbrupt);
  }
  std::string answers;
  for (uint32_t i = 1; i <= 2; ++i) {
    answers += ToHex(Fpdu(TaggedHeader(Op::kReadResponse, i, 0, true), ""));
  }
  EXPECT_EQ(peer.ReceiveEnd().hex, answers);
}

// The held message, and so whatever comes after it, was not received.
TEST_F(LinkTest, ConfirmsNoHeldMessageAtTheEnd) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  peer.Send(Fpdu(SendHeader(1), "41"));
  peer.Send(ReadFpdu(1, {.sink_stag = 7,
                         .size = 1,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(0)}));
  peer.ReceiveFpduHex();
  {
    const LoopHold hold(end_->loop);
    peer.Send(ReadFpdu(2, {.sink_stag = 8}));
    peer.AwaitTaken();
    end_->pair->Disconnect(DisconnectMode::kAbrupt);
  }
  EXPECT_EQ(peer.ReceiveEnd().hex, "");
}

// The peer would take the answer for that of the atomic, whose refusal is still to come.
TEST_F(LinkTest, ConfirmsNothingBehindARefusedAtomic) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  std::array<uint8_t, kAtomicRequestSize> atomic;
  EncodeAtomicRequest({.stag = end_->region->key(), .address = end_->address(0)}, atomic);
  {
    const LoopHold hold(end_->loop);
    peer.Send(Fpdu(UntaggedHeader(Op::kAtomicRequest, 1, 0, true), ToHex(atomic)));
    peer.AwaitTaken();
    Completion completion;
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    while (!end_->pair->Ended() && !deadline.Passed(end_->loop)) {
      pair().MarkArrived();  // as the loop would
      end_->separate->Poll(&completion, 1);
    }
    peer.Send(ReadFpdu(2, {.sink_stag = 7}));
    peer.AwaitTaken();
  }
  ExpectTerminate(peer, "0102");
}

// RFC 7306 leaves room for other operations; the region's word must not be changed by guesswork.
TEST_F(LinkTest, AnUnknownAtomicOperationIsRefused) {
  TestPeer peer = Accepted();
  AwaitFirstWord(peer);
  std::array<uint8_t, kAtomicRequestSize> atomic;
  EncodeAtomicRequest({.operation = 5, .stag = end_->region->key(), .address = end_->address(0)},
                      atomic);
  peer.Send(Fpdu(UntaggedHeader(Op::kAtomicRequest, 1, 0, true), ToHex(atomic)));
  ExpectTerminate(peer, "0206");
}

// A refused write or damaged bytes do not affect the pair's next connection.
TEST_F(LinkTest, TheNextConnectionBeginsAnew) {
  for (const bool corrupt : {false, true}) {
    SCOPED_TRACE(corrupt);
    TestPeer first = Accepted();
    std::vector<uint8_t> bad = Fpdu(
        TaggedHeader(Op::kWrite, end_->region->key() ^ (1 << 20), end_->address(0), true), "4142");
    if (corrupt) bad.back() ^= 1;
    first.Send(bad);
    ExpectTerminate(first, corrupt ? "2002" : "1100");
    end_->pair->Reset();
    TestPeer second = TestPeer::Dial(end_->listener->port());
    second.SendHex(std::string(kRequest) + "40010000");  // no RTR write precedes its first
    end_->AcceptNext();
    second.ReceiveHex(20);
    EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
    const uint32_t key = end_->region->key();
    second.Send(Fpdu(TaggedHeader(Op::kWrite, key, end_->address(0), true), "4142"));
    second.Send(ReadFpdu(
        1, {.sink_stag = 7, .size = 2, .source_stag = key, .source_offset = end_->address(0)}));
    EXPECT_EQ(second.ReceiveFpduHex(),
              ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 0, true), "4142")));
    second.Shutdown();
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kPeer);
    EXPECT_EQ(damage_, Damage::kNone);
  }
}

TEST_F(LinkTest, GracefulEndIsAFin) {
  TestPeer peer = Accepted();
  end_->Send(1, 0, 0);
  end_->pair->Disconnect(DisconnectMode::kGraceful);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(1), "")));
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.reset);
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kLocal);
}

// The link waits for a peer whose window is closed but which is alive; see CheckAcks.
TEST_F(LinkTest, SlowReaderIsNotSilent) {
  TestPeer peer = Accepted({.memory = 16 << 20, .silence = 1'000'000'000});
  end_->Send(1, 0, 16 << 20);
  // Several times the time limit, in which TCP probes the closed window.
  const Nanos until = end_->loop.Now() + 3'500'000'000;
  Completion completion;
  const uint32_t wakes = end_->send_queue->wakes();
  while (end_->send_queue->Wait(Deadline::At(until), wakes) != WaitResult::kTimedOut) {
    ASSERT_EQ(end_->send_queue->Poll(&completion, 1), 0);
  }
  EXPECT_TRUE(end_->sink.Empty());
  EXPECT_EQ(peer.Discard(16 << 20), size_t{16 << 20});
  EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
