// What a link sends, to a plain socket.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/clock.h"
#include "verbs/device.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs::iwarp {
namespace {

using Op = RdmapOpcode;

// More than a socket takes.
constexpr uint32_t kLong = 8 << 20;

DdpHeader HeaderOf(const std::string& fpdu_hex) {
  const std::vector<uint8_t> fpdu = FromHex(fpdu_hex);
  DdpHeader header = {};
  EXPECT_GT(fpdu.size(), 2u);
  if (fpdu.size() > 2) {
    EXPECT_EQ(ParseDdpHeader(std::span<const uint8_t>(fpdu).subspan(2), &header), std::nullopt);
  }
  return header;
}

// Receives that many messages and returns the kind of each. The segments of a message must come one
// after the other. `open`: the segment with which the first message has already begun.
std::vector<Op> ReceiveWhole(TestPeer& peer, size_t messages,
                             std::optional<DdpHeader> open = std::nullopt) {
  std::vector<Op> kinds;
  while (kinds.size() < messages && !testing::Test::HasFailure()) {
    const DdpHeader header = HeaderOf(peer.ReceiveFpduHex());
    if (open.has_value()) {
      EXPECT_EQ(header.opcode, open->opcode);
      EXPECT_EQ(header.stag, open->stag);
      EXPECT_EQ(header.sequence, open->sequence);
    }
    open = header;
    if (!header.last) continue;
    open.reset();
    kinds.push_back(header.opcode);
  }
  return kinds;
}

ReadRequest ReadOf(const TestEnd& end, uint32_t size) {
  return {.sink_stag = 0x33b00,
          .sink_offset = 0x2000,
          .size = size,
          .source_stag = end.region->key(),
          .source_offset = end.address(0)};
}

void PostWrite(TestEnd& end, uint32_t length) {
  SendRequest request;
  request.opcode = Opcode::kWrite;
  const Segment segment = end.Piece(0, length);
  request.segments = {&segment, 1};
  request.remote_key = 0x12a00;
  request.remote_address = 0x10000;
  ASSERT_EQ(end.pair->PostSend(request), PostResult::kOk);
}

// Linux siw ends a connection if the segments of two tagged messages mix, or those of
// two untagged ones.
TEST_F(LinkTest, AnAnswerWaitsForTheEndOfAWrite) {
  TestPeer peer = Accepted({.memory = kLong});
  peer.KeepLittle();
  PostWrite(*end_, kLong);
  PostWrite(*end_, kLong);
  peer.Send(ReadFpdu(1, ReadOf(*end_, 65536)));
  EXPECT_EQ(ReceiveWhole(peer, 3).size(), 3u);
}

TEST_F(LinkTest, AWriteWaitsForTheEndOfAnAnswer) {
  TestPeer peer = Accepted({.memory = kLong});
  peer.KeepLittle();
  peer.Send(ReadFpdu(1, ReadOf(*end_, kLong)));
  const DdpHeader first = HeaderOf(peer.ReceiveFpduHex());
  ASSERT_FALSE(first.last);
  PostWrite(*end_, 65536);
  EXPECT_EQ(ReceiveWhole(peer, 2, first), (std::vector<Op>{Op::kReadResponse, Op::kWrite}));
}

// The region has lost its right, or its registration, while the answer was on its way.
TEST_F(LinkTest, AnAnswerThatMayNotGoOnTellsWhy) {
  for (const bool deregistered : {false, true}) {
    SCOPED_TRACE(deregistered);
    TestPeer peer = Accepted({.memory = kLong});
    peer.KeepLittle();
    peer.Send(ReadFpdu(1, ReadOf(*end_, kLong)));
    std::string fpdu = peer.ReceiveFpduHex();
    if (deregistered) {
      end_->region.reset();
    } else {
      ASSERT_TRUE(end_->region->Modify(*end_->domain, kLocalRead | kRemoteWrite).ok());
    }
    while (fpdu.substr(4, 4) == "8142") fpdu = peer.ReceiveFpduHex();
    EXPECT_EQ(CodeOf(fpdu), deregistered ? "0100" : "0102");
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
}

TEST_F(LinkTest, AConfirmationWaitsForTheEndOfASend) {
  TestPeer peer = Accepted({.memory = kLong, .reads = 1});
  peer.KeepLittle();
  end_->Send(1, 0, 8, kConfirm);
  end_->Send(2, 0, 8, kConfirm);
  end_->Send(3, 0, kLong, kConfirm);
  const std::vector<uint8_t> answer =
      Fpdu(TaggedHeader(Op::kReadResponse, kNoMemoryStag, 0, true), "");
  EXPECT_EQ(ReceiveWhole(peer, 2), (std::vector<Op>{Op::kSend, Op::kReadRequest}));
  peer.Send(answer);
  EXPECT_EQ(end_->NextSend().id, 1u);
  EXPECT_EQ(ReceiveWhole(peer, 3), (std::vector<Op>{Op::kSend, Op::kSend, Op::kReadRequest}));
  peer.Send(answer);
  EXPECT_EQ(end_->NextSend().id, 2u);
  EXPECT_EQ(end_->NextSend().id, 3u);
}

TEST_F(LinkTest, AConfirmationWaitsForTheEndOfAnAnswer) {
  TestPeer peer = Accepted({.memory = kLong, .reads = 1});
  peer.KeepLittle();
  end_->Send(1, 0, 8, kConfirm);
  end_->Send(2, 0, 8, kConfirm);
  EXPECT_EQ(ReceiveWhole(peer, 3), (std::vector<Op>{Op::kSend, Op::kReadRequest, Op::kSend}));
  peer.Send(ReadFpdu(1, ReadOf(*end_, kLong)));
  const DdpHeader first = HeaderOf(peer.ReceiveFpduHex());
  ASSERT_FALSE(first.last);
  const std::vector<uint8_t> answer =
      Fpdu(TaggedHeader(Op::kReadResponse, kNoMemoryStag, 0, true), "");
  peer.Send(answer);
  EXPECT_EQ(end_->NextSend().id, 1u);
  EXPECT_EQ(ReceiveWhole(peer, 2, first), (std::vector<Op>{Op::kReadResponse, Op::kReadRequest}));
  peer.Send(answer);
  EXPECT_EQ(end_->NextSend().id, 2u);
}

// A request and the read that asks to confirm it share one segment, unless it would be too long.
TEST_F(LinkTest, AConfirmationGoesAlongWithItsRequest) {
  listener_.LimitSegments(1000);
  TestPeer peer = Dialled();
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
  uint32_t sequence = 0;
  for (const auto& [length, segments] : {std::pair{8u, 1u}, {900u, 2u}, {8u, 1u}}) {
    SCOPED_TRACE(length);
    const uint32_t before = peer.segments();
    end_->Send(++sequence, 0, length, kConfirm);
    EXPECT_EQ(ReceiveWhole(peer, 2), (std::vector<Op>{Op::kSend, Op::kReadRequest}));
    EXPECT_EQ(peer.segments() - before, segments);
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, kNoMemoryStag, 0, true), ""));
    EXPECT_EQ(end_->NextSend().id, sequence);
  }
}

