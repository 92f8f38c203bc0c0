// A framed connection (verbs/FORMAT.md): one end of ours against a plain socket, byte by byte.
#include <string>

#include "gtest/gtest.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

using Op = RdmapOpcode;

constexpr char kEight[] = "4142434445464748";
constexpr char kSendFrame[] =
    "00000000"
    "00000000"
    "00000000";
constexpr char kValueFrame[] =
    "00000001"
    "01020304"
    "00000000";
constexpr char kWriteFrame[] =
    "00000002"
    "0a0b0c0d"
    "00000008";

class FramesTest : public LinkTest {
 protected:
  TestPeer Framed(const TestEnd::Options& options = {}) {
    TestPeer peer = Answered("50020004 80108010", options, ImmediateForm::kFramed);
    peer.ReceiveHex(24);
    peer.SendHex(kWriteRtr);
    EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
    return peer;
  }

  std::string MemoryHex(size_t at, size_t length) {
    return ToHex(std::span<const uint8_t>(end_->memory).subspan(at, length));
  }
};

TEST_F(FramesTest, SendsBeginWithAFrame) {
  TestPeer peer = Framed();
  end_->Fill(0, 8, 1);
  end_->Send(1, 0, 8);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(1), kSendFrame + MemoryHex(0, 8))));
  end_->Send(2, 0, 8, kImmediate, 0x01020304);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(2), kValueFrame + MemoryHex(0, 8))));
  end_->Send(3, 0, 0);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(3), kSendFrame)));
}

TEST_F(FramesTest, AWritesImmediateDataIsAMessageBehindIt) {
  TestPeer peer = Framed();
  TestEnd target;
  end_->Fill(0, 8, 1);
  end_->Write(1, 0, 8, target, 16, kImmediate | kSolicited, 0x01020304);
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(TaggedHeader(Op::kWrite, target.region->key(), target.address(16), true),
                       MemoryHex(0, 8))));
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(UntaggedHeader(Op::kSendSolicited, 1, 0, true),
                                              "00000002"
                                              "01020304"
                                              "00000008")));
  EXPECT_EQ(end_->NextSend().id, 1u);
  end_->Write(2, 0, 8, target, 16);
  end_->Send(3, 0, 0);
  peer.ReceiveFpduHex();
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(2), kSendFrame)));
}

TEST_F(FramesTest, ReceivesAreBehindTheFrame) {
  TestPeer peer = Framed();
  for (uint64_t id = 1; id <= 3; ++id) end_->Receive(id, 16 * id, 8);
  peer.Send(Fpdu(SendHeader(1), std::string(kValueFrame) + kEight));
  Completion received = end_->NextReceive();
  EXPECT_EQ(received.length, 8u);
  EXPECT_TRUE(received.has_immediate);
  EXPECT_EQ(received.immediate, 0x01020304u);
  EXPECT_EQ(MemoryHex(16, 8), kEight);
  // In several segments, the first of which holds only the frame.
  peer.SendBytewise(Fpdu(SendHeader(2, 0, false), kSendFrame));
  peer.SendBytewise(Fpdu(SendHeader(2, 12, false), "41424344"));
  peer.SendBytewise(Fpdu(SendHeader(2, 16, true), "45"));
  received = end_->NextReceive();
  EXPECT_EQ(received.length, 5u);
  EXPECT_FALSE(received.has_immediate);
  EXPECT_EQ(MemoryHex(32, 5), "4142434445");
  // The immediate data of a write.
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(100), true), kEight));
  peer.Send(Fpdu(SendHeader(3), kWriteFrame));
  received = end_->NextReceive();
  EXPECT_EQ(received.opcode, Opcode::kReceiveWrite);
  EXPECT_EQ(received.length, 8u);
  EXPECT_EQ(received.immediate, 0x0a0b0c0du);
  EXPECT_EQ(MemoryHex(100, 8), kEight);
}

TEST_F(FramesTest, HeldMessagesKeepTheirFrames) {
  TestPeer peer = Framed();
  peer.Send(Fpdu(SendHeader(1), std::string(kValueFrame) + kEight));
  peer.Send(Fpdu(SendHeader(2),
                 "00000002"
                 "0a0b0c0d"
                 "00000000"));
  peer.Send(Fpdu(SendHeader(3), std::string(kSendFrame) + kEight));
  // Comes after them, and is answered once they are parked.
  peer.Send(ReadFpdu(1, {.sink_stag = 1,
                         .size = 1,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(0)}));
  peer.ReceiveFpduHex();
  for (uint64_t id = 1; id <= 3; ++id) end_->Receive(id, 16 * id, 8);
  EXPECT_EQ(end_->NextReceive().immediate, 0x01020304u);
  EXPECT_EQ(end_->NextReceive().immediate, 0x0a0b0c0du);
  const Completion received = end_->NextReceive();
  EXPECT_FALSE(received.has_immediate);
  EXPECT_EQ(received.length, 8u);
}

