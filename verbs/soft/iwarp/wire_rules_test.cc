// Rules of the wire that need a peer of another make: one test for each rule that no other test
// here covers. The number in a name is the item of the iWARP checklist; README.md lists them all.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/byte_order.h"
#include "verbs/soft/iwarp/crc32c.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/mpa_format.h"
#include "verbs/soft/iwarp/testing_device.h"
#include "verbs/soft/iwarp/testing_hex.h"
#include "verbs/soft/iwarp/testing_link.h"
#include "verbs/soft/iwarp/testing_peer.h"

namespace viaduct::verbs::iwarp {
namespace {

using Kind = Event::Kind;
using Op = RdmapOpcode;

constexpr char kEight[] = "4142434445464748";

// An FPDU with a right CRC around any ULPDU.
std::vector<uint8_t> RawFpdu(std::string_view ulpdu_hex) {
  const std::vector<uint8_t> ulpdu = FromHex(ulpdu_hex);
  std::vector<uint8_t> bytes(kFpduLengthSize);
  StoreBig16(bytes.data(), static_cast<uint16_t>(ulpdu.size()));
  bytes.insert(bytes.end(), ulpdu.begin(), ulpdu.end());
  bytes.resize((bytes.size() + 3) / 4 * 4);
  const uint32_t crc = ComputeCrc32c(bytes);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<uint8_t>(crc >> shift));
  return bytes;
}

std::string MemoryHex(const TestEnd& end, size_t at, size_t length) {
  return ToHex(std::span<const uint8_t>(end.memory).subspan(at, length));
}

class WireRulesTest : public LinkTest {
 protected:
  // Opens a connection towards us by `request` (flags, revision, length, word). Returns what
  // follows the key in the first `size` bytes of our reply, before any private data.
  std::string ReplyTo(const std::string& request, size_t size) {
    TestPeer peer = Answered(request);
    const std::string reply = peer.ReceiveHex(size);
    EXPECT_EQ(reply.substr(0, 32), kReply);
    return reply.substr(32);
  }
};

// --------------------------------------------------------------------------------- startup

TEST_F(WireRulesTest, C01_StartupFramesComeInOneSegment) {
  end_ = std::make_unique<TestEnd>();
  end_->Dial(listener_.port(), std::string(200, 'x'));
  TestPeer server = listener_.Accept();
  EXPECT_EQ(server.ReceiveSomeHex().size(), 2u * 224);
  TestPeer client = Answered("50020004 80018001");
  EXPECT_EQ(client.ReceiveSomeHex().size(), 2u * 24);
}

TEST_F(WireRulesTest, C02_ReservedBitsAreNotMirrored) {
  EXPECT_EQ(ReplyTo("5f020004 80018001", 24), "5002000480018001");
  EXPECT_EQ(ReplyTo("4f010000", 20), "40010000");
}

TEST_F(WireRulesTest, C03_Revisions) {
  EXPECT_EQ(ReplyTo("40000000", 20), "40000000");
  EXPECT_EQ(ReplyTo("40010000", 20), "40010000");
  EXPECT_EQ(ReplyTo("40020000", 20), "40020000");
  EXPECT_EQ(ReplyTo("50020004 00010001", 24), "5002000400010001");
}

// A client's request may have been lost several times: we wait for it as for any word of a peer.
TEST_F(WireRulesTest, C09_ARequestMayComeLate) {
  end_ = std::make_unique<TestEnd>();
  end_->Listen();
  TestPeer peer = TestPeer::Dial(end_->listener->port());
  std::this_thread::sleep_for(std::chrono::seconds(6));
  ASSERT_FALSE(peer.Readable()) << "closed";
  peer.SendHex(std::string(kRequest) + "50020004 80108010");
  end_->AcceptNext();
  EXPECT_EQ(peer.ReceiveHex(24).substr(0, 32), kReply);
}

// The caller decides how long to wait for a server that accepts and says nothing.
TEST_F(WireRulesTest, C09_SilentServerIsTheCallersToLeave) {
  TestPeer peer = Dialled({.silence = 100'000'000});
  end_->pair->Disconnect(DisconnectMode::kAbrupt);
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.timed_out);
  EXPECT_TRUE(end_->sink.Empty());
}

