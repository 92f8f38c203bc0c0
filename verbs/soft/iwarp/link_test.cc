// One end of ours against a plain socket that sends what a test wants, byte by byte.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <latch>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = Event::Kind;
using Op = RdmapOpcode;

// --------------------------------------------------------------------------------- startup

// iWARP checklist 1, 17, 20: our request, our first FPDU, an FPDU glued to the reply.
TEST_F(LinkTest, InitiatorSpeaksFirst) {
  TestPeer peer = Dialled();
  EXPECT_EQ(request_, std::string(kRequest) + "500200048004c004");
  end_->Receive(1, 0, 8);
  const std::string hello = ToHex(Fpdu(SendHeader(1), "4142434445464748"));
  peer.SendHex(std::string(kReply) + "50020004 80048004" + hello);
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  EXPECT_EQ(end_->NextReceive().length, 8u);
  end_->Send(2, 0, 8);
  EXPECT_EQ(peer.ReceiveFpduHex(), hello);
}

TEST_F(LinkTest, InitiatorSendsTheReadThatWasAgreed) {
  TestPeer peer = Dialled();
  peer.SendHex(std::string(kReply) + "50020004 80044004");
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(ReadFpdu(1, {.sink_stag = kNoMemoryStag, .source_stag = kNoMemoryStag})));
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, 1, 0, true), ""));
  peer.Shutdown();
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kPeer);
  Completion completion;
  EXPECT_EQ(end_->send_queue->Poll(&completion, 1), 0);
}

// Twice, so that siw reads a socket in which a message of ours lies.
TEST_F(LinkTest, InitiatorNudges) {
  TestPeer peer = Dialled({.nudge = 1'000'000});
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  const std::string empty_write = kWriteRtr;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(peer.ReceiveFpduHex(), empty_write);
  EXPECT_FALSE(peer.Readable());
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
}

// Another soft device reads its socket by itself.
TEST_F(LinkTest, InitiatorDoesNotNudgeAViaduct) {
  TestPeer peer = Dialled({.nudge = 1'000'000});
  end_->pair->EnableImmediate(ImmediateForm::kNative);
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  EXPECT_FALSE(peer.Readable());
}

// Checklist 13, 62; a FIN after the reject would hide it from siw.
TEST_F(LinkTest, ARejectHasNoFinBeforeThePeers) {
  TestEnd end;
  end.Listen();
  TestPeer peer = TestPeer::Dial(end.listener->port());
  peer.SendHex(std::string(kRequest) + "50020004 80108010");
  const std::string no = "no";
  end.requests.Next()->Reject({reinterpret_cast<const uint8_t*>(no.data()), no.size()});
  EXPECT_EQ(peer.ReceiveHex(26), std::string(kReply) + "30020006" + "80018000" + "6e6f");
  EXPECT_FALSE(peer.Readable());
  peer.Shutdown();
  EXPECT_EQ(peer.ReceiveEnd().hex, "");
}

// Checklist 19: a send is held, not failed.
TEST_F(LinkTest, ResponderHoldsUntilTheFirstFpdu) {
  TestPeer peer = Answered("50020004 00040004", {.first_word = 0});  // A=0
  EXPECT_EQ(peer.ReceiveHex(24), std::string(kReply) + "5002000400040004");
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  end_->Fill(0, 8, 1);
  end_->Send(1, 0, 8);
  Completion completion;
  EXPECT_EQ(end_->send_queue->Poll(&completion, 1), 0);
  peer.SendHex(kWriteRtr);
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(SendHeader(1), ToHex(std::span<const uint8_t>(end_->memory).first(8)))));
  EXPECT_EQ(end_->NextSend().id, 1u);
}

// A Viaduct that came again with revision 1 may wait for our message.
TEST_F(LinkTest, ResponderNeedNotHoldForAViaduct) {
  TestPeer peer = Answered("40010000", {.first_word = 0}, ImmediateForm::kNative);
  EXPECT_EQ(peer.ReceiveHex(20), std::string(kReply) + "40010000");
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  end_->Fill(0, 8, 1);
  end_->Send(1, 0, 8);
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(SendHeader(1), ToHex(std::span<const uint8_t>(end_->memory).first(8)))));
  EXPECT_EQ(end_->NextSend().id, 1u);
}

// Later nothing would reveal that the peer has not seen the answer.
TEST_F(LinkTest, PeerGoesBeforeItIsAccepted) {
  end_ = std::make_unique<TestEnd>();
  end_->Listen();
  TestPeer peer = TestPeer::Dial(end_->listener->port());
  peer.SendHex(std::string(kRequest) + "40010000");
  peer.Shutdown();
  end_->AcceptNext();
  const Event event = end_->sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
}

