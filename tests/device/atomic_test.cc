// Atomic operations: values, order, access rights.
#include <cstring>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kEverything =
    kLocalRead | kLocalWrite | kRemoteRead | kRemoteWrite | kRemoteAtomic;

class AtomicTest : public DeviceTest {
 protected:
  AtomicTest() {
    options_.region_access = kEverything;
    options_.remote_access = kRemoteRead | kRemoteWrite | kRemoteAtomic;
  }

  AtomicRequest Request(uint64_t id, Opcode opcode, const End& from, size_t result, const End& to,
                        size_t at, uint64_t compare_add, uint64_t swap = 0) {
    AtomicRequest request;
    request.id = id;
    request.opcode = opcode;
    request.compare_add = compare_add;
    request.swap = swap;
    request.result = from.At(result, 8);
    request.remote_address = to.Address(at);
    request.remote_key = const_cast<End&>(to).region().key();
    return request;
  }
  static uint64_t Word(const End& end, size_t at) {
    const Bytes bytes = end.Get(at, 8);
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    return word;
  }
  static void SetWord(End& end, size_t at, uint64_t word) {
    Bytes bytes(8);
    std::memcpy(bytes.data(), &word, sizeof word);
    end.Put(at, bytes);
  }
  void Post(End& end, const AtomicRequest& request) {
    end.Agree();
    ASSERT_EQ(end.pair().PostAtomic(request), PostResult::kOk);
  }
  // Opens that part of the end's buffer for atomics, and waits for the completion.
  Key BindFromZero(End& end, MemoryWindow& window, size_t offset, size_t length) {
    BindRequest bind;
    bind.id = 1;
    bind.window = &window;
    bind.region = end.region().key();
    bind.address = end.Address(offset);
    bind.length = length;
    bind.access = kRemoteAtomic;
    bind.base = AddressBase::kZero;
    Key key = 0;
    EXPECT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
    Expect(end.sends(), 1);
    return key;
  }

  EndOptions options_;
};

TEST_F(AtomicTest, FetchAndAdd) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  SetWord(to, 64, 41);
  Post(from, Request(1, Opcode::kFetchAndAdd, from, 0, to, 64, 5));
  const Completion done = Expect(from.sends(), 1);
  EXPECT_EQ(done.opcode, Opcode::kFetchAndAdd);
  EXPECT_EQ(done.length, 8u);
  EXPECT_EQ(Word(from, 0), 41u);
  EXPECT_EQ(Word(to, 64), 46u);
  Post(from, Request(2, Opcode::kFetchAndAdd, from, 8, to, 64, ~uint64_t{0}));
  Expect(from.sends(), 2);
  EXPECT_EQ(Word(from, 8), 46u);
  EXPECT_EQ(Word(to, 64), 45u);
}

TEST_F(AtomicTest, CompareAndSwap) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  constexpr uint64_t kOld = 0x0123456789abcdef;
  constexpr uint64_t kNew = 0xfedcba9876543210;
  SetWord(to, 8, kOld);
  Post(from, Request(1, Opcode::kCompareAndSwap, from, 0, to, 8, kOld + 1, 7));
  EXPECT_EQ(Expect(from.sends(), 1).opcode, Opcode::kCompareAndSwap);
  EXPECT_EQ(Word(from, 0), kOld);
  EXPECT_EQ(Word(to, 8), kOld);
  Post(from, Request(2, Opcode::kCompareAndSwap, from, 0, to, 8, kOld, kNew));
  Expect(from.sends(), 2);
  EXPECT_EQ(Word(from, 0), kOld);
  EXPECT_EQ(Word(to, 8), kNew);
}

