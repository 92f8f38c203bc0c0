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

// For tests: one end of ours against a plain socket that sends exactly the bytes that a test wants.

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

// The contents of the next FPDU, which must be a Read Request.
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

// While it lives, nothing else runs on the loop, as if a sink call took long.
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
  // A peer that dials us, with CRC and A=1, C=1; connected when this returns.
  TestPeer Accepted(const TestEnd::Options& options = {}) {
    TestPeer peer = Answered("50020004 80108010", options);
    EXPECT_EQ(peer.ReceiveHex(24), std::string(kReply) + "50020004" + depths_);
    EXPECT_TRUE(end_->sink.Empty());
    peer.SendHex(kWriteRtr);
    EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
    return peer;
  }

  // A peer that dials us with `request`, which is accepted; both consumers agree on `form`.
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

  // A peer that one end of ours has dialled and that has received the request.
  TestPeer Dialled(const TestEnd::Options& options = {}) {
    end_ = std::make_unique<TestEnd>(options);
    end_->Dial(listener_.port());
    TestPeer peer = listener_.Accept();
    request_ = peer.ReceiveHex(24);
    return peer;
  }

  // The connection ends with our Terminate, which has this code, and nothing after it.
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

  // A message of `bytes` bytes.
  static std::vector<uint8_t> Message(uint32_t sequence, size_t bytes) {
    return Fpdu(SendHeader(sequence), std::string(2 * bytes, '5'));
  }
  // Sends as many messages as a link holds without receives; the next one has number 6.
  void SendAllThatIsHeld(TestPeer& peer) {
    for (uint32_t i = 1; i <= 5; ++i) peer.Send(Message(i, 50000));
    // This read is answered after they are held.
    peer.Send(ReadFpdu(1, {.sink_stag = 7,
                           .size = 8,
                           .source_stag = end_->region->key(),
                           .source_offset = end_->address(0)}));
    peer.ReceiveFpduHex();
  }
  // With separate queues: polls take what has arrived, which is for no receive.
  void TakeWithoutReceives() {
    Completion completion;
    for (int i = 0; i < 3; ++i) {
      pair().MarkArrived();  // as the loop would
      EXPECT_EQ(end_->separate->Poll(&completion, 1), 0);
    }
  }

  // Posts three receives; the peer sends two messages in one piece. The test then ends the
  // connection.
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

  // Waits until the link has read the peer's first FPDU: from now on sends leave at once.
  void AwaitFirstWord(TestPeer& peer) {
    end_->Send(0, 0, 0, kSuppress);
    peer.ReceiveFpduHex();
  }

  // Holds the loop while the pair is cold, so that nobody polls it unless it is marked.
  void HoldWhileCold(std::optional<LoopHold>* hold) {
    const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
    do {
      hold->emplace(end_->loop);
    } while (pair().hot() && !deadline.Passed(end_->loop));
  }

  // After the peer's reset, with the loop held: posts sends until one meets the reset and remains.
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
  std::string request_;  // received by the peer of Dialled
  std::string depths_;
  Damage damage_ = Damage::kNone;  // reported to NextDisconnect
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TESTING_LINK_H_
