// Sends and receives: sizes, segments, order, and what a message carries besides its bytes.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class SendTest : public DeviceTest {};

constexpr size_t kMegabyte = 1 << 20;

TEST_F(SendTest, EverySizeArrives) {
  EndOptions options;
  options.memory = 2 * kMegabyte + 64;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  uint64_t id = 0;
  for (size_t size :
       {size_t{0},    size_t{1},    size_t{7},    size_t{8},     size_t{55},    size_t{56},
        size_t{57},   size_t{63},   size_t{64},   size_t{65},    size_t{119},   size_t{120},
        size_t{121},  size_t{1408}, size_t{1460}, size_t{4095},  size_t{4096},  size_t{4097},
        size_t{8191}, size_t{8192}, size_t{8193}, size_t{65535}, size_t{65536}, size_t{65537},
        kMegabyte,    2 * kMegabyte}) {
    from.Put(3, Pattern(size, id));
    std::fill(to.memory().begin(), to.memory().end(), 0xee);
    ASSERT_EQ(to.Receive(id, 5, size + 1), PostResult::kOk);
    ASSERT_EQ(from.Send(id + 1000, 3, size), PostResult::kOk);
    const Completion received = Expect(to.receives(), id);
    EXPECT_EQ(received.length, size);
    EXPECT_EQ(received.opcode, Opcode::kReceive);
    EXPECT_EQ(received.context, &to);
    EXPECT_FALSE(received.has_immediate);
    EXPECT_TRUE(!received.solicited || !device().tells_solicited());
    const Completion sent = Expect(from.sends(), id + 1000);
    EXPECT_EQ(sent.opcode, Opcode::kSend);
    EXPECT_EQ(sent.length, size);
    EXPECT_EQ(sent.context, &from);
    ASSERT_TRUE(to.Get(5, size) == Pattern(size, id)) << size;
    EXPECT_EQ(to.memory()[4], 0xee) << "before the buffer, " << size;
    EXPECT_EQ(to.memory()[5 + size], 0xee) << "behind the message, " << size;
    ++id;
  }
}

TEST_F(SendTest, AnExactFitIsNotTooLong) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (size_t size : {0, 1, 56, 4096, 60000}) {
    ASSERT_EQ(to.Receive(size, 0, size), PostResult::kOk);
    ASSERT_EQ(from.Send(size, 0, size), PostResult::kOk);
    EXPECT_EQ(Expect(to.receives(), size).length, size);
  }
}

// Gathers from scattered places and scatters into others; sizes and gaps of both sides differ.
TEST_F(SendTest, ManySegmentsOnBothSides) {
  for (uint32_t count : {2u, 3u, 16u, 252u}) {
    if (count > std::min(a().attributes().max_segments, b().attributes().max_segments)) continue;
    EndOptions options;
    options.max_segments = count;
    options.memory = 1 << 17;
    End& from = NewEnd(a(), options);
    End& to = NewEnd(b(), options);
    Connect(from, to);
    std::vector<Segment> gather, scatter;
    Bytes expected;
    for (uint32_t i = 0; i < count; ++i) {
      const size_t length = i % 5 == 3 ? 0 : 1 + (i * 37) % 300;
      const Bytes piece = Pattern(length, i);
      from.Put(i * 400, piece);
      expected.insert(expected.end(), piece.begin(), piece.end());
      gather.push_back(from.At(i * 400, length));
      if (length == 0) gather.back() = Segment{0, 0, 0};  // address and key mean nothing
    }
    size_t room = 0;
    for (uint32_t i = 0; i < count; ++i) {
      const size_t length = i + 1 < count ? 1 + (i * 53) % 280 : 40000;
      scatter.push_back(to.At(i * 300, length));
      room += length;
    }
    ASSERT_GE(room, expected.size());
    ASSERT_EQ(to.Receive(1, scatter), PostResult::kOk);
    ASSERT_EQ(from.Send(2, gather), PostResult::kOk);
    std::fill(gather.begin(), gather.end(), Segment{1, 1, 1});  // they were copied
    std::fill(scatter.begin(), scatter.end(), Segment{1, 1, 1});
    EXPECT_EQ(Expect(to.receives(), 1).length, expected.size());
    Expect(from.sends(), 2);
    Bytes got;
    for (uint32_t i = 0; i < count && got.size() < expected.size(); ++i) {
      const size_t length = std::min(i + 1 < count ? 1 + (i * 53) % 280 : size_t{40000},
                                     expected.size() - got.size());
      const Bytes piece = to.Get(i * 300, length);
      got.insert(got.end(), piece.begin(), piece.end());
    }
    EXPECT_TRUE(got == expected) << count << " segments";
  }
}