// Checklist 41: what answers our read must be what we asked for.
TEST_F(LinkTest, AnswersThatDoNotFit) {
  enum class Fault { kNone, kStag, kOffset, kShort, kLong };
  for (const Fault fault :
       {Fault::kNone, Fault::kStag, Fault::kOffset, Fault::kShort, Fault::kLong}) {
    SCOPED_TRACE(static_cast<int>(fault));
    TestPeer peer = Accepted();
    end_->ReadFrom(0, 0x12a00, 0x7f0000001000);
    const ReadRequest asked = ReceiveReadRequest(peer);
    EXPECT_EQ(asked.size, 8u);
    EXPECT_EQ(asked.source_stag, 0x12a00u);
    EXPECT_EQ(asked.source_offset, 0x7f0000001000u);
    EXPECT_NE(asked.sink_stag, 0u);
    std::string payload = "3031323334353637";
    if (fault == Fault::kShort) payload.resize(14);
    if (fault == Fault::kLong) payload += "38";
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, asked.sink_stag ^ (fault == Fault::kStag),
                                asked.sink_offset + (fault == Fault::kOffset), true),
                   payload));
    if (fault == Fault::kNone) {
      EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
      EXPECT_EQ(ToHex(std::span<const uint8_t>(end_->memory).first(8)), payload);
    } else {
      EXPECT_EQ(CodeOf(peer.ReceiveFpduHex()), fault == Fault::kStag ? "1100" : "1101");
      EXPECT_NE(end_->NextSend().status, Status::kSuccess);
    }
  }
}

