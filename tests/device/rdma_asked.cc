// What verbs/rdma asks an RDMA device for, seen at the device without a wire (tests/rdma_mock).
#include <pthread.h>

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/rdma_mock/asked.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/mishaps.h"

namespace viaduct::verbs {
namespace {

using AskedTest = DeviceTest;

TEST_F(AskedTest, ARegionHasTheAccessAskedForAndNoMore) {
  constexpr struct {
    uint32_t access;
    uint32_t asked;
  } kRows[] = {
      {kLocalRead, 0},
      {kLocalRead | kLocalWrite, kLocalWrite},
      {kLocalRead | kRemoteRead, kRemoteRead},
      // A device requires the local right together with the remote one.
      {kLocalRead | kRemoteWrite, kLocalWrite | kRemoteWrite},
      {kAllAccess, kLocalWrite | kRemoteRead | kRemoteWrite},
  };
  End& end = NewEnd(a());
  Bytes memory = Pattern(100, 1);
  for (const auto& row : kRows) {
    auto region = a().Register(end.domain(), memory.data(), memory.size(), row.access);
    ASSERT_TRUE(region.ok()) << region.status();
    EXPECT_EQ(rdma_mock::AskedAccess(), row.asked) << row.access;
  }
}

TEST_F(AskedTest, APairIsOpenedToWhatItsPeerMayDo) {
  EndOptions reads;
  reads.remote_access = kRemoteRead;
  End& from = NewEnd(a(), reads);
  End& to = NewEnd(b(), reads);
  Connect(from, to);
  EXPECT_EQ(rdma_mock::AskedPeerAccess(), uint32_t{kLocalWrite | kRemoteRead});
}

// On iWARP there are no retries.
TEST_F(AskedTest, APeerThatFoundNoReceiveAsksAgainSoon) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  constexpr int kUnderAMillisecond = 12;  // InfiniBand 1.4, table 45
  EXPECT_EQ(rdma_mock::AskedDelay(), a().attributes().immediate_data ? kUnderAMillisecond : 0);
}

// On InfiniBand the device confirms by itself. siw does not answer a read of no bytes as it should,
// so there the read is of the peer's confirmation word.
TEST_F(AskedTest, AConfirmationIsAReadOfThePeersWord) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const std::optional<ConfirmationWord> word = to.pair().confirmation_word();
  EXPECT_EQ(word.has_value(), rdma_mock::IsSiw());
  from.pair().ConfirmBy(word);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(1, 0, 8, kConfirm), PostResult::kOk);
  Expect(from.sends(), 1);
  Expect(to.receives(), 1);
  EXPECT_EQ(rdma_mock::AskedRead(), !rdma_mock::IsIwarp() ? -1 : word.has_value() ? 8 : 0);
  // libcxgb4 has a key for a read without a sink, but not for a sink of no bytes; libsiw wants one.
  EXPECT_EQ(rdma_mock::AskedReadSegments(), !rdma_mock::IsIwarp() ? -1 : word.has_value() ? 1 : 0);
}

// To siw, a program's read of no bytes is no different.
TEST_F(AskedTest, AReadOfNoBytesIsOneOfThePeersWord) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const std::optional<ConfirmationWord> word = to.pair().confirmation_word();
  from.pair().ConfirmBy(word);
  SendRequest read;
  read.id = 1;
  read.opcode = Opcode::kRead;
  read.remote_address = to.Address(0);
  read.remote_key = to.region().key();
  ASSERT_EQ(from.pair().PostSend(read), PostResult::kOk);
  const Completion done = Expect(from.sends(), 1);
  EXPECT_EQ(done.length, 0u);
  EXPECT_EQ(rdma_mock::AskedRead(), word.has_value() ? 8 : 0);
}