TEST_F(LinkTest, PeerGoesBeforeItsFirstFpdu) {
  TestPeer peer = Answered("50020004 80048004");
  peer.ReceiveHex(24);
  peer.Shutdown();
  const Event event = end_->sink.Next();
  EXPECT_EQ(event.kind, Kind::kFailed);
  EXPECT_EQ(event.outcome, ConnectOutcome::kGone);
}

// The peer has the answer and is connected, so it must see a disconnect and not a loss. Meanwhile
// the loop is busy with another descriptor, and then runs its tasks before it reads.
TEST_F(LinkTest, DisconnectBeforeTheFirstFpduIsRead) {
  TestPeer peer = Answered("50020004 80108010");
  EXPECT_EQ(peer.ReceiveHex(24), std::string(kReply) + "50020004" + depths_);
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd reads(ends[0]);
  Fd writes(ends[1]);
  std::latch begun(1);
  std::latch over(1);
  ASSERT_TRUE(end_->loop
                  .Watch(reads.get(), 0,
                         [&](uint32_t) {
                           end_->loop.Unwatch(reads.get());
                           begun.count_down();
                           over.wait();
                         })
                  .ok());
  writes.Reset();  // hangs up
  begun.wait();
  peer.SendHex(kWriteRtr);
  peer.AwaitTaken();
  end_->pair->Disconnect(DisconnectMode::kAbrupt);
  over.count_down();
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.reset);
  EXPECT_FALSE(end.timed_out);
  end_->loop.Drain();
}

TEST_F(LinkTest, PeerKeepsItsFirstFpduToItself) {
  TestPeer peer = Answered("50020004 80048004", {.silence = 100'000'000});
  peer.ReceiveHex(24);
  EXPECT_EQ(end_->sink.Next().outcome, ConnectOutcome::kGone);
  EXPECT_FALSE(peer.ReceiveEnd().timed_out);
}

// Checklist 11: the CRC is off if nobody wants it, but we do; the reply, in revision 1, says so.
TEST_F(LinkTest, Revision1) {
  TestPeer peer = Answered("00010000");
  EXPECT_EQ(peer.ReceiveHex(20), std::string(kReply) + "40010000");
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  end_->Receive(1, 0, 8);
  peer.Send(Fpdu(SendHeader(1), "4142434445464748"));
  EXPECT_EQ(end_->NextReceive().length, 8u);
}

// Checklist 21, and what peers of revision 1 do unasked.
// The second request allows no read in either direction; in the third the read is also the first
// message that is due.
TEST_F(LinkTest, EmptyReadIsAnsweredWhateverWasAgreed) {
  for (const char* words : {"40010000", "50020004 00000000", "50020004 80008000"}) {
    SCOPED_TRACE(words);
    TestPeer peer = Answered(words);
    peer.ReceiveHex(std::string(words).size() > 8 ? 24 : 20);
    peer.Send(ReadFpdu(1, {.sink_stag = 7, .sink_offset = 9, .source_stag = 0xbad}));
    EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 9, true), "")));
  }
}

// Checklist 14: only an empty one is answered.
TEST_F(LinkTest, AReadWhereNoneIsAllowedIsRefused) {
  TestPeer peer = Answered("50020004 80108000");
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  peer.Send(ReadFpdu(1, {.sink_stag = 7,
                         .size = 8,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(0)}));
  ExpectTerminate(peer, "0207");
}

// ----------------------------------------------------------------------------------- inbound

// Checklist 25, 34: pieces of any size, empty last segment.
TEST_F(LinkTest, MessageInSegmentsByteByByte) {
  TestPeer peer = Accepted();
  end_->Receive(1, 0, 100);
  peer.SendBytewise(Fpdu(SendHeader(1, 0, false), "616263"));
  peer.SendBytewise(Fpdu(SendHeader(1, 3, false), "64"));
  peer.SendBytewise(Fpdu(SendHeader(1, 4, true), ""));
  const Completion received = end_->NextReceive();
  EXPECT_EQ(received.status, Status::kSuccess);
  EXPECT_EQ(received.length, 4u);
  EXPECT_EQ(ToHex(std::span<const uint8_t>(end_->memory).first(4)), "61626364");
}