// The immediate data come in a later message, when nothing but the refusal is known of the write.
TEST_F(FramesTest, ARefusedWriteFailsTheReceiveOfItsImmediateData) {
  TestPeer peer = Framed({.no_receive = NoReceive::kDrop});
  for (uint64_t id = 1; id <= 4; ++id) end_->Receive(id, 16 * id, 8);
  const auto good = TaggedHeader(Op::kWrite, end_->region->key(), end_->address(100), true);
  const auto bad = TaggedHeader(Op::kWrite, 0xdeadbe00, end_->address(100), true);
  peer.Send(Fpdu(bad, kEight));
  peer.Send(Fpdu(SendHeader(1), kWriteFrame));
  Completion received = end_->NextReceive();
  EXPECT_EQ(received.id, 1u);
  EXPECT_EQ(received.opcode, Opcode::kReceiveWrite);
  EXPECT_EQ(received.status, Status::kRemoteAccess);
  EXPECT_EQ(received.length, 0u);
  EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kRefusedWrite);
  peer.Send(Fpdu(good, kEight));
  peer.Send(Fpdu(SendHeader(2), kWriteFrame));
  received = end_->NextReceive();
  EXPECT_EQ(received.status, Status::kSuccess);
  EXPECT_EQ(received.length, 8u);
  // Another message comes between the refused write and the frame.
  peer.Send(Fpdu(bad, kEight));
  peer.Send(Fpdu(SendHeader(3), kSendFrame));
  EXPECT_EQ(end_->NextReceive().status, Status::kSuccess);
  peer.Send(Fpdu(SendHeader(4),
                 "00000002"
                 "0a0b0c0d"
                 "00000000"));
  EXPECT_EQ(end_->NextReceive().status, Status::kSuccess);
}

// The Terminate tells the peer why: the receive has failed, or there is none.
TEST_F(FramesTest, WrittenValuesThatEndTheConnection) {
  for (const bool posted : {false, true}) {
    SCOPED_TRACE(posted);
    TestPeer peer = Framed({.no_receive = NoReceive::kBreak});
    ReceiveRequest request;
    request.verdict = Status::kLocalProtection;
    if (posted) {
      ASSERT_EQ(end_->pair->PostReceive(request), PostResult::kOk);
    }
    peer.Send(
        Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(100), true), kEight));
    peer.Send(Fpdu(SendHeader(1), kWriteFrame));
    ExpectTerminate(peer, posted ? "1205" : "1202");
    if (posted) {
      EXPECT_EQ(end_->NextReceive().status, Status::kLocalProtection);
    }
  }
}

// If too many shared receives were taken, a message waits, but the writes after it are placed.
TEST_F(FramesTest, ARefusedWritesImmediateDataMayBeHeld) {
  constexpr uint32_t kTaken = 256, kRefused = kTaken + 1, kGood = kTaken + 2;
  TestPeer peer = Framed({.no_receive = NoReceive::kDrop, .shared_receives = kTaken});
  for (uint32_t i = 1; i <= kTaken; ++i) {
    end_->Receive(i, 16, 8);
    peer.Send(Fpdu(SendHeader(i), kSendFrame));
  }
  for (const uint32_t i : {kRefused, kGood}) {
    const uint32_t stag = i == kRefused ? 0xdeadbe00 : end_->region->key();
    peer.Send(Fpdu(TaggedHeader(Op::kWrite, stag, end_->address(100), true), kEight));
    peer.Send(Fpdu(SendHeader(i), kWriteFrame));
  }
  peer.Send(ReadFpdu(1, {.sink_stag = 1,
                         .size = 8,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(100)}));
  EXPECT_EQ(peer.ReceiveFpduHex().substr(32, 16), kEight);
  for (const uint64_t id : {kRefused, kGood}) end_->Receive(id, 16, 8);
  for (uint64_t id = 1; id <= kGood; ++id) {
    EXPECT_EQ(end_->NextReceive().status, id == kRefused ? Status::kRemoteAccess : Status::kSuccess)
        << id;
  }
}

TEST_F(FramesTest, WhatIsNoFrameEndsTheConnection) {
  for (const char* message : {"",
                              "00000000"
                              "00000000"
                              "000000",
                              "00000003"
                              "00000000"
                              "00000000",
                              "00000000"
                              "00000001"
                              "00000000",
                              "00000002"
                              "00000000"
                              "00000000"
                              "41"}) {
    SCOPED_TRACE(message);
    TestPeer peer = Framed();
    end_->Receive(1, 0, 16);
    peer.Send(Fpdu(SendHeader(1), message));
    EXPECT_EQ(CodeOf(peer.ReceiveFpduHex()), "0207");
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
    EXPECT_NE(end_->NextReceive().status, Status::kSuccess);
  }
}

// Nothing follows the frame of a write.
TEST_F(FramesTest, AWritesFrameIsAWholeMessage) {
  TestPeer peer = Framed();
  end_->Receive(1, 0, 16);
  peer.Send(Fpdu(SendHeader(1, 0, false), kWriteFrame));
  ExpectTerminate(peer, "0207");
  EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
}

TEST_F(FramesTest, TheFrameIsNoPartOfTheLength) {
  TestPeer peer = Framed();
  end_->Receive(1, 0, 7);
  peer.Send(Fpdu(SendHeader(1), std::string(kSendFrame) + kEight));
  ExpectTerminate(peer, "1205");
  EXPECT_EQ(end_->NextReceive().status, Status::kLocalLength);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