TEST_F(SendTest, NoSegmentsAtAll) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, absl::Span<const Segment>()), PostResult::kOk);
  ASSERT_EQ(from.Send(2, absl::Span<const Segment>()), PostResult::kOk);
  EXPECT_EQ(Expect(to.receives(), 1).length, 0u);
  Expect(from.sends(), 2);
}

TEST_F(SendTest, QueuesCompleteInOrderAndPaired) {
  EndOptions options;
  options.max_sends = options.max_receives = 256;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  // Sizes of all classes are mixed: no class may overtake another.
  const size_t sizes[] = {1, 5000, 64, 20000, 0, 9000, 300};
  constexpr int kMessages = 200;
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(to.Receive(i, 0, 20000), PostResult::kOk);
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(from.Send(i, 0, sizes[i % 7]), PostResult::kOk);
  }
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(Expect(to.receives(), i).length, sizes[i % 7]) << i;
  }
  for (int i = 0; i < kMessages; ++i) Expect(from.sends(), i);
}

TEST_F(SendTest, AMessageWaitsForItsReceive) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (size_t size : {1, 4096, 60000}) {
    from.Put(0, Pattern(size, 1));
    ASSERT_EQ(from.Send(1, 0, size), PostResult::kOk);
    Settle();
    EXPECT_TRUE(to.receives().got().empty());
    EXPECT_EQ(to.events().count() + from.events().count(), 0u);
    ASSERT_EQ(to.Receive(2, 0, size), PostResult::kOk);
    EXPECT_EQ(Expect(to.receives(), 2).length, size);
    EXPECT_TRUE(to.Get(0, size) == Pattern(size, 1));
    Expect(from.sends(), 1);
  }
}

TEST_F(SendTest, MoreMessagesWaitThanTheWireHolds) {
  EndOptions options;
  options.max_sends = options.max_receives = 1024;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(from.Send(i, 0, i % 50 == 49 ? 30000 : 100), PostResult::kOk);
  }
  Settle();
  EXPECT_TRUE(to.receives().got().empty());
  for (int i = 0; i < 600; ++i) ASSERT_EQ(to.Receive(i, 0, 30000), PostResult::kOk);
  for (int i = 0; i < 600; ++i) {
    ASSERT_EQ(Expect(to.receives(), i).length, i % 50 == 49 ? 30000u : 100u);
  }
  for (int i = 0; i < 600; ++i) Expect(from.sends(), i);
}

TEST_F(SendTest, ConfirmedSendsCompleteInOrderWithOthers) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(to.Receive(i, 0, 100), PostResult::kOk);
  for (int i = 0; i < 16; ++i) {
    ASSERT_EQ(from.Send(i, 0, 100, i % 3 == 0 ? kConfirm : 0), PostResult::kOk);
  }
  for (int i = 0; i < 16; ++i) Expect(from.sends(), i);
  for (int i = 0; i < 16; ++i) Expect(to.receives(), i);
}

TEST_F(SendTest, AConfirmedSendWaitsForTheReceive) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(from.Send(1, 0, 100, kConfirm), PostResult::kOk);
  Settle();
  EXPECT_TRUE(from.sends().got().empty());
  EXPECT_FALSE(from.pair().SendIdle());
  ASSERT_EQ(to.Receive(2, 0, 100), PostResult::kOk);
  Expect(from.sends(), 1);
  Expect(to.receives(), 2);
}

