// Memory windows: requests that make and end keys, invalidation by the peer, addresses from 0,
// reads into remote keys.
#include <memory>

#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kBoth = kRemoteRead | kRemoteWrite;

class WindowTest : public DeviceTest {
 protected:
  // `from` reaches into `to`, whose region allows no remote access by itself.
  void SetUp() override {
    EndOptions options;
    options.region_access = kLocalRead | kLocalWrite;
    from_ = &NewEnd(a());
    to_ = &NewEnd(b(), options);
    Connect(*from_, *to_);
  }
  std::unique_ptr<MemoryWindow> NewWindow(WindowScope scope) {
    auto window = b().CreateWindow(to_->domain(), scope);
    EXPECT_TRUE(window.ok()) << window.status();
    return *std::move(window);
  }
  // Binds and waits for the completion.
  Key Bind(MemoryWindow& window, size_t offset, size_t length, uint32_t access = kBoth,
           AddressBase base = AddressBase::kVirtual) {
    BindRequest request = to_->ToBind(77, window, offset, length, access);
    request.base = base;
    Key key = 0;
    EXPECT_EQ(to_->pair().PostBind(request, &key), PostResult::kOk);
    EXPECT_EQ(Expect(to_->sends(), 77).opcode, Opcode::kBind);
    return key;
  }
  void Refused(Opcode opcode, uint64_t address, Key key, size_t length = 8) {
    to_->Agree();
    ASSERT_EQ(from_->PostTo(opcode, 5, length, address, key), PostResult::kOk);
    Expect(from_->sends(), 5, Status::kRemoteAccess);
    ExpectBroken(*from_);
    ExpectBroken(*to_);
  }
  void Reached(Opcode opcode, uint64_t address, Key key, size_t length = 8) {
    to_->Agree();
    ASSERT_EQ(from_->PostTo(opcode, 5, length, address, key), PostResult::kOk);
    Expect(from_->sends(), 5);
  }

  End* from_;
  End* to_;
};

TEST_F(WindowTest, ABoundWindowOpensItsRangeOnly) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 100, 50);
  from_->Put(0, Pattern(50, 1));
  Reached(Opcode::kWrite, to_->Address(100), key, 50);
  EXPECT_EQ(to_->Get(100, 50), Pattern(50, 1));
  to_->Put(120, Pattern(10, 2));
  Reached(Opcode::kRead, to_->Address(120), key, 10);
  EXPECT_EQ(from_->Get(0, 10), Pattern(10, 2));
  Refused(Opcode::kWrite, to_->Address(120), key, 31);
}

TEST_F(WindowTest, RightsAreThoseOfTheBind) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64, kRemoteRead);
  Reached(Opcode::kRead, to_->Address(0), key);
  Refused(Opcode::kWrite, to_->Address(0), key);
}

TEST_F(WindowTest, EachBindHasAFreshKeyAndEndsTheOneBefore) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key first = Bind(*window, 0, 64);
  const Key second = Bind(*window, 64, 64);
  EXPECT_NE(first, second);
  Reached(Opcode::kWrite, to_->Address(64), second);
  Refused(Opcode::kWrite, to_->Address(0), first);
}

TEST_F(WindowTest, LengthZeroUnbinds) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64);
  EXPECT_EQ(Bind(*window, 0, 0), 0u);
  Refused(Opcode::kRead, to_->Address(0), key);
}

TEST_F(WindowTest, DestructionUnbinds) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64);
  window.reset();
  Refused(Opcode::kRead, to_->Address(0), key);
}

TEST_F(WindowTest, AWindowEndsWithItsRegion) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64);
  to_->DestroyRegion();
  Refused(Opcode::kRead, to_->Address(0), key);
}