// A read is answered as an atomic; an atomic as a read, as another atomic, or before its turn.
TEST_F(LinkTest, AnswersOfAnotherRequest) {
  enum class Fault { kAtomicOfRead, kReadOfAtomic, kNumber, kTurn };
  for (const Fault fault :
       {Fault::kAtomicOfRead, Fault::kReadOfAtomic, Fault::kNumber, Fault::kTurn}) {
    SCOPED_TRACE(static_cast<int>(fault));
    TestPeer peer = Accepted();
    end_->ReadFrom(0, 0x12a00);
    const ReadRequest asked = ReceiveReadRequest(peer);
    const auto atomic_answer = [](uint32_t id) {
      std::array<uint8_t, kAtomicResponseSize> bytes = {};
      bytes[3] = static_cast<uint8_t>(id);
      return Fpdu(UntaggedHeader(Op::kAtomicResponse, 1, 0, true), ToHex(bytes));
    };
    const auto read_answer = [&](uint64_t offset) {
      return Fpdu(TaggedHeader(Op::kReadResponse, asked.sink_stag, offset, true),
                  "3031323334353637");
    };
    if (fault == Fault::kAtomicOfRead) {
      peer.Send(atomic_answer(static_cast<uint32_t>(asked.sink_offset)));
    } else {
      peer.Send(read_answer(asked.sink_offset));
      EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
      if (fault == Fault::kTurn) {
        end_->Send(1, 0, 8, kConfirm);
        EXPECT_EQ(ReceiveWhole(peer, 2), (std::vector<Op>{Op::kSend, Op::kReadRequest}));
      }
      verbs::AtomicRequest atomic;
      atomic.result = end_->Piece(8, 8);
      ASSERT_EQ(end_->pair->PostAtomic(atomic), PostResult::kOk);
      EXPECT_EQ(HeaderOf(peer.ReceiveFpduHex()).opcode, Op::kAtomicRequest);
      constexpr uint32_t kSecond = 1;  // the number of the atomic
      peer.Send(fault == Fault::kReadOfAtomic ? read_answer(kSecond)
                                              : atomic_answer(kSecond + (fault == Fault::kNumber)));
    }
    ExpectTerminate(peer, fault == Fault::kReadOfAtomic ? "1100" : "0207");
    EXPECT_NE(end_->NextSend().status, Status::kSuccess);
  }
}

// An exception to checklist 41: siw (Linux 6.1) answers an empty read after a send of its own with
// the bytes that it had sent. Nobody asked for them, and they go nowhere.
TEST_F(LinkTest, BytesThatAnswerAnEmptyRead) {
  TestPeer peer = Accepted();
  end_->Fill(0, 64, 1);
  const auto memory = end_->memory;
  SendRequest empty;
  empty.id = 1;
  empty.opcode = Opcode::kRead;
  empty.remote_key = 0x12a00;
  ASSERT_EQ(end_->pair->PostSend(empty), PostResult::kOk);
  end_->Send(2, 0, 8, kConfirm);
  peer.ReceiveFpduHex();  // the read, the send, and the read that confirms it
  peer.ReceiveFpduHex();
  peer.ReceiveFpduHex();
  for (uint64_t id = 1; id <= 2; ++id) {
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, 1, 0, false), "3031323334353637"));
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, 1, 8, true), "3839"));
    const Completion done = end_->NextSend();
    EXPECT_EQ(done.id, id);
    EXPECT_EQ(done.status, Status::kSuccess);
  }
  EXPECT_EQ(end_->memory, memory);
  peer.Shutdown();
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kPeer);
}

TEST_F(LinkTest, ConfirmsByTheWordOfThePeer) {
  TestPeer peer = Accepted({.reads = 1});
  end_->pair->ConfirmBy(ConfirmationWord{0x7f0000001000, 0x12a00});
  // The first read goes along with its request, the next one when there is room for it.
  end_->Send(1, 0, 8, kConfirm);
  end_->Send(2, 0, 8, kConfirm);
  peer.ReceiveFpduHex();
  for (uint32_t i = 1; i <= 2; ++i) {
    EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(ReadFpdu(i, {.sink_stag = kNoMemoryStag,
                                                        .size = 8,
                                                        .source_stag = 0x12a00,
                                                        .source_offset = 0x7f0000001000})));
    if (i == 1) peer.ReceiveFpduHex();
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, kNoMemoryStag, 0, true), "3031323334353637"));
    EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
  }
  // The word is that of one connection.
  end_->pair->Disconnect(DisconnectMode::kAbrupt);
  end_->pair->Reset();
  EXPECT_FALSE(pair().confirm_by().has_value());
}