TEST_F(SendTest, SolicitedShowsAtThePeer) {
  if (!device().tells_solicited()) GTEST_SKIP() << "verbs does not say";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 8192), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, i < 4 ? 8 : 8192, i % 2 ? kSolicited : 0), PostResult::kOk);
  }
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Expect(to.receives(), i).solicited, i % 2 == 1) << i;
}

TEST_F(SendTest, ImmediateDataTravelsWhenAgreed) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ConnectWithImmediate(from, to);
  for (size_t size : {0, 8, 56, 4096, 60000}) {
    for (uint32_t immediate : {0u, 0x01020304u, 0xffffffffu}) {
      ASSERT_EQ(to.Receive(1, 0, size), PostResult::kOk);
      ASSERT_EQ(from.Send(2, 0, size, kImmediate, immediate), PostResult::kOk);
      const Completion received = Expect(to.receives(), 1);
      EXPECT_TRUE(received.has_immediate);
      EXPECT_EQ(received.immediate, immediate);
      EXPECT_EQ(received.length, size);
      EXPECT_EQ(received.opcode, Opcode::kReceive);
      Expect(from.sends(), 2);
    }
    ASSERT_EQ(to.Receive(1, 0, size), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, size), PostResult::kOk);
    EXPECT_FALSE(Expect(to.receives(), 1).has_immediate) << "only where it was asked for";
    Expect(from.sends(), 2);
  }
  // In the other direction, and solicited.
  ASSERT_EQ(from.Receive(1, 0, 10), PostResult::kOk);
  ASSERT_EQ(to.Send(2, 0, 10, kImmediate | kSolicited, 99), PostResult::kOk);
  const Completion received = Expect(from.receives(), 1);
  EXPECT_TRUE(received.has_immediate);
  EXPECT_TRUE(received.solicited);
  EXPECT_EQ(received.immediate, 99u);
}

TEST_F(SendTest, ImmediateDataOfSendsIsDroppedOtherwise) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ConnectAs(from, to, ImmediateForm::kNone);
  ASSERT_EQ(to.Receive(1, 0, 10), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 10, kImmediate, 99), PostResult::kOk);
  const Completion received = Expect(to.receives(), 1);
  EXPECT_FALSE(received.has_immediate);
  EXPECT_EQ(received.length, 10u);
}

