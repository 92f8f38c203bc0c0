// What is refused, which side sees the error, and what breaks.
#include <algorithm>
#include <memory>
#include <vector>

#include "tests/conformance/harness/short_file.h"
#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

class ErrorTest : public DeviceTest {
 protected:
  // A further region over the end's buffer.
  std::unique_ptr<MemoryRegion> Region(End& end, ProtectionDomain& domain, uint32_t access,
                                       size_t offset = 0, size_t length = 0) {
    if (length == 0) length = end.memory().size() - offset;
    auto region = end.context().Register(domain, end.memory().data() + offset, length, access);
    EXPECT_TRUE(region.ok()) << region.status();
    return *std::move(region);
  }
  std::unique_ptr<ProtectionDomain> Domain(Context& context, bool wildcard = false) {
    auto domain = context.CreateDomain(wildcard);
    EXPECT_TRUE(domain.ok()) << domain.status();
    return *std::move(domain);
  }
};

// ------------------------------------------------------------------------- the sender's memory

TEST_F(ErrorTest, WrongLocalMemoryOfASend) {
  End& other = NewEnd(a());
  std::unique_ptr<MemoryRegion> write_only, foreign, gone;
  for (int what = 0; what < 6; ++what) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    Connect(from, to);
    ASSERT_EQ(to.Receive(9, 0, 8192), PostResult::kOk);
    write_only = Region(from, from.domain(), kLocalWrite);
    foreign = Region(from, other.domain(), kAllAccess);
    gone = Region(from, from.domain(), kAllAccess);
    Segment segment = from.At(0, 100);
    switch (what) {
      case 0:
        segment.key = 0;
        break;
      case 1:
        segment.key ^= 0x00550000;
        break;
      case 2:
        segment.address += from.memory().size() - 99;
        break;
      case 3:
        segment.key = write_only->key();
        break;
      case 4:
        segment.key = foreign->key();
        break;
      case 5:
        segment.key = gone->key();
        gone.reset();
        break;
    }
    ASSERT_EQ(from.Send(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk) << what;
    EXPECT_EQ(Expect(from.sends(), 1, Status::kLocalProtection).opcode, Opcode::kSend) << what;
    ExpectBroken(from);
    ExpectBroken(to);
    Expect(to.receives(), 9, Status::kFlushed);
  }
}

TEST_F(ErrorTest, WrongLocalMemoryActsWithoutAPoll) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Forget(from);
  Segment segment = from.At(0, 100);
  segment.key = 0;
  ASSERT_EQ(from.Send(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  EXPECT_TRUE(from.pair().Ended());
  ExpectBroken(from);
  ExpectBroken(to);
}

TEST_F(ErrorTest, EverySegmentIsChecked) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(9, 0, 8192), PostResult::kOk);
  std::vector<Segment> segments(3, from.At(0, 100));
  segments[2].key ^= 0x00550000;
  ASSERT_EQ(from.Send(1, segments), PostResult::kOk);
  Expect(from.sends(), 1, Status::kLocalProtection);
}

TEST_F(ErrorTest, TheTargetMemoryOfAReadNeedsLocalWrite) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  std::unique_ptr<MemoryRegion> read_only = Region(from, from.domain(), kLocalRead);
  const Bytes before = from.memory();
  Segment segment = from.At(0, 100);
  segment.key = read_only->key();
  to.Put(0, Pattern(100, 1));
  ASSERT_EQ(from.ReadInto(segment, 1, to, 0), PostResult::kOk);
  Expect(from.sends(), 1, Status::kLocalProtection);
  EXPECT_TRUE(from.memory() == before);
}

TEST_F(ErrorTest, AWildcardDomainMatchesEveryRegion) {
  EndOptions options;
  options.wildcard = true;
  End& from = NewEnd(a(), options);  // a pair of a wildcard domain
  End& to = NewEnd(b());
  std::unique_ptr<ProtectionDomain> named = Domain(a());
  std::unique_ptr<ProtectionDomain> wildcard = Domain(b(), true);
  std::unique_ptr<MemoryRegion> source = Region(from, *named, kAllAccess);
  std::unique_ptr<MemoryRegion> target = Region(to, *wildcard, kAllAccess);  // and a region
  Connect(from, to);
  from.Put(0, Pattern(100, 1));
  Segment out = from.At(0, 100), in = to.At(500, 100);
  out.key = source->key();
  in.key = target->key();
  ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&in, 1)), PostResult::kOk);
  ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&out, 1)), PostResult::kOk);
  Expect(to.receives(), 1);
  Expect(from.sends(), 2);
  EXPECT_EQ(to.Get(500, 100), Pattern(100, 1));
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 3, 100, to.Address(0), target->key()), PostResult::kOk);
  Expect(from.sends(), 3);
}