TEST_F(LinkTest, ReadOfOurs) {
  TestPeer peer = Accepted();
  end_->Fill(0, 16, 3);
  peer.Send(ReadFpdu(1, {.sink_stag = 0x33b00,
                         .sink_offset = 0x2000,
                         .size = 16,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(0)}));
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 0x33b00, 0x2000, true),
                       ToHex(std::span<const uint8_t>(end_->memory).first(16)))));
}

// Checklist 50: byte for byte, and 38: nothing after the error is received.
TEST_F(LinkTest, WriteWithAnUnknownStag) {
  TestPeer peer = Accepted();
  end_->Receive(1, 0, 8);
  const std::vector<uint8_t> before = end_->memory;
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, 0xdeadbe00, 0x1000, true), "68656c6c6f"));
  // These would be right without the error.
  peer.Send(
      Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(0), true), "68656c6c6f"));
  peer.Send(Fpdu(SendHeader(1), "4142434445464748"));
  EXPECT_EQ(peer.ReceiveFpduHex(),
            Join("0026 41 47 00000000 00000002 00000001 00000000 1100 c000 0013"
                 "c140deadbe000000000000001000 051be7a9"));
  EXPECT_EQ(peer.ReceiveEnd().hex, "");
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
  EXPECT_EQ(end_->memory, before);
}

TEST_F(LinkTest, ReadWithAnUnknownStag) {
  TestPeer peer = Accepted();
  peer.Send(ReadFpdu(1, {.sink_stag = 0x33b00,
                         .sink_offset = 0x2000,
                         .size = 16,
                         .source_stag = 0xdeadbe00,
                         .source_offset = 0x1000}));
  EXPECT_EQ(peer.ReceiveFpduHex().substr(40, 12), "0100e000002e");
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// Checklist 26, 28, 32, 33, 37, 41, 42, 49: the code for each broken rule.
TEST_F(LinkTest, BrokenRules) {
  const std::string eight = "4142434445464748";
  struct Row {
    const char* name;
    std::vector<uint8_t> bytes;
    const char* code;
  };
  std::vector<uint8_t> bad_crc = Fpdu(SendHeader(1), eight);
  bad_crc.back() ^= 1;
  DdpHeader wrong_queue = SendHeader(1);
  wrong_queue.queue = 1;
  const Row rows[] = {
      {"CRC", bad_crc, "2002"},
      {"length", {0, 13, 0, 0}, "2003"},
      {"sequence", Fpdu(SendHeader(2), eight), "1203"},
      {"offset", Fpdu(SendHeader(1, 8), eight), "1204"},
      {"queue", Fpdu(wrong_queue, eight), "1201"},
      {"unknown", Fpdu(UntaggedHeader(static_cast<Op>(12), 1, 0, true), eight), "0206"},
      {"too long", Fpdu(SendHeader(1), eight + eight + eight), "1205"},
      {"wrap", Fpdu(TaggedHeader(Op::kWrite, 1, ~uint64_t{0}, true), eight), "1103"},
      {"response", Fpdu(TaggedHeader(Op::kReadResponse, 1, 0, true), eight), "1100"},
      {"endless", Fpdu(SendHeader(1, 0, false), ""), "1204"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TestPeer peer = Accepted();
    end_->Receive(1, 0, 16);
    peer.Send(row.bytes);
    ExpectTerminate(peer, row.code);
    EXPECT_NE(end_->NextReceive().status, Status::kSuccess);
  }
}

// In what state the end of a connection leaves the peer's writes.
TEST_F(LinkTest, DamageIsTold) {
  const auto write = [&](size_t at, bool last, bool corrupt = false) {
    std::vector<uint8_t> bytes = Fpdu(
        TaggedHeader(Op::kWrite, end_->region->key(), end_->address(at), last), "4142434445464748");
    if (corrupt) bytes.back() ^= 1;
    return bytes;
  };
  struct Row {
    const char* name;
    std::vector<std::vector<uint8_t>> fpdus;
    Damage damage;
  };
  for (int i = 0; i < 5; ++i) {
    TestPeer peer = Accepted();
    const Row rows[] = {
        {"whole", {write(0, false), write(8, true)}, Damage::kNone},
        {"cut off", {write(0, true), write(0, false)}, Damage::kWriteCutOff},
        {"corrupt", {write(0, false), write(8, true, true)}, Damage::kWriteCorrupt},
        {"corrupt at once", {write(0, true), write(8, true, true)}, Damage::kCorrupt},
        {"corrupt send", {Fpdu(SendHeader(1), "41424344")}, Damage::kCorrupt},
    };
    SCOPED_TRACE(rows[i].name);
    std::vector<uint8_t> bytes;
    for (const std::vector<uint8_t>& fpdu : rows[i].fpdus) {
      bytes.insert(bytes.end(), fpdu.begin(), fpdu.end());
    }
    if (i == 4) bytes.back() ^= 1;
    peer.Send(bytes);
    peer.Shutdown();
    NextDisconnect();
    EXPECT_EQ(damage_, rows[i].damage);
  }
}

// Between two Viaducts its first byte already shows that it carries immediate data.
TEST_F(LinkTest, AWriteWithImmediateDataThatBreaksOffFailsItsReceive) {
  for (const bool corrupt : {false, true}) {
    SCOPED_TRACE(corrupt);
    TestPeer peer = Answered("50020004 80108010", {}, ImmediateForm::kNative);
    peer.ReceiveHex(24);
    peer.SendHex(kWriteRtr);
    EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
    for (uint64_t i = 0; i < 3; ++i) end_->Receive(i, 0, 8);
    std::vector<uint8_t> bytes;
    const auto write = [&](uint32_t sequence, bool last) {
      for (const std::vector<uint8_t>& fpdu :
           {Fpdu(UntaggedHeader(Op::kImmediate, sequence, 0, true), "0000000200000007"),
            Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(8), last),
                 "4142434445464748")}) {
        bytes.insert(bytes.end(), fpdu.begin(), fpdu.end());
      }
    };
    write(1, true);
    write(2, false);
    if (corrupt) {
      write(3, true);
      bytes.back() ^= 1;
    }
    peer.Send(bytes);
    peer.Shutdown();
    NextDisconnect();
    EXPECT_EQ(damage_, Damage::kNone);
    const Completion whole = end_->NextReceive();
    EXPECT_EQ(whole.status, Status::kSuccess);
    EXPECT_EQ(whole.immediate, 7u);
    const Completion broken = end_->NextReceive();
    EXPECT_EQ(broken.status, Status::kTransport);
    EXPECT_EQ(broken.opcode, Opcode::kReceiveWrite);
    EXPECT_FALSE(broken.has_immediate);
    EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
  }
}