// iWARP hardware requires the sink of a read to be open to the peer, which the region need not be.
TEST_F(AskedTest, AReadEndsInMemoryThatThePeerMayNotWrite) {
  EndOptions closed;
  closed.region_access = kLocalRead | kLocalWrite;
  End& from = NewEnd(a(), closed);
  End& to = NewEnd(b());
  Connect(from, to);
  to.Put(0, Pattern(64, 1));
  for (uint64_t id = 1; id <= 2; ++id) {
    from.Put(0, Bytes(64, 0));
    ASSERT_EQ(from.Read(id, 0, 64, to, 0), PostResult::kOk);
    Expect(from.sends(), id);
    EXPECT_EQ(from.Get(0, 64), Pattern(64, 1));
    // In the second round the region's registrations are new.
    ASSERT_TRUE(from.region().Modify(from.domain(), closed.region_access).ok());
  }
}

// A connect request carries the extensions that the pair offers; the accept, those that were taken.
TEST_F(AskedTest, ExtensionsOfAProviderAreAgreedOn) {
  const uint32_t all = rdma_mock::IsMlx5() ? rdma_mock::kExtensions : 0;
  const struct {
    uint32_t vendor, options, agreed;
  } kRows[] = {
      {0, 0, all},  // as it was offered
      {rdma_mock::kExtensionVendor, 13, all & 13},
      {rdma_mock::kExtensionVendor + 1, rdma_mock::kExtensions, 0},
  };
  for (const auto& row : kRows) {
    rdma_mock::SpeakOfExtensions(row.vendor, row.options);
    Connect(NewEnd(a()), NewEnd(b()));
    rdma_mock::SpeakOfExtensions(0, 0);
    EXPECT_EQ(rdma_mock::AskedExtensions(), all);
    EXPECT_EQ(rdma_mock::AskedAgreedExtensions(), row.agreed) << row.vendor << " " << row.options;
    EXPECT_EQ(rdma_mock::AskedUsedExtensions(), row.agreed) << row.vendor << " " << row.options;
  }
}

// If its adapter has no extensions, libmlx5 says so and takes none.
TEST_F(AskedTest, ExtensionsThatALibraryDoesNotTakeAreNone) {
  rdma_mock::TakeNoExtensions(true);
  for (uint32_t spoken : {uint32_t{0}, rdma_mock::kExtensionVendor}) {
    rdma_mock::SpeakOfExtensions(spoken, rdma_mock::kExtensions);
    Connect(NewEnd(a()), NewEnd(b()));
    EXPECT_EQ(rdma_mock::AskedUsedExtensions(), 0u);
  }
  rdma_mock::EndMishaps();
}

// The dialling pair is made before the path to the peer, with its partition, is agreed on.
// An adapter may have an InfiniBand port beside an Ethernet port, which has no partitions.
TEST_F(AskedTest, APairHasThePartitionOfItsConnection) {
  const int of_ethernet = rdma_mock::IsIwarp() ? -1 : 0;
  for (const int port : {1, 2}) {
    rdma_mock::UseSecondPort(port == 2);
    Connect(NewEnd(a()), NewEnd(b()));
    EXPECT_EQ(rdma_mock::AskedPartition(),
              rdma_mock::IsInfiniband(port) ? rdma_mock::kAgreedPartition : of_ethernet)
        << port;
  }
  rdma_mock::EndMishaps();
}

// The acceptor answers as many reads at a time as the requester issues, and no more.
TEST_F(AskedTest, ReadDepthsAreNotCrossed) {
  EndOptions few;
  few.max_reads_out = 1;
  End& from = NewEnd(a(), few);
  End& to = NewEnd(b());
  Connect(from, to);
  EXPECT_EQ(rdma_mock::AskedReadsIn(), 1);
  EXPECT_GT(rdma_mock::AskedReadsOut(), 1);
  EXPECT_FALSE(rdma_mock::AskedCrossedReads());
}

// libsiw does not look where verbs has the key.
TEST_F(AskedTest, ASendNamesTheWindowThatItEnds) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  const Segment segment = from.At(0, 8);
  SendRequest request;
  request.opcode = Opcode::kSendInvalidate;
  request.segments = absl::MakeConstSpan(&segment, 1);
  request.remote_key = 0x123456;
  ASSERT_EQ(from.pair().PostSend(request), PostResult::kOk);
  EXPECT_EQ(rdma_mock::AskedInvalidated(), 0x123456u);
}