TEST_F(WindowTest, WhatIsPostedAfterABindFindsIt) {
  auto window = NewWindow(WindowScope::kDomain);
  ASSERT_EQ(from_->Receive(1, 0, 8), PostResult::kOk);
  Key key = 0;
  ASSERT_EQ(to_->pair().PostBind(to_->ToBind(2, *window, 0, 64, kBoth), &key), PostResult::kOk);
  ASSERT_EQ(to_->Send(3, 512, 4), PostResult::kOk);
  Expect(from_->receives(), 1);
  Reached(Opcode::kWrite, to_->Address(0), key);
  Expect(to_->sends(), 2);
  Expect(to_->sends(), 3);
}

TEST_F(WindowTest, AWrongBindFailsInItsTurn) {
  auto window = NewWindow(WindowScope::kDomain);
  ASSERT_EQ(from_->Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(to_->Send(2, 0, 8), PostResult::kOk);
  Key key = 0;
  const size_t size = to_->memory().size();
  ASSERT_EQ(to_->pair().PostBind(to_->ToBind(3, *window, 1, size, kBoth), &key), PostResult::kOk);
  ASSERT_EQ(to_->Send(4, 0, 8), PostResult::kOk);
  Expect(to_->sends(), 2);
  Expect(to_->sends(), 3, Status::kLocalProtection);
  Expect(to_->sends(), 4, Status::kFlushed);
  ExpectBroken(*to_);
}

TEST_F(WindowTest, TheRegionMustAllowWhatTheWindowDoes) {
  auto region = b().Register(to_->domain(), to_->memory().data(), 64, kLocalRead);
  ASSERT_TRUE(region.ok());
  auto window = NewWindow(WindowScope::kDomain);
  BindRequest request = to_->ToBind(1, *window, 0, 64, kRemoteRead);
  request.region = (*region)->key();
  Key key = 0;
  ASSERT_EQ(to_->pair().PostBind(request, &key), PostResult::kOk);
  Expect(to_->sends(), 1);
  request.id = 2;
  request.access = kRemoteWrite;
  ASSERT_EQ(to_->pair().PostBind(request, &key), PostResult::kOk);
  Expect(to_->sends(), 2, Status::kLocalProtection);
}

TEST_F(WindowTest, AnotherDomainsRegionIsRefused) {
  auto domain = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok());
  {
    auto region = b().Register(**domain, to_->memory().data(), 64, kLocalRead | kLocalWrite);
    ASSERT_TRUE(region.ok());
    auto window = NewWindow(WindowScope::kDomain);
    BindRequest request = to_->ToBind(1, *window, 0, 64, kRemoteRead);
    request.region = (*region)->key();
    Key key = 0;
    ASSERT_EQ(to_->pair().PostBind(request, &key), PostResult::kOk);
    Expect(to_->sends(), 1, Status::kLocalProtection);
  }
}

TEST_F(WindowTest, AWindowOfAnotherDomainIsRefused) {
  auto domain = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok());
  auto window = b().CreateWindow(**domain, WindowScope::kDomain);
  ASSERT_TRUE(window.ok());
  Key key = 0;
  ASSERT_EQ(to_->pair().PostBind(to_->ToBind(1, **window, 0, 64, kRemoteRead), &key),
            PostResult::kOk);
  Expect(to_->sends(), 1, Status::kLocalProtection);
}

TEST_F(WindowTest, WithoutAConnectionABindIsFlushedAndChangesNothing) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64);
  EndOptions options;
  options.domain = &to_->domain();
  End& idle = NewEnd(b(), options);
  End& ended = NewEnd(b(), options);
  Connect(NewEnd(a()), ended);
  ended.pair().Disconnect(DisconnectMode::kAbrupt);
  for (End* const end : {&idle, &ended}) {
    for (const size_t length : {64, 0}) {
      Key untouched = 1234;
      ASSERT_EQ(end->pair().PostBind(to_->ToBind(1, *window, 64, length, kBoth), &untouched),
                PostResult::kOk);
      EXPECT_EQ(untouched, 1234u) << "of " << length << " bytes";
      Expect(end->sends(), 1, Status::kFlushed);
    }
  }
  Reached(Opcode::kWrite, to_->Address(0), key);
}