// Checklist 51, 53: verdicts of the peer, in both bit orders.
TEST_F(LinkTest, TerminateOfThePeer) {
  struct Row {
    const char* control;
    Status status;
  };
  for (const Row& row :
       {Row{"12028000", Status::kReceiverNotReady}, Row{"21020300", Status::kReceiverNotReady},
        Row{"11008000", Status::kRemoteAccess}, Row{"01028000", Status::kRemoteAccess},
        Row{"10000700", Status::kRemoteAccess}, Row{"12058000", Status::kRemoteOperation},
        Row{"02078000", Status::kRemoteOperation}, Row{"00000000", Status::kFlushed},
        Row{"00ff0000", Status::kFlushed},  // siw's
        // A write is refused, and an answer of ours.
        Row{"1100c0000010c140deadbe000000000000001000", Status::kRemoteAccess},
        Row{"1100c0000010c142deadbe000000000000001000", Status::kFlushed},
        Row{"20020000", Status::kTransport}}) {
    SCOPED_TRACE(row.control);
    TestPeer peer = Accepted();
    end_->Send(1, 0, 8, kConfirm);
    end_->Send(2, 0, 8, kConfirm);
    peer.ReceiveFpduHex();
    peer.ReceiveFpduHex();
    peer.Send(Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true), row.control));
    EXPECT_EQ(end_->NextSend().status, row.status);
    EXPECT_EQ(end_->NextSend().status, Status::kFlushed);
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
    // No Terminate of ours answers it.
    const std::string rest = peer.ReceiveEnd().hex;
    EXPECT_EQ(rest.find("4147"), std::string::npos) << rest;
  }
}

// The peer's program has sent nothing yet; the Terminate is about our request, not about the
// handshake. Linux siw (6.1) sends this one for an opcode that it does not know.
TEST_F(LinkTest, ATerminateIsTheFirstWordOfAResponder) {
  TestPeer peer = Dialled();
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
  SendRequest read;
  read.opcode = Opcode::kRead;
  read.remote_key = 1;
  ASSERT_EQ(end_->pair->PostSend(read), PostResult::kOk);
  peer.ReceiveFpduHex();
  peer.Send(Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true), "20060000"));
  EXPECT_EQ(end_->NextSend().status, Status::kRemoteOperation);
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// If the Terminate says which message was refused, the ones before it that share its read were
// received. No other error tells as much.
TEST_F(LinkTest, ARefusedMessageIsNotTheOneThatSharesItsRead) {
  struct Row {
    const char* control;
    DdpHeader refused;
    int received;  // of three
    Status verdict;
  };
  const DdpHeader last = SendHeader(3);
  const DdpHeader invalidating = UntaggedHeader(Op::kSendInvalidate, 3, 0, true);
  const DdpHeader write = TaggedHeader(Op::kWrite, 1, 0, true);
  const DdpHeader read = UntaggedHeader(Op::kReadRequest, 3, 0, true);  // has numbers of its own
  for (const Row& row : {
           Row{"1202c000001a", last, 2, Status::kReceiverNotReady},
           Row{"1205c000001a", SendHeader(3, 8), 2, Status::kRemoteOperation},
           Row{"0109c000001a", invalidating, 2, Status::kRemoteAccess},
           Row{"210203000008", last, 2, Status::kReceiverNotReady},
           Row{"1202c000001a", SendHeader(2), 1, Status::kReceiverNotReady},
           Row{"1202c000001a", SendHeader(1), 1, Status::kReceiverNotReady},
           Row{"1202c000001a", SendHeader(0x7fffffff), 3, Status::kFlushed},
           Row{"1202c000001a", SendHeader(0xffffffff), 1, Status::kReceiverNotReady},
           Row{"1202c000001a", write, 1, Status::kReceiverNotReady},
           Row{"1205c000002e", read, 1, Status::kRemoteOperation},
           Row{"1203c000001a", last, 1, Status::kTransport},
           Row{"1204c000001a", last, 1, Status::kTransport},
       }) {
    SCOPED_TRACE(testing::Message() << row.control << " " << row.refused.sequence);
    TestPeer peer = Accepted({.reads = 1});
    for (uint64_t id = 1; id <= 3; ++id) end_->Send(id, 0, 8, kConfirm);
    EXPECT_EQ(ReceiveWhole(peer, 2), (std::vector<Op>{Op::kSend, Op::kReadRequest}));
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, kNoMemoryStag, 0, true), ""));
    EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
    EXPECT_EQ(ReceiveWhole(peer, 3), (std::vector<Op>{Op::kSend, Op::kSend, Op::kReadRequest}));
    std::array<uint8_t, kDdpUntaggedSize> header = {};
    EncodeDdpHeader(row.refused, header);
    peer.Send(Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true), row.control + ToHex(header)));
    for (int i = 2; i <= 3; ++i) {
      const Status other = i == row.received + 1 ? row.verdict : Status::kFlushed;
      EXPECT_EQ(end_->NextSend().status, i <= row.received ? Status::kSuccess : other) << i;
    }
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
}