TEST_F(ErrorTest, TheSameBytesMayBeRegisteredSeveralTimes) {
  End& end = NewEnd(a());
  std::unique_ptr<MemoryRegion> first = Region(end, end.domain(), kAllAccess);
  std::unique_ptr<MemoryRegion> second = Region(end, end.domain(), kLocalRead);
  for (MemoryRegion* region : {first.get(), second.get()}) {
    EXPECT_GE(region->key(), 1u);
    EXPECT_LE(region->key(), 0x7fffffffu);
    EXPECT_NE(region->key(), end.region().key());
  }
  EXPECT_NE(first->key(), second->key());
}

// A region cannot allow writes where a write by the process itself would fault.
TEST_F(ErrorTest, MemoryThatCannotBeWrittenIsOnlyRead) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const ReadOnlyPage page;
  const auto try_with = [&](uint32_t access) {
    return a().Register(from.domain(), page.data(), page.size(), access);
  };
  for (const uint32_t access : {uint32_t{kLocalWrite}, kLocalRead | kRemoteWrite, kAllAccess}) {
    EXPECT_TRUE(absl::IsInvalidArgument(try_with(access).status())) << access;
  }
  auto region = try_with(kLocalRead | kRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_TRUE(absl::IsInvalidArgument((*region)->Modify(from.domain(), kAllAccess)));
  const Segment segment = {reinterpret_cast<uint64_t>(page.data()), (*region)->key(), 100};
  ASSERT_EQ(to.Receive(1, 0, 100), PostResult::kOk);
  ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);
  EXPECT_EQ(to.Get(0, 100), Bytes(100, 0));
}

TEST_F(ErrorTest, MemoryBehindTheEndOfItsFileIsNone) {
  const tests::ShortFile file;
  if (!file.IsTold()) GTEST_SKIP() << "this kernel does not tell";
  const std::unique_ptr<ProtectionDomain> domain = Domain(a());
  for (const uint32_t access : {uint32_t{kLocalRead}, kAllAccess}) {
    EXPECT_TRUE(a().Register(*domain, file.data(), file.page(), access).ok());
    const auto beyond = a().Register(*domain, file.data(), 2 * file.page(), access);
    EXPECT_TRUE(absl::IsInvalidArgument(beyond.status())) << beyond.status();
  }
}

// ------------------------------------------------------------------------ the receiver's memory

TEST_F(ErrorTest, WrongMemoryOfAReceive) {
  enum class Wrong { kReadOnly, kOutside, kAcrossTheEnd };
  for (size_t size : {8, 5000}) {
    for (Wrong wrong : {Wrong::kReadOnly, Wrong::kOutside, Wrong::kAcrossTheEnd}) {
      End& from = NewEnd(a());
      End& to = NewEnd(b());
      std::unique_ptr<MemoryRegion> read_only = Region(to, to.domain(), kLocalRead);
      Connect(from, to);
      Segment segment = to.At(0, size);
      if (wrong == Wrong::kReadOnly) {
        segment.key = read_only->key();
      } else {
        segment.address += to.memory().size() - (wrong == Wrong::kOutside ? 0 : size / 2);
      }
      const Bytes before = to.memory();
      ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
      from.Put(0, Pattern(size, 1));
      ASSERT_EQ(from.Send(2, 0, size, kConfirm), PostResult::kOk);
      Expect(to.receives(), 1, Status::kLocalProtection);
      Expect(from.sends(), 2, Status::kRemoteOperation);
      ExpectBroken(from);
      ExpectBroken(to);
      // A device may find the end after the first packets.
      if (wrong != Wrong::kAcrossTheEnd) {
        EXPECT_TRUE(to.memory() == before);
      }
    }
  }
}

