// What a link reports of its attempt and of arrivals, and when it gives up its socket. The peer is
// a plain socket that sends what a test wants, byte by byte.
#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/base/no_descriptors.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = Event::Kind;

// ------------------------------------------------------------------------------ the attempt

TEST_F(LinkTest, ItsPortAndItsHostAreKnown) {
  {
    SCOPED_TRACE("dialled");
    const TestPeer peer = Dialled();
    EXPECT_EQ(end_->pair->local_port(), peer.remote_port());
    EXPECT_TRUE(end_->pair->Heard());
  }
  {
    SCOPED_TRACE("accepted");
    const TestPeer peer = Accepted();
    EXPECT_EQ(end_->pair->local_port(), peer.remote_port());
    EXPECT_TRUE(end_->pair->Heard());
  }
}

// Connect fails at once, and the caller may try again.
TEST_F(LinkTest, NoDescriptorToDialWith) {
  end_ = std::make_unique<TestEnd>();
  ConnectOptions options;
  options.address = *Address::Parse("127.0.0.1");
  options.port = listener_.port();
  {
    const NoDescriptors none;
    EXPECT_TRUE(absl::IsResourceExhausted(end_->pair->Connect(options)));
  }
  end_->Dial(listener_.port());
  EXPECT_EQ(listener_.Accept().ReceiveHex(24).size(), 2u * 24);
}

// A host that answers once and then falls silent: the answer does not mean that nobody listens.
TEST_F(LinkTest, AHostThatIsCutOffBehindItsReset) {
  TestPeer peer = Dialled({.silence = 100'000'000});
  const TestPeer other = listener_.Fill();
  peer.Reset();
  const Event event = end_->sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kUnreachable);
  EXPECT_TRUE(end_->pair->Heard());
}

// A reset keeps the answer from the peer as a FIN does: no connection is reported.
TEST_F(LinkTest, PeerResetsBeforeItIsAccepted) {
  end_ = std::make_unique<TestEnd>();
  end_->Listen();
  TestPeer peer = TestPeer::Dial(end_->listener->port());
  peer.SendHex(std::string(kRequest) + "40010000");
  const std::unique_ptr<IncomingConnection> request = end_->requests.Next();
  peer.Reset();
  ASSERT_TRUE(request->Accept(*end_->pair, {}).ok());
  const Event event = end_->sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
}

// A peer that has sent an FPDU has the reply, whatever is wrong inside the FPDU.
TEST_F(LinkTest, AFirstFpduThatBreaksARuleIsTerminated) {
  struct Row {
    const char* name;
    std::vector<uint8_t> bytes;
    const char* code;
  };
  std::vector<uint8_t> bad_crc = Fpdu(SendHeader(1), "41");
  bad_crc.back() ^= 1;
  const Row rows[] = {
      {"sequence", Fpdu(SendHeader(2), "41"), "1203"},  // the first has number 1
      {"CRC", bad_crc, "2002"},
      {"length", {0, 13, 0, 0}, "2003"},
  };
  for (const char* request : {"50020004 00040004", "50020004 80048004"}) {
    SCOPED_TRACE(request);
    for (const Row& row : rows) {
      SCOPED_TRACE(row.name);
      TestPeer peer = Answered(request, {.first_word = 0});
      peer.ReceiveHex(24);
      peer.Send(row.bytes);
      EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
      ExpectTerminate(peer, row.code);
    }
  }
}

// ----------------------------------------------------------------------- while it is hot

// A hot pair, whose link is checked by its pollers; nothing else runs.
class HotLink : public LinkTest {
 protected:
  TestPeer Begin() {
    TestPeer peer = Accepted({.separate_queues = true});
    AwaitFirstWord(peer);
    HoldWhileCold(&hold_);
    peer.SendHex(kWriteRtr);
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    Completion completion;
    while (!pair().hot() && !deadline.Passed(end_->loop)) {
      pair().MarkArrived();  // as the loop would
      end_->separate->Poll(&completion, 1);
    }
    EXPECT_TRUE(pair().hot());
    return peer;
  }

  // Receives a request and the read that asks to confirm it. Returns the peer's answer.
  static std::vector<uint8_t> Confirmation(TestPeer& peer) {
    peer.ReceiveFpduHex();
    const ReadRequest request = ReceiveReadRequest(peer);
    return Fpdu(
        TaggedHeader(RdmapOpcode::kReadResponse, request.sink_stag, request.sink_offset, true), "");
  }

  // Polls only the send queue.
  void ExpectConfirmed() {
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    Completion completion = {};
    while (end_->send_queue->Poll(&completion, 1) == 0) ASSERT_FALSE(deadline.Passed(end_->loop));
    EXPECT_EQ(completion.id, 7u);
    EXPECT_EQ(completion.status, Status::kSuccess);
  }

  // Takes or holds whatever has come.
  void PollReceives() {
    Completion completion;
    for (int i = 0; i < 30; ++i) EXPECT_EQ(end_->separate->Poll(&completion, 1), 0);
  }

  std::optional<LoopHold> hold_;
};