TEST_F(WireRulesTest, C11_CrcIsOnWhereEitherSideWantsIt) {
  for (const bool active : {false, true}) {
    for (const bool own : {false, true}) {
      for (const bool peers : {false, true}) {
        for (const bool corrupt : {false, true}) {
          SCOPED_TRACE(testing::Message() << active << own << peers << corrupt);
          const bool on = own || peers;
          const TestEnd::Options options{.crc = own};
          const std::string words = "020004 00040004";
          TestPeer peer =
              active ? Dialled(options) : Answered((peers ? "50" : "10") + words, options);
          if (active) {
            EXPECT_EQ(request_.substr(32, 2), own ? "50" : "10");
            peer.SendHex(kReply + ((peers ? "50" : "10") + words));
          } else {
            EXPECT_EQ(peer.ReceiveHex(24).substr(32, 2), on ? "50" : "10");
          }
          EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
          end_->Receive(1, 0, 8);
          std::vector<uint8_t> hello = Fpdu(SendHeader(1), kEight, on);
          if (corrupt) hello.back() ^= 0x10;
          // Until a whole FPDU has come, a responder says nothing, not even what is wrong.
          peer.Send(Fpdu(TaggedHeader(Op::kWrite, 1, 0, true), "", on));
          peer.Send(hello);
          if (on && corrupt) {
            ExpectTerminate(peer, "2002");
            continue;
          }
          EXPECT_EQ(end_->NextReceive().status, Status::kSuccess);
          end_->Send(2, 0, 8);
          EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(1), kEight, on)));
        }
      }
    }
  }
}

TEST_F(WireRulesTest, C15_UnspecifiedDepthsAreEchoed) {
  EXPECT_EQ(ReplyTo("50020004 3fff3fff", 24), "500200043fff3fff");
}

TEST_F(WireRulesTest, C18_FirstFpduNamesNoMemory) {
  TestPeer peer = Answered("50020004 80048004");
  peer.ReceiveHex(24);
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, 0, ~uint64_t{0}, true), ""));
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  end_->Send(1, 0, 0);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(1), "")));
}

// Otherwise each side would wait for the other to speak first.
TEST_F(WireRulesTest, C19_ResponderWaitsForTheFirstFpduButNotForEver) {
  for (const Nanos first_word : {Nanos{0}, Nanos{100'000'000}}) {
    TestPeer peer = Answered("50020004 00040004", {.first_word = first_word});
    peer.ReceiveHex(24);
    EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
    end_->Send(1, 0, 8);
    const std::string sent = ToHex(Fpdu(SendHeader(1), std::string(16, '0')));
    if (first_word == 0) {
      EXPECT_FALSE(peer.Readable());
      peer.SendHex(kWriteRtr);
    }
    EXPECT_EQ(peer.ReceiveFpduHex(), sent);
    EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
  }
}

// ------------------------------------------------------------------------------------ FPDUs

TEST_F(WireRulesTest, C26_SegmentsShorterThanTheirHeader) {
  const std::string zeros(64, '0');
  for (const std::string& ulpdu : {std::string(), std::string("41"), "c140" + zeros.substr(0, 22),
                                   "4143" + zeros.substr(0, 30)}) {
    SCOPED_TRACE(ulpdu.size() / 2);
    TestPeer peer = Accepted();
    peer.Send(RawFpdu(ulpdu));
    ExpectTerminate(peer, "2003");
  }
}