// siw gives a pair as many as the acceptor says, and with none no read would pass.
TEST_F(AskedTest, ReadDepthsThatAreNotTold) {
  rdma_mock::TellNoReads(true);
  Connect(NewEnd(a()), NewEnd(b()));
  rdma_mock::EndMishaps();
  if (rdma_mock::IsSiw()) {
    EXPECT_GT(rdma_mock::AskedReadsIn(), 1);
    EXPECT_EQ(rdma_mock::AskedReadsOut(), 1);
  } else {
    EXPECT_EQ(rdma_mock::AskedReadsIn(), 0);
    EXPECT_EQ(rdma_mock::AskedReadsOut(), 0);
  }
}

// Each change is a command to the hardware. On InfiniBand the pair enters each of its three states
// with one change, which also sets what the peer may do. On iWARP the driver changes states itself.
TEST_F(AskedTest, APairIsChangedOnceForEachState) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  const int before = rdma_mock::AskedChanges();
  Connect(from, to);
  EXPECT_EQ(rdma_mock::AskedChanges() - before, rdma_mock::IsIwarp() ? 2 * 2 : 2 * 3);
}

// Older libraries of irdma send only the first segment.
TEST_F(AskedTest, OneSegmentAtMostGoesInline) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const Segment two[] = {from.At(0, 4), from.At(100, 4)};
  ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
  ASSERT_EQ(from.Send(1, two), PostResult::kOk);
  Expect(from.sends(), 1);
  EXPECT_EQ(Expect(to.receives(), 1).length, 8u);
  EXPECT_LE(rdma_mock::AskedInlineSegments(), 1);
}

// The request may send what the fence waits for, but inline bytes are taken when it is posted.
TEST_F(AskedTest, WhatWaitsForAFenceDoesNotGoInline) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (int id : {1, 2}) ASSERT_EQ(to.Receive(id, 0, 64), PostResult::kOk);
  ASSERT_EQ(from.Send(1, 0, 8), PostResult::kOk);
  Expect(from.sends(), 1);
  const uint64_t before = rdma_mock::AskedInlineAddress();
  if (!rdma_mock::IsSiw()) {
    EXPECT_EQ(before, from.Address(0)) << "it goes inline: else this proves nothing";
  }
  ASSERT_EQ(from.Send(2, 100, 8, kFence), PostResult::kOk);
  ASSERT_EQ(from.Write(3, 200, 8, to, 100, kFence), PostResult::kOk);
  for (int id : {2, 3}) Expect(from.sends(), id);
  for (int id : {1, 2}) Expect(to.receives(), id);
  EXPECT_EQ(rdma_mock::AskedInlineAddress(), before);
}

TEST_F(AskedTest, AFenceOfABindIsTheDevices) {
  if (rdma_mock::IsIwarp()) GTEST_SKIP() << "windows are registrations";
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  for (const WindowScope scope : {WindowScope::kQueuePair, WindowScope::kDomain}) {
    auto window = a().CreateWindow(end.domain(), scope);
    ASSERT_TRUE(window.ok()) << window.status();
    for (const bool fenced : {true, false}) {
      BindRequest bind;
      bind.id = 1;
      bind.window = window->get();
      bind.region = end.region().key();
      bind.address = end.Address(0);
      bind.length = 64;
      bind.access = kRemoteRead;
      bind.flags = fenced ? kFence : 0;
      Key key = 0;
      ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
      Expect(end.sends(), 1);
      EXPECT_EQ(rdma_mock::AskedFencedBind(), fenced);
    }
  }
}

// Each receive completes only once, whichever pair takes it.
TEST_F(AskedTest, ReceivesOfASharedQueueHaveRoomOnceForAllPairs) {
  auto domain = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok()) << domain.status();
  SharedReceiveOptions shared;
  shared.domain = domain->get();
  shared.max_receives = 1000;
  auto receives = b().CreateSharedReceiveQueue(shared);
  ASSERT_TRUE(receives.ok()) << receives.status();
  Inbox inbox_of_a(a());
  Inbox inbox_of_b(b());
  EndOptions small;
  small.max_sends = small.max_receives = 1;
  small.shared_inbox = &inbox_of_a;
  EndOptions sharing = small;
  sharing.shared_inbox = &inbox_of_b;
  sharing.domain = domain->get();
  sharing.shared_receives = receives->get();
  Connect(NewEnd(a(), small), NewEnd(b(), sharing));
  const int with_one_pair = rdma_mock::AskedCompletionQueues();
  for (int i = 0; i < 20; ++i) Connect(NewEnd(a(), small), NewEnd(b(), sharing));
  EXPECT_EQ(rdma_mock::AskedCompletionQueues(), with_one_pair);
  DestroyEnds();
}