TEST_F(AtomicTest, ReadsAndAtomicsKeepTheirOrder) {
  options_.max_reads_out = 2;
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  SetWord(to, 0, 0);
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) {
    Post(from, Request(2 * i, Opcode::kFetchAndAdd, from, 16 * i, to, 0, 1));
    ASSERT_EQ(from.Read(2 * i + 1, 16 * i + 8, 8, to, 0), PostResult::kOk);
  }
  for (int i = 0; i < 2 * kRounds; ++i) Expect(from.sends(), i);
  for (int i = 0; i < kRounds; ++i) {
    EXPECT_EQ(Word(from, 16 * i), static_cast<uint64_t>(i));
    EXPECT_EQ(Word(from, 16 * i + 8), static_cast<uint64_t>(i) + 1);
  }
}

TEST_F(AtomicTest, AFenceWaitsForAtomics) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  SetWord(to, 0, 99);
  ASSERT_EQ(to.Receive(1, 512, 8), PostResult::kOk);
  Post(from, Request(2, Opcode::kFetchAndAdd, from, 0, to, 0, 1));
  ASSERT_EQ(from.Send(3, 0, 8, kFence), PostResult::kOk);
  Expect(to.receives(), 1);
  EXPECT_EQ(Word(to, 512), 99u);
}

TEST_F(AtomicTest, AHeldMessageDoesNotHoldAtomics) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  ASSERT_EQ(from.Send(1, 0, 100), PostResult::kOk);  // finds no receive
  Settle();
  SetWord(from, 504, 3);
  Post(to, Request(2, Opcode::kFetchAndAdd, to, 0, from, 504, 1));
  Expect(to.sends(), 2);
  EXPECT_EQ(Word(to, 0), 3u);
}

TEST_F(AtomicTest, RefusedWithoutTheRight) {
  options_.region_access = kEverything & ~kRemoteAtomic;
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  SetWord(to, 0, 5);
  Post(from, Request(1, Opcode::kFetchAndAdd, from, 0, to, 0, 1));
  Expect(from.sends(), 1, Status::kRemoteAccess);
  ExpectBroken(from);
  ExpectBroken(to);
  EXPECT_EQ(Word(to, 0), 5u);
}

TEST_F(AtomicTest, RefusedByThePair) {
  End& from = NewEnd(a(), options_);
  options_.remote_access = kRemoteRead | kRemoteWrite;
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  Post(from, Request(1, Opcode::kFetchAndAdd, from, 0, to, 0, 1));
  Expect(from.sends(), 1, Status::kRemoteAccess);
  ExpectBroken(to);
}

TEST_F(AtomicTest, AnOddAddressIsRefused) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  Post(from, Request(1, Opcode::kFetchAndAdd, from, 0, to, 4, 1));
  Expect(from.sends(), 1, Status::kRemoteOperation);
  ExpectBroken(from);
  ExpectBroken(to);
}

// The access rights are checked before the alignment.
TEST_F(AtomicTest, AWrongKeyAtAnOddAddressIsRefusedForTheKey) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  AtomicRequest request = Request(1, Opcode::kFetchAndAdd, from, 0, to, 4, 1);
  request.remote_key ^= 0x00550000;
  Post(from, request);
  Expect(from.sends(), 1, Status::kRemoteAccess);
  ExpectBroken(from);
  ExpectBroken(to);
}

// What counts is the alignment of the memory, not of the address within the window.
TEST_F(AtomicTest, AnOddAddressInAWindowFromZeroIsRefused) {
  End& from = NewEnd(a(), options_);
  options_.region_access = kLocalRead | kLocalWrite;
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  auto window = b().CreateWindow(to.domain(), WindowScope::kQueuePair);
  ASSERT_TRUE(window.ok());
  AtomicRequest request = Request(2, Opcode::kFetchAndAdd, from, 0, to, 0, 7);
  request.remote_key = BindFromZero(to, **window, 68, 8);
  request.remote_address = 0;
  Post(from, request);
  Expect(from.sends(), 2, Status::kRemoteOperation);
  ExpectBroken(from);
  ExpectBroken(to);
}

TEST_F(AtomicTest, OutsideTheRegion) {
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  Post(from, Request(1, Opcode::kCompareAndSwap, from, 0, to, to.memory().size(), 0, 1));
  Expect(from.sends(), 1, Status::kRemoteAccess);
}