TEST_F(WireRulesTest, C30_FpdusFitTheSegmentsOfEveryMtu) {
  for (const int mss : {0, 536, 1460, 8960}) {
    SCOPED_TRACE(mss);
    if (mss != 0) listener_.LimitSegments(mss);
    TestPeer peer = Dialled({.memory = 300000});
    peer.SendHex(std::string(kReply) + "50020004 00040004");
    EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
    end_->Send(1, 0, 300000);
    size_t payload = 0;
    size_t longest = 0;
    while (payload < 300000) {
      const size_t bytes = peer.ReceiveFpduHex().size() / 2;
      ASSERT_GT(bytes, 24u);
      longest = std::max(longest, bytes);
      payload += bytes - 24;  // no segment is padded: all are multiples of four
    }
    EXPECT_EQ(payload, 300000u);
    EXPECT_LE(longest, mss == 0 ? 65536 : mss);
    EXPECT_GT(longest, mss == 0 ? 8960 : mss - 64) << "the segment is not used";
  }
}

// -------------------------------------------------------------------------------------- DDP

TEST_F(WireRulesTest, C32_C33_C49_HeadersThatContradictThemselves) {
  struct Row {
    const char* name;
    const char* ulpdu;
    const char* code;
  };
  const Row rows[] = {
      {"DDP version of a tagged segment", "c240 00000001 0000000000000000", "1104"},
      {"DDP version of an untagged one", "4243 00000000 00000000 00000001 00000000", "1206"},
      {"a tagged Send", "c143 00000001 0000000000000000", "0206"},
      {"an untagged Write", "4140 00000000 00000000 00000001 00000000", "0206"},
      {"RDMAP version 0", "4103 00000000 00000000 00000001 00000000", "0205"},
      {"RDMAP version 2", "4183 00000000 00000000 00000001 00000000", "0205"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    TestPeer peer = Accepted();
    peer.Send(RawFpdu(row.ulpdu));
    ExpectTerminate(peer, row.code);
  }
}

TEST_F(WireRulesTest, C37_WritesInsideAndOutsideTheRegion) {
  enum class Aim { kBase, kLast, kCrossing, kBefore, kWrap, kKey, kStale, kDomain, kRight };
  struct Row {
    Aim aim;
    const char* code;  // null: placed
  };
  for (const Row& row :
       {Row{Aim::kBase, nullptr}, Row{Aim::kLast, nullptr}, Row{Aim::kCrossing, "1101"},
        Row{Aim::kBefore, "1101"}, Row{Aim::kWrap, "1103"}, Row{Aim::kKey, "1100"},
        Row{Aim::kStale, "1100"}, Row{Aim::kDomain, "1102"}, Row{Aim::kRight, "1100"}}) {
    SCOPED_TRACE(static_cast<int>(row.aim));
    TestEnd::Options options{.memory = 64};
    if (row.aim == Aim::kRight) options.access = kLocalRead | kLocalWrite | kRemoteRead;
    TestPeer peer = Accepted(options);
    uint32_t stag = end_->region->key();
    uint64_t at = end_->address(0);
    if (row.aim == Aim::kLast) at = end_->address(56);
    if (row.aim == Aim::kCrossing) at = end_->address(57);
    if (row.aim == Aim::kBefore) at -= 1;
    if (row.aim == Aim::kWrap) at = ~uint64_t{0} - 3;
    if (row.aim == Aim::kKey) stag ^= 1 << 20;
    auto other_domain = *end_->context->CreateDomain(false);
    auto other = *end_->context->Register(*other_domain, end_->memory.data(), 64, options.access);
    if (row.aim == Aim::kDomain || row.aim == Aim::kStale) stag = other->key();
    if (row.aim == Aim::kStale) other.reset();
    peer.Send(Fpdu(TaggedHeader(Op::kWrite, stag, at, true), kEight));
    if (row.code != nullptr) {
      ExpectTerminate(peer, row.code);
      EXPECT_EQ(MemoryHex(*end_, 0, 64), std::string(128, '0'));
      continue;
    }
    end_->Receive(1, 0, 0);
    peer.Send(Fpdu(SendHeader(1), ""));
    EXPECT_EQ(end_->NextReceive().status, Status::kSuccess);
    end_->SyncMemory();
    EXPECT_EQ(MemoryHex(*end_, at - end_->address(0), 8), kEight);
  }
}

// As on every wire: under kDrop such a write fails alone, and this side is told.
TEST_F(WireRulesTest, C37_AWriteThatWrapsIsARefusedWrite) {
  TestPeer peer = Accepted({.no_receive = NoReceive::kDrop, .memory = 64});
  end_->Receive(1, 0, 0);
  peer.Send(Fpdu(TaggedHeader(Op::kWrite, end_->region->key(), ~uint64_t{0} - 3, true), kEight));
  peer.Send(Fpdu(SendHeader(1), ""));
  EXPECT_EQ(end_->NextReceive().status, Status::kSuccess);
  EXPECT_EQ(end_->sink.Next().kind, Kind::kRefusedWrite);
}

// ------------------------------------------------------------------------------------- RDMAP

TEST_F(WireRulesTest, C40_ReadsBeyondTheDepthAreNotSent) {
  TestPeer peer = Dialled({.reads = 4});
  peer.SendHex(std::string(kReply) + "50020004 00020004");
  EXPECT_EQ(end_->sink.Next().kind, Kind::kConnected);
  for (uint64_t i = 0; i < 3; ++i) end_->ReadFrom(i, 0x12a00);
  std::vector<ReadRequest> asked;
  const auto take = [&] { asked.push_back(ReceiveReadRequest(peer)); };
  take();
  take();
  EXPECT_FALSE(peer.Readable());
  for (size_t i = 0; i < 3; ++i) {
    peer.Send(Fpdu(TaggedHeader(Op::kReadResponse, asked[i].sink_stag, asked[i].sink_offset, true),
                   kEight));
    if (i == 0) take();
    const Completion read = end_->NextSend();
    EXPECT_EQ(read.id, i);
    EXPECT_EQ(read.status, Status::kSuccess);
  }
}

TEST_F(WireRulesTest, C43_ReadsOutsideWhatMayBeRead) {
  enum class Aim { kCrossing, kWrap, kKey, kDomain, kRight };
  struct Row {
    Aim aim;
    const char* code;
  };
  for (const Row& row :
       {Row{Aim::kCrossing, "0101"}, Row{Aim::kWrap, "0104"}, Row{Aim::kKey, "0100"},
        Row{Aim::kDomain, "0103"}, Row{Aim::kRight, "0102"}}) {
    SCOPED_TRACE(static_cast<int>(row.aim));
    TestEnd::Options options{.memory = 64};
    if (row.aim == Aim::kRight) options.access = kLocalRead | kLocalWrite | kRemoteWrite;
    TestPeer peer = Accepted(options);
    auto other_domain = *end_->context->CreateDomain(false);
    auto other = *end_->context->Register(*other_domain, end_->memory.data(), 64, options.access);
    ReadRequest request{.sink_stag = 1,
                        .size = 8,
                        .source_stag = end_->region->key(),
                        .source_offset = end_->address(0)};
    if (row.aim == Aim::kCrossing) request.source_offset += 57;
    if (row.aim == Aim::kWrap) request.source_offset = ~uint64_t{0} - 3;
    if (row.aim == Aim::kKey) request.source_stag ^= 1 << 20;
    if (row.aim == Aim::kDomain) request.source_stag = other->key();
    peer.Send(ReadFpdu(1, request));
    const std::string terminate = peer.ReceiveFpduHex();
    EXPECT_EQ(CodeOf(terminate), row.code);
    EXPECT_EQ(terminate.substr(44, 8), "e000002e") << "without the request";
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
}

// Beyond a window that only this pair may use and that is in no domain.
TEST_F(WireRulesTest, C43_ReadsBeyondAWindowOfThePair) {
  TestPeer peer = Accepted();
  auto window = *end_->context->CreateWindow(*end_->domain, WindowScope::kQueuePair);
  BindRequest bind;
  bind.window = window.get();
  bind.region = end_->region->key();
  bind.address = end_->address(0);
  bind.length = 8;
  bind.access = kRemoteRead;
  Key key = 0;
  ASSERT_EQ(end_->pair->PostBind(bind, &key), PostResult::kOk);
  EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
  peer.Send(ReadFpdu(
      1, {.sink_stag = 1, .size = 8, .source_stag = key, .source_offset = end_->address(1)}));
  ExpectTerminate(peer, "0101");
}

// The alignment of the address is checked last, after the key has given access to the memory.
TEST_F(WireRulesTest, C43_AtomicsOutsideWhatMayBeChanged) {
  constexpr uint32_t kAll = kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite;
  enum class Aim { kCrossing, kKey, kDomain, kRight, kOdd };
  struct Row {
    Aim aim;
    const char* code;
  };
  for (const Row& row :
       {Row{Aim::kCrossing, "0101"}, Row{Aim::kKey, "0100"}, Row{Aim::kDomain, "0103"},
        Row{Aim::kRight, "0102"}, Row{Aim::kOdd, "0207"}}) {
    for (const uint64_t address : {uint64_t{8}, uint64_t{12}}) {
      if (row.aim == Aim::kOdd && address % 8 == 0) continue;
      SCOPED_TRACE(testing::Message() << row.code << " at " << address);
      TestEnd::Options options{.memory = 64, .access = kAll};
      if (row.aim != Aim::kRight) options.access |= kRemoteAtomic;
      TestPeer peer = Accepted(options);
      auto other_domain = *end_->context->CreateDomain(false);
      auto other = *end_->context->Register(*other_domain, end_->memory.data(), 64, options.access);
      AtomicRequest request{.stag = end_->region->key(), .address = end_->address(address)};
      if (row.aim == Aim::kCrossing) request.address += 64;
      if (row.aim == Aim::kKey) request.stag ^= 1 << 20;
      if (row.aim == Aim::kDomain) request.stag = other->key();
      std::array<uint8_t, kAtomicRequestSize> atomic;
      EncodeAtomicRequest(request, atomic);
      peer.Send(Fpdu(UntaggedHeader(Op::kAtomicRequest, 1, 0, true), ToHex(atomic)));
      EXPECT_EQ(CodeOf(peer.ReceiveFpduHex()), row.code);
      EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
    }
  }
}

// The peer was not given these for itself: a region, a key that names nothing, 0.
TEST_F(WireRulesTest, C44_InvalidationOfWhatIsNotThePeers) {
  for (const int which : {0, 1, 2}) {
    SCOPED_TRACE(which);
    TestPeer peer = Accepted();
    end_->Receive(1, 0, 8);
    DdpHeader header = UntaggedHeader(Op::kSendInvalidate, 1, 0, true);
    header.invalidate = which == 0 ? end_->region->key() : which == 1 ? 0xdeadbe00 : 0;
    peer.Send(Fpdu(header, kEight));
    ExpectTerminate(peer, "0109");
    EXPECT_EQ(end_->NextReceive().status, Status::kFlushed);
  }
}

// One thread posts, the other checks the memory when the message is there.
TEST_F(WireRulesTest, C45_WhatWasWrittenBeforeASendIsThere) {
  const uint32_t rounds = getenv("VIADUCT_LONG") != nullptr ? 100000 : 10000;
  TestEnd from;
  TestEnd to;
  ConnectEnds(from, to);
  std::thread writer([&] {
    for (uint32_t round = 1; round <= rounds; ++round) {
      from.Fill(0, 24, round);
      from.Write(round, 0, 24, to, 4096 * (round % 64));
      from.Send(round, 0, 0);
      from.NextSend();
      from.NextSend();
      from.Receive(round, 0, 0);
      from.NextReceive();
    }
  });
  for (uint32_t round = 1; round <= rounds; ++round) {
    to.Receive(round, 0, 0);
    if (to.NextReceive().status != Status::kSuccess) break;
    if (!to.Matches(4096 * (round % 64), 24, round)) break;
    to.Send(round, 0, 0);
    to.NextSend();
  }
  writer.join();
}

// Hold, the rule for DAT: Sends without receives wait, and the connection lives.
TEST_F(WireRulesTest, C32_HeldSendIsParked) {
  TestPeer peer = Accepted();
  peer.Send(Fpdu(SendHeader(1), kEight));
  peer.Send(ReadFpdu(1, {.sink_stag = 7,
                         .size = 8,
                         .source_stag = end_->region->key(),
                         .source_offset = end_->address(0)}));
  EXPECT_EQ(peer.ReceiveFpduHex(),
            ToHex(Fpdu(TaggedHeader(Op::kReadResponse, 7, 0, true), std::string(16, '0'))));
  EXPECT_TRUE(end_->sink.Empty());
  end_->Receive(1, 0, 8);
  EXPECT_EQ(end_->NextReceive().length, 8u);
  EXPECT_EQ(MemoryHex(*end_, 0, 8), kEight);
}

// ----------------------------------------------------------------------------------- the end

// The peer reads nothing until the error is on its way. Then it gets whole FPDUs and one Terminate.
TEST_F(WireRulesTest, C52_TerminateIsNeverInsideAnFpdu) {
  constexpr uint32_t kSize = 16 << 20;
  TestPeer peer = Accepted({.memory = kSize});
  end_->Send(1, 0, kSize);
  peer.Send(RawFpdu("41"));
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  std::string last;
  for (std::string fpdu = peer.ReceiveFpduHex(); !fpdu.empty(); fpdu = peer.ReceiveFpduHex()) {
    ASSERT_GE(fpdu.size(), 2u * 24);
    ASSERT_EQ(CodeOf(last).substr(0, 4), "none") << "something follows the Terminate";
    const size_t length = FromHex(fpdu)[0] << 8 | FromHex(fpdu)[1];
    ASSERT_EQ(ToHex(RawFpdu(fpdu.substr(4, 2 * length))), fpdu) << "cut short";
    last = std::move(fpdu);
  }
  EXPECT_EQ(CodeOf(last), "2003");
}

TEST_F(WireRulesTest, C55_LostWhileReadsAreOutstanding) {
  for (const bool terminate : {false, true}) {
    TestPeer peer = Accepted();
    end_->ReadFrom(1, 1);
    end_->ReadFrom(2, 1);
    peer.ReceiveFpduHex();
    if (terminate) {
      peer.Send(Fpdu(UntaggedHeader(Op::kTerminate, 1, 0, true), "01008000"));
    } else {
      peer.Reset();
    }
    EXPECT_EQ(end_->NextSend().status, terminate ? Status::kRemoteAccess : Status::kTransport);
    EXPECT_EQ(end_->NextSend().status, Status::kFlushed);
    EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  }
}

TEST_F(WireRulesTest, C58_MessagesBeforeAResetAreReceived) {
  TestPeer peer = Accepted();
  SendTwo(peer);
  peer.Reset();
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  ExpectTwoAndAFlush();
}

TEST_F(WireRulesTest, C58_MessagesBeforeAResetThatASendMeetsAreReceived) {
  TestPeer peer = Accepted({.separate_queues = true});
  AwaitFirstWord(peer);
  {
    const LoopHold hold(end_->loop);
    SendTwo(peer);
    peer.Reset();
    SendIntoReset();
  }
  EXPECT_EQ(NextDisconnect(), DisconnectCause::kBroken);
  ExpectTwoAndAFlush();
}

// What the peer sent lies unread, since there are no receives. That must not lose our last message.
TEST_F(WireRulesTest, C58_ClosingWithUnreadInput) {
  TestPeer peer = Accepted();
  std::vector<uint8_t> flood;
  for (uint32_t i = 1; i <= 20; ++i) {
    const std::vector<uint8_t> one = Fpdu(SendHeader(i), std::string(2 * 50000, '5'));
    flood.insert(flood.end(), one.begin(), one.end());
  }
  peer.Send(flood);
  end_->Send(1, 0, 8);
  EXPECT_EQ(end_->NextSend().status, Status::kSuccess);
  end_->pair->Disconnect(DisconnectMode::kAbrupt);
  EXPECT_EQ(peer.ReceiveFpduHex(), ToHex(Fpdu(SendHeader(1), std::string(16, '0'))));
  const TestPeer::End end = peer.ReceiveEnd();
  EXPECT_EQ(end.hex, "");
  EXPECT_FALSE(end.reset);
  EXPECT_FALSE(end.timed_out);
}

}  // namespace
}  // namespace viaduct::verbs::iwarp