// An end that may frame has offered frames. Whichever form the peer chooses, the receives that were
// posted before its answer work as well as those that are posted afterwards.
TEST_F(SendTest, ReceivesAreReadyForEitherAnswer) {
  constexpr size_t kSizes[] = {0, 1, 11, 12, 13, 100, 4096, 60000};
  for (ImmediateForm form : {ImmediateForm::kNone, device().immediate_form()}) {
    EndOptions options;
    options.memory = kMegabyte;
    End& from = NewEnd(a(), options);
    End& to = NewEnd(b(), options);
    size_t at = 0;
    for (size_t size : kSizes) {
      ASSERT_EQ(to.Receive(size, at, size), PostResult::kOk);
      at += size + 1;
    }
    ConnectAs(to, from, form, /*may_frame=*/true);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_EQ(from.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(to.Send(2, 0, 8), PostResult::kOk);
    Expect(from.receives(), 1);
    Expect(to.sends(), 2);
    std::fill(to.memory().begin(), to.memory().end(), 0xee);
    at = 0;
    for (size_t size : kSizes) {
      from.Put(3, Pattern(size, size));
      ASSERT_EQ(from.Send(3, 3, size), PostResult::kOk);
      const Completion received = Expect(to.receives(), size);
      EXPECT_EQ(received.length, size);
      EXPECT_FALSE(received.has_immediate);
      EXPECT_TRUE(to.Get(at, size) == Pattern(size, size)) << size;
      EXPECT_EQ(to.memory()[at + size], 0xee) << "behind the message, " << size;
      Expect(from.sends(), 3);
      at += size + 1;
    }
  }
}

// A receive that is ready for both forms does not take longer messages because of that.
TEST_F(SendTest, AMessageThatIsAFrameTooLongBreaks) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  ASSERT_EQ(to.Receive(1, 0, 100), PostResult::kOk);
  ConnectAs(to, from, ImmediateForm::kNone, /*may_frame=*/true);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_EQ(from.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(to.Send(2, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(3, 0, 104), PostResult::kOk);
  Expect(to.receives(), 1, Status::kLocalLength);
  ExpectBroken(to);
}

// What counts are the bytes that come: a program may post equal lengths to the end of its memory.
// With many segments, and where messages may be dropped, a device may receive them elsewhere first.
TEST_F(SendTest, AReceiveMayReachPastItsRegion) {
  constexpr size_t kMany = 40;
  for (NoReceive no_receive : {NoReceive::kHold, NoReceive::kDrop}) {
    for (size_t segments : {size_t{1}, kMany}) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(no_receive) << ' ' << segments);
      EndOptions options;
      options.no_receive = no_receive;
      options.max_segments = kMany;
      End& from = NewEnd(a(), options);
      End& to = NewEnd(b(), options);
      Connect(from, to);
      const size_t size = 8 * segments;
      std::vector<Segment> pieces;
      for (size_t i = 0; i < segments; ++i) {
        pieces.push_back(to.At(to.memory().size() - size + 8 * i, 8));
      }
      pieces.back().length = 4096;
      ASSERT_EQ(to.Receive(1, pieces), PostResult::kOk);
      from.Put(0, Pattern(size, 1));
      ASSERT_EQ(from.Send(2, 0, size), PostResult::kOk);
      EXPECT_EQ(Expect(to.receives(), 1).length, size);
      Expect(from.sends(), 2);
      EXPECT_EQ(to.Get(to.memory().size() - size, size), Pattern(size, 1));
    }
  }
}

TEST_F(SendTest, SendAndReceiveOnOneQueue) {
  Inbox inbox(a());
  {
    EndOptions options;
    options.shared_inbox = &inbox;
    End& from = NewEnd(a(), options);
    End& to = NewEnd(a(), options);
    Connect(from, to);
    ASSERT_EQ(to.Receive(1, 0, 10), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 10), PostResult::kOk);
    ASSERT_TRUE(Run([&] { return inbox.got().size() == 2; }));
    uint64_t ids = 0;
    for (const Completion& completion : inbox.got()) {
      EXPECT_EQ(completion.status, Status::kSuccess);
      EXPECT_EQ(completion.context, completion.id == 1 ? &to : &from);
      ids += completion.id;
    }
    EXPECT_EQ(ids, 3u);
    from.DestroyPair();
    to.DestroyPair();
    Forget(from);
    Forget(to);
  }
}

// Each side sends more than any buffer holds before it posts a receive.
TEST_F(SendTest, BigTransfersBothWaysAtOnce) {
  EndOptions options;
  options.memory = 2 * kMegabyte;
  End& left = NewEnd(a(), options);
  End& right = NewEnd(b(), options);
  Connect(left, right);
  constexpr int kMessages = 12;
  left.Put(0, Pattern(kMegabyte, 1));
  right.Put(0, Pattern(kMegabyte, 2));
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(left.Send(i, 0, kMegabyte), PostResult::kOk);
    ASSERT_EQ(right.Send(i, 0, kMegabyte), PostResult::kOk);
  }
  for (int i = 0; i < kMessages; ++i) {
    ASSERT_EQ(left.Receive(i, kMegabyte, kMegabyte), PostResult::kOk);
    ASSERT_EQ(right.Receive(i, kMegabyte, kMegabyte), PostResult::kOk);
  }
  for (int i = 0; i < kMessages; ++i) {
    EXPECT_EQ(Expect(left.receives(), i).length, kMegabyte);
    EXPECT_EQ(Expect(right.receives(), i).length, kMegabyte);
    Expect(left.sends(), i);
    Expect(right.sends(), i);
  }
  EXPECT_TRUE(left.Get(kMegabyte, kMegabyte) == Pattern(kMegabyte, 2));
  EXPECT_TRUE(right.Get(kMegabyte, kMegabyte) == Pattern(kMegabyte, 1));
}