TEST_F(WindowTest, AnotherPairOfTheDomainMayUseAWindowOfTheDomain) {
  EndOptions options;
  options.domain = &to_->domain();
  End& other_from = NewEnd(a());
  End& other_to = NewEnd(b(), options);
  Connect(other_from, other_to);
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64);
  ASSERT_EQ(other_from.PostTo(Opcode::kWrite, 1, 8, to_->Address(0), key), PostResult::kOk);
  Expect(other_from.sends(), 1);
}

TEST_F(WindowTest, AWindowOfAPairIsForThatPair) {
  EndOptions options;
  options.domain = &to_->domain();
  End& other_from = NewEnd(a());
  End& other_to = NewEnd(b(), options);
  Connect(other_from, other_to);
  auto window = NewWindow(WindowScope::kQueuePair);
  const Key key = Bind(*window, 0, 64);
  Reached(Opcode::kWrite, to_->Address(0), key);
  Reached(Opcode::kRead, to_->Address(0), key);
  ASSERT_EQ(other_from.PostTo(Opcode::kWrite, 1, 8, to_->Address(0), key), PostResult::kOk);
  Expect(other_from.sends(), 1, Status::kRemoteAccess);
}

// Sends the first bytes and ends the peer's window.
PostResult PostInvalidate(End& from, uint64_t id, size_t size, Key key, uint16_t flags = 0) {
  const Segment segment = from.At(0, size);
  SendRequest request;
  request.id = id;
  request.opcode = Opcode::kSendInvalidate;
  request.flags = flags;
  request.segments = absl::MakeConstSpan(&segment, 1);
  request.remote_key = key;
  return from.pair().PostSend(request);
}

TEST_F(WindowTest, ASendThatWasToEndAWindowIsFlushedAsASend) {
  End& end = NewEnd(a());
  ASSERT_EQ(PostInvalidate(end, 1, 8, Key{12345}), PostResult::kOk);
  EXPECT_EQ(Expect(end.sends(), 1, Status::kFlushed).opcode, Opcode::kSend);
}

TEST_F(WindowTest, ASendEndsTheWindowOfThePair) {
  for (size_t size : {0, 8, 300, 100000}) {
    End& from = NewEnd(a(), {.memory = 200000});
    End& to = NewEnd(b(), {.memory = 200000});
    Connect(from, to);
    auto window = b().CreateWindow(to.domain(), WindowScope::kQueuePair);
    ASSERT_TRUE(window.ok());
    BindRequest bind;
    bind.window = window->get();
    bind.region = to.region().key();
    bind.address = to.Address(0);
    bind.length = 64;
    bind.access = kBoth;
    Key key = 0;
    ASSERT_EQ(to.pair().PostBind(bind, &key), PostResult::kOk);
    Expect(to.sends(), 0);
    ASSERT_EQ(to.Receive(1, 0, 200000), PostResult::kOk);
    ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk);
    from.Put(0, Pattern(size, 3));
    ASSERT_EQ(PostInvalidate(from, 9, size, key, kSolicited), PostResult::kOk);
    const Completion received = Expect(to.receives(), 1);
    EXPECT_EQ(received.opcode, Opcode::kReceiveInvalidate);
    EXPECT_EQ(received.immediate, key);
    EXPECT_EQ(received.length, size);
    EXPECT_TRUE(received.solicited);
    EXPECT_FALSE(received.has_immediate);
    EXPECT_TRUE(to.Get(0, size) == Pattern(size, 3));
    EXPECT_EQ(Expect(from.sends(), 9).opcode, Opcode::kSend);
    ASSERT_EQ(from.Send(10, 0, 8), PostResult::kOk);
    EXPECT_EQ(Expect(to.receives(), 2).opcode, Opcode::kReceive);
    Expect(from.sends(), 10);
    ASSERT_EQ(from.PostTo(Opcode::kWrite, 11, 8, to.Address(0), key), PostResult::kOk);
    Expect(from.sends(), 11, Status::kRemoteAccess);
  }
}