// The write is all there; the receive that is posted for it meets the end of the connection.
TEST_F(LinkTest, AWriteThatWaitsForItsReceiveHasNotBrokenOff) {
  TestPeer peer = Answered("50020004 80108010", {}, ImmediateForm::kNative);
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  const uint32_t key = end_->region->key();
  peer.Send(Fpdu(UntaggedHeader(Op::kImmediate, 1, 0, true), "0000000200000007"));
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, key, end_->address(0), true), "41"));
  peer.Send(ReadFpdu(
      1, {.sink_stag = 7, .size = 1, .source_stag = key, .source_offset = end_->address(0)}));
  peer.ReceiveFpduHex();
  {
    const LoopHold hold(end_->loop);
    end_->Receive(1, 0, 8);
    end_->pair->Disconnect(DisconnectMode::kGraceful);
  }
  const Completion flushed = end_->NextReceive();
  EXPECT_EQ(flushed.status, Status::kFlushed);
  EXPECT_EQ(flushed.opcode, Opcode::kReceive);
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kLocal);
  EXPECT_EQ(damage_, Damage::kNone);
}

// Whatever would take the receive that the Send is filling ends the connection, and the receive is
// flushed once. Reads and atomics are allowed.
TEST_F(LinkTest, BetweenTheSegmentsOfASendOfAViaduct) {
  struct Row {
    const char* name;
    std::vector<uint8_t> fpdu;
    const char* code;  // null: allowed
  };
  for (int i = 0; i < 8; ++i) {
    TestPeer peer =
        Answered("50020004 80108010",
                 {.access = kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite | kRemoteAtomic},
                 ImmediateForm::kNative);
    peer.ReceiveHex(24);
    peer.SendHex(kWriteRtr);
    EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
    const uint32_t key = end_->region->key();
    const auto write = [&](std::string_view payload, bool last) {
      return Fpdu(TaggedHeader(Op::kWrite, key, end_->address(64), last), payload);
    };
    const auto immediate = [](uint32_t sequence, uint32_t offset, const char* kind) {
      return Fpdu(UntaggedHeader(Op::kImmediate, sequence, offset, true),
                  std::string("0000000") + kind + "00000009");
    };
    std::array<uint8_t, kAtomicRequestSize> atomic;
    EncodeAtomicRequest({.stag = key, .address = end_->address(64), .data = 1}, atomic);
    const Row rows[] = {
        {"empty Write", write("", true), "0207"},
        {"Write", write("5152", true), "0207"},
        {"part of a Write", write("51525354", false), "0207"},
        {"value of a Write", immediate(2, 4, "2"), "0206"},
        {"value of a Send", immediate(2, 4, "1"), "0206"},
        {"value of a Write, as the next message", immediate(3, 0, "2"), "1203"},
        {"Read", ReadFpdu(1, {.sink_stag = 7, .source_stag = 1}), nullptr},
        {"Atomic", Fpdu(UntaggedHeader(Op::kAtomicRequest, 1, 0, true), ToHex(atomic)), nullptr},
    };
    SCOPED_TRACE(rows[i].name);
    end_->Receive(1, 0, 8);
    peer.Send(immediate(1, 0, "2"));
    peer.Send(Fpdu(SendHeader(2, 0, false), "41424344"));
    peer.Send(rows[i].fpdu);
    if (rows[i].code == nullptr) {
      peer.ReceiveFpduHex();  // the answer
      peer.Send(Fpdu(SendHeader(2, 4), "45464748"));
      const Completion received = end_->NextReceive();
      EXPECT_EQ(received.status, Status::kSuccess);
      EXPECT_EQ(received.opcode, Opcode::kReceive);
      EXPECT_EQ(received.length, 8u);
      continue;
    }
    peer.Send(Fpdu(SendHeader(2, 4), "45464748"));
    ExpectTerminate(peer, rows[i].code);
    EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
    Completion completion;
    EXPECT_EQ(end_->receive_queue().Poll(&completion, 1), 0);
  }
}