TEST_F(ErrorTest, AMessageThatIsTooLongBreaks) {
  for (NoReceive no_receive : {NoReceive::kHold, NoReceive::kBreak}) {
    for (size_t size : {9, 57, 5000, 60000}) {
      EndOptions options;
      options.no_receive = no_receive;
      End& from = NewEnd(a(), options);
      End& to = NewEnd(b(), options);
      Connect(from, to);
      ASSERT_EQ(to.Receive(1, 0, size - 1), PostResult::kOk);
      ASSERT_EQ(to.Receive(2, 0, 60000), PostResult::kOk);
      ASSERT_EQ(from.Send(3, 0, size, kConfirm), PostResult::kOk);
      Expect(to.receives(), 1, Status::kLocalLength);
      Expect(to.receives(), 2, Status::kFlushed);
      Expect(from.sends(), 3, Status::kRemoteOperation);
      ExpectBroken(from);
      ExpectBroken(to);
    }
  }
}

// ------------------------------------------------------------------------------- no receive

TEST_F(ErrorTest, NoReceiveBreaks) {
  for (size_t size : {0, 8, 5000, 60000}) {
    EndOptions options;
    options.no_receive = NoReceive::kBreak;
    End& from = NewEnd(a(), options);
    End& to = NewEnd(b(), options);
    Connect(from, to);
    ASSERT_EQ(from.Send(1, 0, size, kConfirm), PostResult::kOk);
    ASSERT_EQ(from.Send(2, 0, 8, kConfirm), PostResult::kOk);
    Expect(from.sends(), 1, Status::kReceiverNotReady);
    Expect(from.sends(), 2, Status::kFlushed);
    ExpectBroken(from);
    ExpectBroken(to);
  }
}

TEST_F(ErrorTest, TheVerdictBelongsToTheOldestUnconfirmed) {
  EndOptions options;
  options.no_receive = NoReceive::kBreak;
  End& from = NewEnd(a(), options);
  End& to = NewEnd(b(), options);
  Connect(from, to);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(to.Receive(i, 0, 8), PostResult::kOk);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(from.Send(i, 0, 8, kConfirm), PostResult::kOk);
  for (int i = 0; i < 3; ++i) Expect(from.sends(), i);
  Expect(from.sends(), 3, Status::kReceiverNotReady);
  for (int i = 4; i < 6; ++i) Expect(from.sends(), i, Status::kFlushed);
  for (int i = 0; i < 3; ++i) Expect(to.receives(), i);
}

// --------------------------------------------------------------------------- the peer's memory

TEST_F(ErrorTest, WrongRemoteMemory) {
  for (Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
    for (int what = 0; what < 8; ++what) {
      EndOptions options;
      if (what == 6) options.remote_access = 0;
      End& from = NewEnd(a());
      End& to = NewEnd(b(), options);
      std::unique_ptr<ProtectionDomain> other = Domain(b());
      std::unique_ptr<MemoryRegion> local_only = Region(to, to.domain(), kLocalRead | kLocalWrite);
      std::unique_ptr<MemoryRegion> opposite =
          Region(to, to.domain(),
                 opcode == Opcode::kWrite ? kAllAccess - kRemoteWrite : kAllAccess - kRemoteRead);
      std::unique_ptr<MemoryRegion> foreign = Region(to, *other, kAllAccess);
      std::unique_ptr<MemoryRegion> gone = Region(to, to.domain(), kAllAccess);
      Connect(from, to);
      Key key = to.region().key();
      uint64_t address = to.Address(0);
      switch (what) {
        case 0:
          key ^= 0x00550000;
          break;
        case 1:
          address += to.memory().size() - 99;
          break;
        case 2:
          address -= 1;
          break;
        case 3:
          key = local_only->key();
          break;
        case 4:
          key = opposite->key();
          break;
        case 5:
          key = foreign->key();
          break;
        case 6:
          break;  // the pair allows no remote access
        case 7:
          key = gone->key();
          gone.reset();
          break;
      }
      const Bytes before = to.memory();
      from.Put(0, Pattern(100, 1));
      ASSERT_EQ(from.PostTo(opcode, 1, 100, address, key), PostResult::kOk);
      ASSERT_EQ(from.Send(2, 0, 8, kConfirm), PostResult::kOk);
      EXPECT_EQ(Expect(from.sends(), 1, Status::kRemoteAccess).opcode, opcode) << what;
      Expect(from.sends(), 2, Status::kFlushed);
      EXPECT_EQ(AwaitEvent(to).kind,
                opcode == Opcode::kWrite ? Event::kRefusedWrite : Event::kRefusedRead)
          << what;
      ExpectBroken(to);
      ExpectBroken(from);
      EXPECT_TRUE(to.memory() == before) << what;
    }
  }
}