TEST_F(WindowTest, OnlyAWindowOfThePairCanBeEnded) {
  auto window = NewWindow(WindowScope::kDomain);
  for (const Key key : {Bind(*window, 0, 64), to_->region().key(), Key{12345}}) {
    End& from = NewEnd(a());
    EndOptions options;
    options.domain = &to_->domain();
    End& to = NewEnd(b(), options);
    Connect(from, to);
    ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
    ASSERT_EQ(PostInvalidate(from, 2, 8, key), PostResult::kOk);
    Expect(to.receives(), 1, Status::kFlushed);
    ExpectBroken(to);
    ExpectBroken(from);
  }
  // The window can still be bound.
  Reached(Opcode::kWrite, to_->Address(0), Bind(*window, 0, 64));
}

TEST_F(WindowTest, AddressesMayCountFromZero) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 1000, 50, kBoth, AddressBase::kZero);
  from_->Put(0, Pattern(50, 4));
  Reached(Opcode::kWrite, 0, key, 50);
  EXPECT_EQ(to_->Get(1000, 50), Pattern(50, 4));
  Reached(Opcode::kRead, 49, key, 1);
  Refused(Opcode::kRead, to_->Address(1000), key, 1);
}

TEST_F(WindowTest, ARegionMayCountFromZeroTowardsBothSides) {
  // The memory does not begin at a page boundary, as a device might require.
  constexpr size_t kPage = 4096;
  const size_t begin = 256 + (kPage - to_->Address(0) % kPage) % kPage;
  auto region = b().Register(to_->domain(), to_->memory().data() + begin, 1000,
                             kLocalRead | kLocalWrite | kBoth, AddressBase::kZero);
  ASSERT_TRUE(region.ok());
  const Key key = (*region)->key();
  from_->Put(0, Pattern(300, 4));
  const Segment segment = {100, key, 300};
  ASSERT_EQ(to_->Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  ASSERT_EQ(from_->Send(2, 0, 300), PostResult::kOk);
  Expect(to_->receives(), 1);
  Expect(from_->sends(), 2);
  EXPECT_EQ(to_->Get(begin + 100, 300), Pattern(300, 4));
  ASSERT_EQ(from_->Receive(3, 0, 300), PostResult::kOk);
  ASSERT_EQ(to_->Send(4, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  Expect(from_->receives(), 3);
  Expect(to_->sends(), 4);
  Reached(Opcode::kRead, 900, key, 100);
  // A bind to this region names addresses as the region counts them.
  auto window = NewWindow(WindowScope::kDomain);
  BindRequest request = to_->ToBind(6, *window, 0, 100, kRemoteRead);
  request.region = key;
  request.address = 900;
  Key bound = 0;
  ASSERT_EQ(to_->pair().PostBind(request, &bound), PostResult::kOk);
  Expect(to_->sends(), 6);
  Reached(Opcode::kRead, to_->Address(begin + 900), bound, 100);
  Refused(Opcode::kRead, 900, key, 101);
}

TEST_F(WindowTest, AReadMayGoToARemoteKey) {
  auto window = NewWindow(WindowScope::kDomain);
  const Key key = Bind(*window, 0, 64, kRemoteWrite);
  from_->Put(500, Pattern(64, 6));
  const Segment sink = {to_->Address(0), key, 64};
  SendRequest request;
  request.id = 1;
  request.opcode = Opcode::kRead;
  request.flags = kRemoteSink;
  request.segments = absl::MakeConstSpan(&sink, 1);
  request.remote_address = from_->Address(500);
  request.remote_key = from_->region().key();
  to_->Agree();
  ASSERT_EQ(to_->pair().PostSend(request), PostResult::kOk);
  EXPECT_EQ(Expect(to_->sends(), 1).length, 64u);
  EXPECT_EQ(to_->Get(0, 64), Pattern(64, 6));
  // As a local key it gives no access.
  request.id = 2;
  request.flags = 0;
  ASSERT_EQ(to_->pair().PostSend(request), PostResult::kOk);
  Expect(to_->sends(), 2, Status::kLocalProtection);
}

}  // namespace
}  // namespace viaduct::verbs