TEST_F(SendTest, AFullQueueSaysSoAndRecovers) {
  EndOptions options;
  options.max_sends = options.max_receives = 4;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
    EXPECT_EQ(to.Receive(4, 0, 64), PostResult::kQueueFull);
    for (int i = 0; i < 4; ++i) ASSERT_EQ(from.Send(i, 0, 64), PostResult::kOk);
    EXPECT_EQ(from.Send(4, 0, 64), PostResult::kQueueFull);
    // Each polled completion makes room for one request.
    Expect(to.receives(), 0);
    Expect(from.sends(), 0);
    for (int i = 1; i < 4; ++i) {
      Expect(to.receives(), i);
      Expect(from.sends(), i);
    }
  }
}

// Gives 0, 1, 2, ... up to a limit.
class Numbers final : public IdSource {
 public:
  explicit Numbers(uint64_t limit) : limit_(limit) {}
  bool TakeId(uint64_t* id) override {
    if (next_ == limit_) return false;
    *id = next_++;
    return true;
  }

 private:
  const uint64_t limit_;
  uint64_t next_ = 0;
};

TEST_F(SendTest, ASourceGivesTheIdsInPostingOrder) {
  static constexpr uint64_t kRequests = 200;
  EndOptions options;
  options.max_sends = options.max_receives = kRequests;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  Numbers receives(kRequests), sends(kRequests);
  const Segment source = from.At(0, 8), sink = to.At(0, 8);
  const ReceiveRequest receive = {.ids = &receives, .segments = {&sink, 1}};
  SendRequest send;
  send.ids = &sends;
  send.segments = {&source, 1};
  const auto post = [&] {
    for (uint64_t i = 0; i < kRequests / 2; ++i) {
      ASSERT_EQ(to.pair().PostReceive(receive), PostResult::kOk);
      ASSERT_EQ(from.pair().PostSend(send), PostResult::kOk);
    }
  };
  std::thread other([&] { post(); });
  post();
  other.join();
  for (uint64_t i = 0; i < kRequests; ++i) {
    Expect(to.receives(), i);
    Expect(from.sends(), i);
  }
}

// The queue has room, but the source has no more ids.
TEST_F(SendTest, NothingIsPostedWithoutAnId) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Numbers receives(1), sends(1);
  const Segment source = from.At(0, 8), sink = to.At(0, 8);
  const ReceiveRequest receive = {.ids = &receives, .segments = {&sink, 1}};
  SendRequest send;
  send.ids = &sends;
  send.segments = {&source, 1};
  ASSERT_EQ(to.pair().PostReceive(receive), PostResult::kOk);
  EXPECT_EQ(to.pair().PostReceive(receive), PostResult::kQueueFull);
  ASSERT_EQ(from.pair().PostSend(send), PostResult::kOk);
  EXPECT_EQ(from.pair().PostSend(send), PostResult::kQueueFull);
  Expect(to.receives(), 0);
  Expect(from.sends(), 0);
  ASSERT_EQ(to.Receive(7, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(8, 0, 8), PostResult::kOk);
  Expect(to.receives(), 7);
  Expect(from.sends(), 8);
}

TEST_F(SendTest, CompletedButNotPolledStillCounts) {
  EndOptions options;
  options.max_sends = 2;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(from);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, 8), PostResult::kOk);
  }
  for (int i = 0; i < 2; ++i) Expect(to.receives(), i);
  EXPECT_EQ(from.Send(2, 0, 8), PostResult::kQueueFull);
  Expect(from.sends(), 0);
  Expect(from.sends(), 1);
  EXPECT_EQ(from.Send(2, 0, 8), PostResult::kOk);
}