TEST_F(AtomicTest, TheResultNeedsEightBytesOfWritableMemory) {
  for (int i = 0; i < 2; ++i) {
    End& from = NewEnd(a(), options_);
    End& to = NewEnd(b(), options_);
    Connect(from, to);
    AtomicRequest request = Request(1, Opcode::kFetchAndAdd, from, 0, to, 0, 1);
    if (i == 0) request.result.length = 4;
    if (i == 1) request.result.key = 12345;
    ASSERT_EQ(to.Receive(9, 512, 8), PostResult::kOk);
    Post(from, request);
    ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
    Expect(from.sends(), 1, i == 0 ? Status::kLocalLength : Status::kLocalProtection);
    Expect(from.sends(), 2, Status::kFlushed);
    ExpectBroken(from);
  }
}

TEST_F(AtomicTest, WithoutAConnectionFlushed) {
  End& from = NewEnd(a(), options_);
  Post(from, Request(1, Opcode::kFetchAndAdd, from, 0, from, 64, 1));
  Expect(from.sends(), 1, Status::kFlushed);
}

TEST_F(AtomicTest, ThroughAWindow) {
  End& from = NewEnd(a(), options_);
  options_.region_access = kLocalRead | kLocalWrite;
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  auto window = b().CreateWindow(to.domain(), WindowScope::kQueuePair);
  ASSERT_TRUE(window.ok());
  const Key key = BindFromZero(to, **window, 64, 8);
  SetWord(to, 64, 10);
  AtomicRequest request = Request(2, Opcode::kFetchAndAdd, from, 0, to, 0, 7);
  request.remote_address = 0;
  request.remote_key = key;
  Post(from, request);
  Expect(from.sends(), 2);
  EXPECT_EQ(Word(to, 64), 17u);
}

TEST_F(AtomicTest, ManyPairsCountTogether) {
  End& to = NewEnd(b(), options_);
  constexpr int kPairs = 4;
  constexpr int kEach = 25;
  End* from[kPairs];
  EndOptions same = options_;
  same.domain = &to.domain();
  for (End*& end : from) {
    end = &NewEnd(a(), options_);
    Connect(*end, NewEnd(b(), same));
  }
  SetWord(to, 0, 0);
  for (int i = 0; i < kEach; ++i) {
    for (End* end : from) Post(*end, Request(i, Opcode::kFetchAndAdd, *end, 0, to, 0, 1));
  }
  for (int i = 0; i < kEach; ++i) {
    for (End* end : from) Expect(end->sends(), i);
  }
  EXPECT_EQ(Word(to, 0), static_cast<uint64_t>(kPairs * kEach));
}

// RFC 7306 on iWARP: no agreement is needed for the immediate data of a write.
TEST_F(AtomicTest, AWriteWithImmediateNeedsNoAgreement) {
  options_.memory = 300000;
  End& from = NewEnd(a(), options_);
  End& to = NewEnd(b(), options_);
  Connect(from, to);
  for (size_t size : {0, 8, 5000, 150000}) {
    ASSERT_EQ(from.Write(1, 0, size, to, 1000, kImmediate, 0xabcd), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
    if (size == 5000) Settle();  // held
    ASSERT_EQ(to.Receive(3, 0, 0), PostResult::kOk);
    ASSERT_EQ(to.Receive(4, 0, 64), PostResult::kOk);
    const Completion received = Expect(to.receives(), 3);
    EXPECT_EQ(received.opcode, Opcode::kReceiveWrite);
    EXPECT_TRUE(received.has_immediate);
    EXPECT_EQ(received.immediate, 0xabcdu);
    EXPECT_EQ(received.length, size);
    EXPECT_EQ(Expect(to.receives(), 4).opcode, Opcode::kReceive);
    Expect(from.sends(), 1);
    Expect(from.sends(), 2);
  }
}

}  // namespace
}  // namespace viaduct::verbs