// Some hardware refuses STag 0 even if no memory is touched.
TEST_F(LinkTest, EmptyRequestsNameNoMemory) {
  TestPeer peer = Accepted();
  SendRequest request;
  request.opcode = Opcode::kWrite;
  ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
  EXPECT_EQ(HeaderOf(peer.ReceiveFpduHex()).stag, kNoMemoryStag);
  request.opcode = Opcode::kRead;
  ASSERT_EQ(end_->pair->PostSend(request), PostResult::kOk);
  EXPECT_EQ(ReceiveReadRequest(peer).source_stag, kNoMemoryStag);
}

// FPDUs are as long as they may be, however short TCP's segments are.
TEST_F(LinkTest, LongFpdusTowardAViaduct) {
  constexpr uint32_t kSize = 60000;
  listener_.LimitSegments(1000);
  end_ = std::make_unique<TestEnd>();
  end_->sink.immediate = true;
  end_->Dial(listener_.port());
  TestPeer peer = listener_.Accept();
  peer.ReceiveHex(24);
  peer.SendHex(std::string(kReply) + "50020004 80048004");
  EXPECT_EQ(peer.ReceiveFpduHex(), kWriteRtr);
  EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
  end_->Send(1, 0, kSize);
  EXPECT_TRUE(HeaderOf(peer.ReceiveFpduHex()).last);
  peer.Send(ReadFpdu(1, ReadOf(*end_, kSize)));
  EXPECT_TRUE(HeaderOf(peer.ReceiveFpduHex()).last);
}

// RFC 7306 6: they follow the Write, toward and from a peer of another make.
TEST_F(LinkTest, ImmediateDataOfAWriteAreAMessageBehindIt) {
  for (const bool solicited : {false, true}) {
    SCOPED_TRACE(solicited);
    TestPeer peer = Accepted({.separate_queues = true});
    const TestEnd target;
    const DdpHeader header =
        UntaggedHeader(solicited ? Op::kImmediateSolicited : Op::kImmediate, 1, 0, true);
    end_->Write(1, 0, 8, target, 16, kImmediate | (solicited ? kSolicited : 0), 0x01020304);
    EXPECT_EQ(HeaderOf(peer.ReceiveFpduHex()).opcode, Op::kWrite);
    EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(header, "0102030400000008")));
    end_->Receive(2, 0, 8);
    peer.Send(Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), end_->address(64), true), "4142"));
    peer.Send(Fpdu(header, "0a0b0c0d00000002"));
    const Completion received = end_->NextReceive();
    EXPECT_EQ(received.status, Status::kSuccess);
    EXPECT_EQ(received.opcode, Opcode::kReceiveWrite);
    EXPECT_EQ(received.length, 2u);
    EXPECT_EQ(received.immediate, 0x0a0b0c0du);
    EXPECT_EQ(received.solicited, solicited);
  }
}

// Checklist 51: a peer that closes with our requests unread resets the connection, and our next
// request meets the reset before the verdict is read.
TEST_F(LinkTest, TerminateBeforeAResetThatASendMeets) {
  TestPeer peer = Accepted();
  end_->Send(1, 0, 8, kConfirm);
  end_->Send(2, 0, 8, kConfirm);
  peer.ReceiveFpduHex();
  {
    const LoopHold hold(end_->loop);
    peer.Send(Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true), "11008000"));
    peer.Reset();
    SendIntoReset();
  }
  EXPECT_EQ(end_->NextSend().status, Status::kRemoteAccess);
  EXPECT_EQ(end_->NextSend().status, Status::kFlushed);
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
}