TEST_F(SendTest, SuppressedRequestsCompleteSilently) {
  EndOptions options;
  options.max_sends = 4;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b());
  Connect(from, to);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
    ASSERT_EQ(from.Send(1, 0, 8, kSuppress), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 8, kSuppress | kConfirm), PostResult::kOk);
    ASSERT_EQ(from.Read(3, 64, 8, to, 64, kSuppress), PostResult::kOk);
    ASSERT_EQ(from.Send(4, 0, 8), PostResult::kOk);
    Expect(from.sends(), 4);  // the places of all four are free again
    for (int i = 0; i < 3; ++i) Expect(to.receives(), i);
  }
  Settle();
  EXPECT_TRUE(from.sends().got().empty());
  EXPECT_TRUE(from.pair().SendIdle());
  // Nor need anybody poll for them: programs learn from their peers how far they are.
  Forget(from);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
    ASSERT_EQ(from.Send(i, 0, 8, kSuppress), PostResult::kOk) << i;
    Expect(to.receives(), i);
    ASSERT_TRUE(Run([&] { return from.pair().SendIdle(); }));
  }
}

TEST_F(SendTest, MoreSegmentsThanThePairWasMadeFor) {
  EndOptions options;
  options.max_segments = 2;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  const std::vector<Segment> three(3, from.At(0, 4));
  EXPECT_EQ(from.Send(1, three), PostResult::kTooManySegments);
  EXPECT_EQ(from.Receive(1, three), PostResult::kTooManySegments);
  ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(3, absl::MakeConstSpan(three).first(2)), PostResult::kOk);
  EXPECT_EQ(Expect(to.receives(), 2).length, 8u);
  Expect(from.sends(), 3);
}

TEST_F(SendTest, ModifyEnlargesWhatMayBePosted) {
  EndOptions options;
  options.max_sends = options.max_receives = 2;
  options.max_segments = 1;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  ASSERT_EQ(to.Receive(0, 0, 64), PostResult::kOk);  // stays posted
  for (End* end : {&from, &to}) {
    QueuePairOptions larger = end->pair_options();
    larger.max_sends = larger.max_receives = 8;
    larger.max_send_segments = larger.max_receive_segments = 3;
    ASSERT_TRUE(end->pair().Modify(larger).ok());
  }
  Connect(from, to);
  for (int i = 1; i < 8; ++i) ASSERT_EQ(to.Receive(i, 0, 64), PostResult::kOk);
  for (int i = 0; i < 8; ++i) {
    const std::vector<Segment> three(3, from.At(0, 4));
    ASSERT_EQ(from.Send(i, three), PostResult::kOk);
  }
  for (int i = 0; i < 8; ++i) EXPECT_EQ(Expect(to.receives(), i).length, 12u);
}

// A thread may post while another thread changes the limits.
TEST_F(SendTest, ModifyBesidePosts) {
  constexpr int kPosts = 1000;
  EndOptions options;
  options.max_sends = options.max_receives = kPosts;
  options.max_segments = 1;
  End& end = NewEnd(a(), options);
  std::atomic<bool> done{false};
  std::atomic<int> changes{0};
  std::thread poster([&] {
    for (int i = 0; i < kPosts; ++i) {
      while (changes <= i / 10) sched_yield();  // otherwise it is soon done
      EXPECT_EQ(end.Receive(i, 0, 8), PostResult::kOk);
      EXPECT_EQ(end.Send(i, 0, 8), PostResult::kOk);
    }
    done = true;
  });
  QueuePairOptions options_now = end.pair_options();
  while (!done.load(std::memory_order_relaxed)) {
    options_now.max_send_segments = options_now.max_receive_segments =
        std::min(options_now.max_send_segments + 1, 4u);
    EXPECT_TRUE(end.pair().Modify(options_now).ok());
    ++changes;
  }
  poster.join();
  for (int i = 0; i < kPosts; ++i) Expect(end.sends(), i, Status::kFlushed);
  EXPECT_EQ(end.pair().open_receives(), static_cast<uint32_t>(kPosts));
}

}  // namespace
}  // namespace viaduct::verbs