// Some libraries read the first segment even if the request has none.
TEST_F(AskedTest, AnEmptyWriteBringsNoSegmentOfTheRequestBefore) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const Segment two[] = {from.At(0, 4000), from.At(5000, 4000)};
  SendRequest write;
  write.id = 1;
  write.opcode = Opcode::kWrite;
  write.remote_address = to.Address(0);
  write.remote_key = to.region().key();
  write.segments = two;
  ASSERT_EQ(from.pair().PostSend(write), PostResult::kOk);
  Expect(from.sends(), 1);
  write.segments = {};
  ASSERT_EQ(from.pair().PostSend(write), PostResult::kOk);
  Expect(from.sends(), 1);
  EXPECT_FALSE(rdma_mock::AskedStaleSegment());
}

class CancelledTest : public AskedTest {
 protected:
  ~CancelledTest() override { rdma_mock::EndMishaps(); }

  // Calls `post` in a thread that was cancelled before.
  static void ExpectPosted(const std::function<PostResult()>& post) {
    std::atomic<bool> posted{false};
    std::thread poster([&] {
      pthread_cancel(pthread_self());
      EXPECT_EQ(post(), PostResult::kOk);
      posted = true;
      pthread_testcancel();
    });
    poster.join();
    ASSERT_TRUE(posted);
  }
};

// libsiw and librxe reach a cancellation point with a lock held.
TEST_F(CancelledTest, AThreadEndsBehindItsPost) {
  if (!rdma_mock::IsSiw()) {
    GTEST_SKIP() << "the library of this device makes no system call";
  }
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
  ASSERT_NO_FATAL_FAILURE(ExpectPosted([&] { return from.Send(1, 0, 8); }));
  Expect(from.sends(), 1);
  Expect(to.receives(), 1);
}

// The post registers memory of our own.
TEST_F(CancelledTest, AThreadEndsBehindItsPostOfManySegments) {
  constexpr uint32_t kSegments = 40;  // more than the device takes
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b(), many);
  Connect(from, to);
  std::vector<Segment> sent;
  std::vector<Segment> received;
  for (uint32_t i = 0; i < kSegments; ++i) {
    sent.push_back(from.At(16 * i, 8));
    received.push_back(to.At(16 * i, 8));
  }
  ASSERT_NO_FATAL_FAILURE(ExpectPosted([&] { return to.Receive(1, received); }));
  ASSERT_NO_FATAL_FAILURE(ExpectPosted([&] { return from.Send(1, sent); }));
  Expect(from.sends(), 1);
  Expect(to.receives(), 1);
}

// The post registers the memory once more.
TEST_F(CancelledTest, AThreadEndsBehindItsPostOfAnotherDomainsMemory) {
  EndOptions wild;
  wild.wildcard = true;
  End& other = NewEnd(a());
  End& from = NewEnd(a(), wild);
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_EQ(to.Receive(1, 0, 64), PostResult::kOk);
  const Segment segment = other.At(0, 8);
  ASSERT_NO_FATAL_FAILURE(ExpectPosted([&] { return from.Send(1, {&segment, 1}); }));
  Expect(from.sends(), 1);
  Expect(to.receives(), 1);
}

// On iWARP the post asks for the state of the pair.
TEST_F(CancelledTest, AThreadEndsBehindAPostThatTheDeviceRefuses) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::RefuseSendsAfter(0);
  ASSERT_NO_FATAL_FAILURE(ExpectPosted([&] { return from.Send(1, 0, 8); }));
  Expect(from.sends(), 1, Status::kTransport);
}

}  // namespace
}  // namespace viaduct::verbs