// There are more messages than the loop takes at once. After the first batch, the write that waits
// for room meets the reset. Nobody polls.
TEST_F(LinkTest, MessagesBeforeAResetThatWhatIsBlockedMeets) {
  constexpr uint32_t kMessages = 500;
  for (const bool disconnects : {false, true}) {
    SCOPED_TRACE(disconnects);
    TestPeer peer = Accepted({.memory = kLong, .separate_queues = true});
    peer.KeepLittle();
    PostWrite(*end_, kLong);
    peer.ReceiveFpduHex();
    std::vector<uint8_t> bytes;
    for (uint32_t i = 1; i <= kMessages; ++i) {
      end_->Receive(i, 0, 8);
      const std::vector<uint8_t> fpdu = Fpdu(SendHeader(i), "41");
      bytes.insert(bytes.end(), fpdu.begin(), fpdu.end());
    }
    {
      const LoopHold hold(end_->loop);
      if (disconnects) end_->pair->Disconnect(DisconnectMode::kGraceful);
      peer.Send(bytes);
      peer.Reset();
    }
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
    EXPECT_EQ(end_->NextSend().status, Status::kTransport);
    for (uint32_t i = 1; i <= kMessages; ++i) {
      ASSERT_EQ(end_->NextReceive().status, Status::kSuccess) << i;
    }
  }
}

// Requests that a fence has held back go out in turns, so that nobody holds the locks for long, and
// all of them do although nobody polls.
TEST_F(LinkTest, ManyRequestsBehindAFence) {
  constexpr uint32_t kSends = 500;
  for (const bool polled : {false, true}) {
    SCOPED_TRACE(polled);
    TestPeer peer = Accepted();
    SendRequest read;
    read.id = 1;
    read.opcode = Opcode::kRead;
    read.remote_key = 1;
    ASSERT_EQ(end_->pair->PostSend(read), PostResult::kOk);
    peer.ReceiveFpduHex();
    SendRequest send;
    send.flags = kFence;
    for (uint32_t i = 0; i < kSends; ++i) {
      ASSERT_EQ(end_->pair->PostSend(send), PostResult::kOk);
    }
    std::optional<LoopHold> hold;
    if (polled) hold.emplace(end_->loop);
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, 1, 0, true), ""));
    if (polled) {
      Completion completion = {};
      const Deadline deadline = Deadline::After(end_->loop, 10'000'000'000);
      while (end_->send_queue->Poll(&completion, 1) == 0 && !deadline.Passed(end_->loop)) {
        pair().MarkArrived();  // as the loop would
      }
      EXPECT_EQ(completion.id, 1u);
      EXPECT_TRUE(pair().SendsUnemitted());
      hold.reset();
    }
    for (uint32_t i = 1; i <= kSends; ++i) {
      ASSERT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(i), ""))) << i;
    }
  }
}

TEST_F(LinkTest, WriteInSegmentsOfTheMss) {
  constexpr int kMss = 1460;
  listener_.LimitSegments(kMss);
  TestPeer peer = Dialled();
  peer.SendHex(std::string(kReply) + "50020004 00040004");
  EXPECT_EQ(end_->sink.Next().kind, Event::Kind::kConnected);
  end_->Fill(0, 300000, 2);
  PostWrite(*end_, 300000);
  uint64_t at = 0;
  for (bool last = false; !last;) {
    const std::vector<uint8_t> fpdu = FromHex(peer.ReceiveFpduHex());
    ASSERT_GT(fpdu.size(), 20u);
    EXPECT_LE(fpdu.size(), size_t{kMss});
    DdpHeader header;
    const std::span<const uint8_t> ulpdu = std::span<const uint8_t>(fpdu).subspan(2);
    ASSERT_EQ(ParseDdpHeader(ulpdu, &header), std::nullopt);
    EXPECT_EQ(header.offset, 0x10000 + at);
    EXPECT_EQ(header.stag, 0x12a00u);
    last = header.last;
    const size_t length = (static_cast<size_t>(fpdu[0]) << 8 | fpdu[1]) - kDdpTaggedSize;
    if (!last) {
      EXPECT_EQ(length % 4, 0u);
    }
    at += length;
  }
  EXPECT_EQ(at, 300000u);
  EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
