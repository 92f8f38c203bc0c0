#ifndef VIADUCT_VERBS_SOFT_IWARP_TESTING_LINK_H_
#define VIADUCT_VERBS_SOFT_IWARP_TESTING_LINK_H_

#include <array>
#include <latch>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/device.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/fpdu_writer.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/queue_pair.h"

// For tests: one end of ours against a plain socket that says byte by byte what a test wants.

namespace viaduct::verbs::iwarp {

inline constexpr char kRequest[] = "4d504120494420526571204672616d65";
inline constexpr char kReply[] = "4d504120494420526570204672616d65";
// Zero-length Write of STag 1, with CRC.
inline constexpr char kWriteRtr[] = "000ec140000000010000000000000000ebd34c5f";

inline std::string Join(std::string_view hex) { return ToHex(FromHex(hex)); }

inline std::vector<uint8_t> Fpdu(const DdpHeader& header, std::string_view payload_hex,
                                 bool crc = true) {
  std::vector<uint8_t> payload = FromHex(payload_hex);
  const iovec part{payload.data(), payload.size()};
  FpduFrame frame;
  FrameFpdu(header, {}, {&part, 1}, crc, &frame);
  std::vector<uint8_t> bytes(frame.head_bytes().begin(), frame.head_bytes().end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  bytes.insert(bytes.end(), frame.tail_bytes().begin(), frame.tail_bytes().end());
  return bytes;
}

inline DdpHeader SendHeader(uint32_t sequence, uint32_t offset = 0, bool last = true) {
  return UntaggedHeader(RdmapOpcode::kSend, sequence, offset, last);
}

inline std::vector<uint8_t> ReadFpdu(uint32_t sequence, const ReadRequest& request) {
  std::array<uint8_t, kReadRequestSize> bytes;
  EncodeReadRequest(request, bytes);
  return Fpdu(UntaggedHeader(RdmapOpcode::kReadRequest, sequence, 0, true), ToHex(bytes));
}

// What the next FPDU asks for, which is a Read Request.
inline ReadRequest ReceiveReadRequest(TestPeer& peer) {
  std::vector<uint8_t> fpdu = FromHex(peer.ReceiveFpduHex());
  EXPECT_EQ(fpdu.size(), 52u);
  fpdu.resize(52);
  return DecodeReadRequest(std::span<const uint8_t>(fpdu)
                               .subspan<kFpduLengthSize + kDdpUntaggedSize, kReadRequestSize>());
}

// The control bytes of a Terminate FPDU: layer and type, code.
inline std::string CodeOf(const std::string& fpdu) {
  return fpdu.size() >= 44 && fpdu.substr(4, 4) == "4147" ? fpdu.substr(40, 4) : "none: " + fpdu;
}

// While it lives, nothing else runs on the loop, as where a sink takes its time.
class LoopHold {
 public:
  explicit LoopHold(EventLoop& loop) {
    loop.Post([ends = ends_] {
      ends->begun.count_down();
      ends->over.wait();
    });
    ends_->begun.wait();
  }
  ~LoopHold() { ends_->over.count_down(); }
  LoopHold(const LoopHold&) = delete;
  LoopHold& operator=(const LoopHold&) = delete;

 private:
  struct Ends {
    std::latch begun{1};
    std::latch over{1};
  };
  const std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
};

class LinkTest : public testing::Test {
 protected:
  // A peer that dials us, with CRC and A=1, C=1; connected when it returns.
  TestPeer Accepted(const TestEnd::Options& options = {}) {
    TestPeer peer = Answered("50020004 80108010", options);
    EXPECT_EQ(peer.ReceiveHex(24), std::string(kReply) + "50020004" + depths_);
    EXPECT_TRUE(end_->sink.Empty());
    peer.SendHex(kWriteRtr);
    EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
    return peer;
  }

  // The answer to a request of a peer with which the consumers agree on `form`.
  TestPeer Answered(std::string_view request, const TestEnd::Options& options = {},
                    ImmediateForm form = ImmediateForm::kNone) {
    end_ = std::make_unique<TestEnd>(options);
    const uint8_t reads = static_cast<uint8_t>(options.reads);
    const uint8_t word[] = {0x80, reads, 0x80, reads};
    depths_ = ToHex(word);
    end_->Listen();
    TestPeer peer = TestPeer::Dial(end_->listener->port());
    peer.SendHex(std::string(kRequest) + std::string(request));
    end_->pair->EnableImmediate(form);
    end_->AcceptNext();
    return peer;
  }

  // One end of ours that dials a peer; the peer has taken the request.
  TestPeer Dialled(const TestEnd::Options& options = {}) {
    end_ = std::make_unique<TestEnd>(options);
    end_->Dial(listener_.port());
    TestPeer peer = listener_.Accept();
    request_ = peer.ReceiveHex(24);
    return peer;
  }

  // The connection ends by our Terminate with this code, and nothing else.
  void ExpectTerminate(TestPeer& peer, const std::string& code) {
    EXPECT_EQ(CodeOf(peer.ReceiveFpduHex()), code);
    const TestPeer::End end = peer.ReceiveEnd();
    EXPECT_EQ(end.hex, "");
    EXPECT_FALSE(end.timed_out);
    EXPECT_FALSE(end.reset);
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }

  DisconnectCause NextDisconnect() {
    Event event = end_->sink.Next();
    if (event.kind == Event::Kind::kRefusedWrite) event = end_->sink.Next();
    damage_ = event.damage;
    if (event.kind == Event::Kind::kDamage) event = end_->sink.Next();
    EXPECT_EQ(event.kind, Event::Kind::kDisconnected);
    return event.cause;
  }

  // A message of so many bytes.
  static std::vector<uint8_t> Message(uint32_t sequence, size_t bytes) {
    return Fpdu(SendHeader(sequence), std::string(2 * bytes, '5'));
  }
  // As many as a link holds where there are no receives: the next one is the sixth.
  void SendAllThatIsHeld(TestPeer& peer) {
    for (uint32_t i = 1; i <= 5; ++i) peer.Send(Message(i, 50000));
    // It is answered when they are held.
    peer.Send(ReadFpdu(1, {.sink_stag = 7,
                           .size = 8,
                           .source_stag = end_->region->key(),
                           .source_offset = end_->address(0)}));
    peer.ReceiveFpduHex();
  }
  // Of separate queues: what has come is taken, and is for no receive.
  void TakeWithoutReceives() {
    Completion completion;
    for (int i = 0; i < 3; ++i) {
      pair().MarkArrived();  // as the loop would
      EXPECT_EQ(end_->separate->Poll(&completion, 1), 0);
    }
  }

  // Two messages of the peer in one piece, for three receives; the connection ends behind them.
  void SendTwo(TestPeer& peer) {
    for (uint64_t i = 0; i < 3; ++i) end_->Receive(i, 0, 8);
    std::vector<uint8_t> bytes = Fpdu(SendHeader(1), "41");
    const std::vector<uint8_t> second = Fpdu(SendHeader(2), "4142");
    bytes.insert(bytes.end(), second.begin(), second.end());
    peer.Send(bytes);
  }
  void ExpectTwoAndAFlush() {
    EXPECT_EQ(end_->NextReceive().length, 1u);
    EXPECT_EQ(end_->NextReceive().length, 2u);
    EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
  }

  SoftQueuePair& pair() { return static_cast<SoftQueuePair&>(*end_->pair); }

  // The link has read the peer's first FPDU: from now on what is sent leaves at once.
  void AwaitFirstWord(TestPeer& peer) {
    end_->Send(0, 0, 0, kSuppress);
    peer.ReceiveFpduHex();
  }

  // Holds the loop while nobody looks at the pair without a mark.
  void HoldWhileCold(std::optional<LoopHold>* hold) {
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    do {
      hold->emplace(end_->loop);
    } while (pair().hot() && !deadline.Passed(end_->loop));
  }

  // Behind the peer's reset, with the loop held: sends until one has met it, and stays.
  void SendIntoReset() {
    SendRequest request;
    request.flags = kSuppress;
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    while (!pair().SendsUnemitted()) {
      ASSERT_FALSE(deadline.Passed(end_->loop));
      ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
    }
  }

  std::unique_ptr<TestEnd> end_;
  TestListener listener_;
  std::string request_;  // that the peer of Dialled has taken
  std::string depths_;
  Damage damage_ = Damage::kNone;  // that NextDisconnect was told of
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TESTING_LINK_H_