// A value belongs to the Send or the Write after it; the value of a Send is not itself solicited.
TEST_F(LinkTest, ValuesThatNoViaductSends) {
  struct Row {
    Op opcode;
    const char* kind;
    bool in_write;
  };
  for (const Row& row : {Row{Op::kImmediateSolicited, "1", false}, Row{Op::kImmediate, "3", false},
                         Row{Op::kImmediate, "2", true}}) {
    SCOPED_TRACE(row.kind);
    TestPeer peer = Answered("50020004 80108010", {}, ImmediateForm::kNative);
    peer.ReceiveHex(24);
    peer.SendHex(kWriteRtr);
    EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
    if (row.in_write) {
      peer.Send(
          Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(0), false), "41424344"));
    }
    peer.Send(Fpdu(UntaggedHeader(row.opcode, 1, 0, true),
                   std::string("0000000") + row.kind + "00000009"));
    ExpectTerminate(peer, "0207");
  }
}

// A peer of another make may do this: its writes take no receive.
TEST_F(LinkTest, AWriteBetweenTheSegmentsOfASend) {
  TestPeer peer = Accepted();
  end_->Receive(1, 0, 8);
  peer.Send(Fpdu(SendHeader(1, 0, false), "41424344"));
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(8), true), "5152"));
  peer.Send(Fpdu(SendHeader(1, 4), "45464748"));
  EXPECT_EQ(end_->NextReceive().length, 8u);
  EXPECT_EQ(ToHex(std::span<const uint8_t>(end_->memory).first(10)), "41424344454647485152");
}

// The peer's IRD is 0: a read would wait for ever.
TEST_F(LinkTest, AReadOfAPeerThatAnswersNoneFails) {
  TestPeer peer = Answered("50020004 80008010");
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  ASSERT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
  end_->ReadFrom(1, 1);
  EXPECT_EQ(end_->NextSend().status, Status::kRemoteOperation);
}

// It completes like a send that nobody confirms.
TEST_F(LinkTest, ASendToAPeerThatAnswersNoReadCompletes) {
  TestPeer peer = Answered("50020004 80008010");
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  ASSERT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
  end_->Send(1, 0, 8, kConfirm);
  EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
}