TEST_F(HotLink, PollsOfSendsFindWhatLiesInTheSocket) {
  TestPeer peer = Begin();
  end_->Send(7, 0, 8, kConfirm);
  peer.Send(Confirmation(peer));
  ExpectConfirmed();
}

// The confirmation follows more messages than the poll of the other queue was to take.
TEST_F(HotLink, PollsOfSendsFindWhatWasReadAndNotTaken) {
  TestPeer peer = Begin();
  for (uint64_t i = 1; i <= 2; ++i) end_->Receive(i, 0, 8);
  end_->Send(7, 0, 8, kConfirm);
  std::vector<uint8_t> bytes = Fpdu(SendHeader(1), "41");
  for (const auto& next : {Fpdu(SendHeader(2), "42"), Confirmation(peer)}) {
    bytes.insert(bytes.end(), next.begin(), next.end());
  }
  peer.Send(bytes);
  peer.AwaitTaken();
  Completion completion;
  EXPECT_EQ(end_->separate->Poll(&completion, 1), 1);
  ExpectConfirmed();
}

// What is in the socket then is for later, and no reason to poll again and again.
TEST_F(HotLink, NothingHasArrivedWhileTooMuchIsHeld) {
  TestPeer peer = Begin();
  for (uint32_t i = 1; i <= 7; ++i) {  // the last one stays in the socket
    peer.Send(Message(i, 50000));
    peer.AwaitTaken();
    PollReceives();
  }
  EXPECT_TRUE(pair().hot());
  EXPECT_FALSE(pair().Arrived());
}

TEST_F(HotLink, NothingHasArrivedBehindTheFin) {
  TestPeer peer = Begin();
  peer.Send(Fpdu(SendHeader(1), "41"));  // no receive: the end waits for one
  peer.Shutdown();
  peer.AwaitTaken();
  PollReceives();
  EXPECT_TRUE(pair().hot());
  EXPECT_FALSE(pair().Arrived());
}

// ------------------------------------------------------------------------------------ the end

// The peer has broken no rule; the Terminate says only that something failed on this side.
TEST_F(LinkTest, TroubleOfOurOwnIsTold) {
  TestPeer peer = Accepted();
  AwaitFirstWord(peer);
  const Segment segment{end_->address(0), end_->region->key() ^ (1 << 20), 8};
  SendRequest request;
  request.segments = {&segment, 1};
  ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
  ExpectTerminate(peer, "0000");
  EXPECT_EQ(end_->NextSend().status, Status::kLocalProtection);
}

// The peer has disconnected, and wants no Terminate.
TEST_F(LinkTest, NoTroubleIsToldBehindThePeersFin) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  {
    const LoopHold hold(end_->loop);
    peer.Send(Fpdu(SendHeader(1), "41"));  // no receive: the end waits for one
    peer.Shutdown();
    peer.AwaitTaken();
    TakeWithoutReceives();
    const Segment segment{end_->address(0), end_->region->key() ^ (1 << 20), 8};
    SendRequest request;
    request.segments = {&segment, 1};
    ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
  }
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.reset);
  EXPECT_EQ(end_->NextSend().status, Status::kLocalProtection);
}

// Not even while a message of the peer waits for a receive.
TEST_F(LinkTest, InitiatorDoesNotNudgeAPeerThatHasLeft) {
  TestPeer peer = Dialled({.nudge = 90'000'000, .separate_queues = true});
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  {
    const LoopHold hold(end_->loop);
    peer.Send(Fpdu(SendHeader(1), "41"));
    peer.Shutdown();
    peer.AwaitTaken();
    TakeWithoutReceives();
  }
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kPeer);  // long after a second nudge was due
  EXPECT_EQ(peer.ReceiveEnd().hex, "");
}

// A link learns of the reset even if it reads no more, since too much is held, and sends nothing.
TEST_F(LinkTest, AResetWhileTooMuchIsHeld) {
  TestPeer peer = Accepted({.separate_queues = true});
  SendAllThatIsHeld(peer);
  {
    const LoopHold hold(end_->loop);
    peer.Send(Message(6, 20000));
    peer.AwaitTaken();
    TakeWithoutReceives();
    peer.Send(Fpdu(SendHeader(7), "41"));
    peer.AwaitTaken();
  }
  peer.Reset();
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// Peers that neither read nor close at the end must not hold descriptors for ever.
TEST_F(LinkTest, APeerThatTakesNothingAtTheEndIsLeft) {
  for (const bool blocked : {false, true}) {
    SCOPED_TRACE(blocked ? "with more than TCP has room for" : "with nothing but the FIN");
    const TestPeer peer = Accepted({.memory = 16 << 20, .silence = kNanosPerSecond});
    const size_t before = OpenDescriptors();
    if (blocked) end_->Send(1, 0, 16 << 20);
    end_->pair->Disconnect(DisconnectMode::kAbrupt);
    const Deadline deadline = Deadline::After(end_->loop, 20 * kNanosPerSecond);
    while (OpenDescriptors() >= before && !deadline.Passed(end_->loop)) poll(nullptr, 0, 10);
    EXPECT_LT(OpenDescriptors(), before);
  }
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