TEST_F(ErrorTest, ZeroBytesTouchNoMemory) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 0, 12345, 678), PostResult::kOk);
  ASSERT_EQ(from.PostTo(Opcode::kRead, 2, 0, 12345, 678, 0), PostResult::kOk);
  Expect(from.sends(), 1);
  Expect(from.sends(), 2);
}

TEST_F(ErrorTest, ModifyChangesWhatPostedRequestsMeet) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 100, to.Address(0), to.region().key()), PostResult::kOk);
  Expect(from.sends(), 1);
  ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
  ASSERT_TRUE(to.region().Modify(to.domain(), kLocalRead | kRemoteRead).ok());
  ASSERT_EQ(from.PostTo(Opcode::kRead, 3, 100, to.Address(0), to.region().key()), PostResult::kOk);
  Expect(from.sends(), 3);
  ASSERT_EQ(from.Send(4, 0, 8, kConfirm), PostResult::kOk);
  Expect(to.receives(), 2, Status::kLocalProtection);
  Expect(from.sends(), 4, Status::kRemoteOperation);
}

TEST_F(ErrorTest, ThePairsRightsMayBeModifiedInIdle) {
  EndOptions options;
  options.remote_access = 0;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), options);
  QueuePairOptions more = to.pair_options();
  more.remote_access = kRemoteWrite;
  more.no_receive = NoReceive::kDrop;
  ASSERT_TRUE(to.pair().Modify(more).ok());
  Connect(from, to);
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 100, to.Address(0), to.region().key()), PostResult::kOk);
  Expect(from.sends(), 1);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  EXPECT_EQ(AwaitEvent(to).kind, Event::kDropped);
}

TEST_F(ErrorTest, NothingLandsAfterDeregistration) {
  constexpr size_t kPiece = 60000;
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  from.Put(0, Bytes(kPiece, 0x55));
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(from.PostTo(Opcode::kWrite, i, kPiece, to.Address(0), to.region().key()),
              PostResult::kOk);
  }
  Expect(from.sends(), 0);
  to.DestroyRegion();
  const Bytes sentinel = Pattern(to.memory().size(), 4);
  to.memory() = sentinel;
  // Each request succeeded before the region was gone, or was the first to fail after that, or was
  // flushed after that failure.
  Status last = Status::kSuccess;
  for (int i = 1; i < 40; ++i) {
    const Completion completion = Await(from.sends());
    EXPECT_EQ(completion.id, static_cast<uint64_t>(i));
    if (completion.status != last) {
      EXPECT_EQ(last == Status::kSuccess ? Status::kRemoteAccess : Status::kFlushed,
                completion.status);
      last = completion.status;
    }
  }
  Settle();
  EXPECT_TRUE(to.memory() == sentinel);
}

TEST_F(ErrorTest, AConnectionBreaksAloneOfSeveral) {
  End &from1 = NewEnd(a()), &from2 = NewEnd(a()), &to1 = NewEnd(b()), &to2 = NewEnd(b());
  Connect(from1, to1);
  Connect(from2, to2);
  ASSERT_EQ(from1.PostTo(Opcode::kRead, 1, 100, 4096, 77), PostResult::kOk);
  Expect(from1.sends(), 1, Status::kRemoteAccess);
  ExpectBroken(from1);
  ExpectBroken(to1);
  ASSERT_EQ(to2.Receive(2, 0, 8), PostResult::kOk);
  ASSERT_EQ(from2.Send(3, 0, 8), PostResult::kOk);
  Expect(to2.receives(), 2);
  EXPECT_EQ(from2.events().count() + to2.events().count(), 0u);
}

}  // namespace
}  // namespace viaduct::verbs