// Checklist 42. The reads cannot be answered while they are unread in one buffer.
TEST_F(LinkTest, MoreReadsThanAgreed) {
  TestPeer peer = Accepted();
  std::vector<uint8_t> bytes;
  for (uint32_t i = 1; i <= 5; ++i) {
    const std::vector<uint8_t> read = ReadFpdu(i, {.sink_stag = 1, .source_stag = 1});
    bytes.insert(bytes.end(), read.begin(), read.end());
  }
  peer.Send(bytes);
  std::string fpdu = peer.ReceiveFpduHex();
  while (fpdu.substr(4, 4) == "c142") fpdu = peer.ReceiveFpduHex();
  EXPECT_EQ(CodeOf(fpdu), "0207");
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// Reads that wait for the receive of a message before them count.
TEST_F(LinkTest, MoreReadsThanAgreedBehindAHeldMessage) {
  TestPeer peer = Accepted();
  AwaitFirstWord(peer);
  peer.Send(Fpdu(SendHeader(1), "41"));
  for (uint32_t i = 1; i <= 5; ++i) peer.Send(ReadFpdu(i, {.sink_stag = 1, .source_stag = 1}));
  ExpectTerminate(peer, "0207");
}

// An answer does not overtake the answer of an earlier read, which waits for a receive.
TEST_F(LinkTest, ReadsKeepTheirOrderBehindAHeldMessage) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  peer.Send(Fpdu(SendHeader(1), "41"));
  peer.Send(ReadFpdu(1, {.sink_stag = 7}));
  peer.Send(ReadFpdu(2, {.sink_stag = 8,
                         .size = 1,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(0)}));
  peer.AwaitTaken();
  end_->loop.Drain();
  Completion completion;
  EXPECT_EQ(end_->receive_queue().Poll(&completion, 1), 0);
  end_->Receive(1, 64, 8);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 0, true), "")));
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 8, 0, true), "00")));
}

// All reads before the error, however many. Otherwise the peer blames the first unanswered one.
TEST_F(LinkTest, ReadsBeforeAnErrorAreAnswered) {
  constexpr uint32_t kReads = 20;
  TestPeer peer = Answered("50020004 80208020", {.reads = 32});
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  std::vector<uint8_t> bytes;
  for (uint32_t i = 1; i <= kReads; ++i) {
    const std::vector<uint8_t> read = ReadFpdu(i, {.sink_stag = i,
                                                   .size = 8,
                                                   .source_stag = end_->region->key(),
                                                   .source_offset = end_->address(0)});
    bytes.insert(bytes.end(), read.begin(), read.end());
  }
  const std::vector<uint8_t> write =
      Fpdu(TaggedHeader(Op::kWrite, 0xdeadbe00, 0x1000, true), "68656c6c6f");
  bytes.insert(bytes.end(), write.begin(), write.end());
  peer.Send(bytes);
  const std::string data = ToHex(std::span<const uint8_t>(end_->memory).first(8));
  for (uint32_t i = 1; i <= kReads; ++i) {
    EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(TaggedHeader(Op::kReadResponse, i, 0, true), data)))
        << i;
  }
  ExpectTerminate(peer, "1100");
}

// Only messages that take a receive themselves wait behind a message that has none.
TEST_F(LinkTest, WritesBehindAHeldMessageArePlaced) {
  TestPeer peer = Accepted();
  const uint32_t key = end_->region->key();
  peer.Send(Fpdu(SendHeader(1), "41"));
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, key, end_->address(0), true), "5152"));
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, key, end_->address(2), true), "5354"));
  peer.Send(ReadFpdu(
      1, {.sink_stag = 7, .size = 4, .source_stag = key, .source_offset = end_->address(0)}));
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 0, true), "51525354")));
}

TEST_F(LinkTest, NoReceive) {
  TestPeer peer = Accepted({.no_receive = NoReceive::kBreak});
  peer.Send(Fpdu(SendHeader(1), "41"));
  ExpectTerminate(peer, "1202");
}

// The receive is due to the immediate data before the write. Their number in the Terminate tells
// the peer which messages have been received.
TEST_F(LinkTest, NoReceiveForAWriteWithImmediateData) {
  TestPeer peer =
      Answered("50020004 80048004", {.no_receive = NoReceive::kBreak}, ImmediateForm::kNative);
  peer.ReceiveHex(24);
  peer.SendHex(kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  end_->Receive(1, 0, 8);
  peer.Send(Fpdu(SendHeader(1), "41"));
  peer.Send(Fpdu(UntaggedHeader(Op::kImmediateSolicited, 2, 0, true), "0000000200000007"));
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(8), true), "41"));
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true),
                       Join("1202 c000 001a 4149 00000000 00000000 00000002 00000000"))));
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// Checklist 27: longer than what we read from the socket at once.
TEST_F(LinkTest, LongestFpdu) {
  TestPeer peer = Accepted();
  end_->Receive(1, 0, 70000);
  const std::string payload(2 * (kMaxUlpduLength - kDdpUntaggedSize), '5');
  peer.Send(Fpdu(SendHeader(1), payload));
  EXPECT_EQ(end_->NextReceive().length, kMaxUlpduLength - kDdpUntaggedSize);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
