// What goes wrong with an RDMA device: its memory.
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/device/ends.h"
#include "tests/device/rdma_mishaps.h"
#include "tests/rdma_mock/asked.h"
#include "tests/rdma_mock/failing_calls.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/mishaps.h"
#include "verbs/base/busy_control_thread.h"

namespace viaduct::verbs {
namespace {

// A bind that opens `length` bytes of a region, from `memory` on, to reads by the peer.
BindRequest BindOf(uint64_t id, MemoryWindow& window, const MemoryRegion& region,
                   const void* memory, uint64_t length) {
  BindRequest bind;
  bind.id = id;
  bind.window = &window;
  bind.region = region.key();
  bind.address = reinterpret_cast<uint64_t>(memory);
  bind.length = length;
  bind.access = kRemoteRead;
  return bind;
}

// Memory of a wildcard domain.
class WildcardMemory {
 public:
  explicit WildcardMemory(Context& context)
      : domain_(*context.CreateDomain(/*wildcard=*/true)),
        region_(*context.Register(*domain_, bytes_.data(), bytes_.size(), kAllAccess)) {}
  ProtectionDomain& domain() { return *domain_; }
  MemoryRegion& region() { return *region_; }
  const Bytes& bytes() const { return bytes_; }
  Segment segment() const { return {reinterpret_cast<uint64_t>(bytes_.data()), region_->key(), 8}; }

 private:
  Bytes bytes_ = Bytes(64);
  const std::unique_ptr<ProtectionDomain> domain_;
  const std::unique_ptr<MemoryRegion> region_;
};

// A page whose first access lasts until LetGo, but not for long. Only one may exist at a time.
class SlowPage {
 public:
  static constexpr size_t kBytes = 4096;

  SlowPage()
      : memory_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    current_ = this;
    struct sigaction action = {};
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~SlowPage() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(memory_, kBytes);
  }
  SlowPage(const SlowPage&) = delete;
  SlowPage& operator=(const SlowPage&) = delete;

  void* memory() const { return memory_; }
  // From now on the first access waits.
  void Close() { mprotect(memory_, kBytes, PROT_NONE); }
  bool touched() const { return touched_; }
  void LetGo() { let_go_ = true; }
  // Whether LetGo came while the access lasted.
  bool in_use_until_then() const { return in_use_until_then_; }

 private:
  static void OnFault(int, siginfo_t* fault, void*) {
    SlowPage& page = *current_;
    if (fault->si_addr < page.memory_ ||
        fault->si_addr >= static_cast<char*>(page.memory_) + kBytes) {
      sigaction(SIGSEGV, &page.before_, nullptr);
      return;
    }
    page.touched_ = true;
    for (int i = 0; i < 200 && !page.let_go_; ++i) {
      const timespec pause = {0, 1'000'000};
      nanosleep(&pause, nullptr);
    }
    page.in_use_until_then_ = page.let_go_.load();
    mprotect(page.memory_, kBytes, PROT_READ | PROT_WRITE);
  }

  static inline SlowPage* current_ = nullptr;
  void* const memory_;
  struct sigaction before_ = {};
  std::atomic<bool> touched_{false};
  std::atomic<bool> let_go_{false};
  std::atomic<bool> in_use_until_then_{false};
};

TEST_F(MishapsTest, ARegionThatCannotBeChangedIsAsBefore) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  rdma_mock::FailRegistrations(1);
  EXPECT_TRUE(
      absl::IsResourceExhausted(from.region().Modify(from.domain(), kLocalRead | kRemoteRead)));
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);
  ASSERT_EQ(from.Receive(3, 0, 8), PostResult::kOk) << "it may still be written";
  ASSERT_EQ(to.Send(4, 0, 8), PostResult::kOk);
  Expect(from.receives(), 3);
}

// A program may ask for what holds already. Only a region that changes has a new key for its peers.
TEST_F(MishapsTest, ARegionKeepsItsPeersWhereNothingChanges) {
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (const uint32_t access : {kAllAccess, kAllAccess | kRemoteAtomic}) {
    ASSERT_TRUE(to.region().Modify(to.domain(), access).ok());
    ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 8, to.Address(0), to.region().key()), PostResult::kOk);
    Expect(from.sends(), 1, access == kAllAccess ? Status::kSuccess : Status::kRemoteAccess);
  }
}

// mlx4, mlx5 and hns change a registration in place.
TEST_F(MishapsTest, AChangedRegionKeepsItsPeersWhereTheDriverCan) {
  rdma_mock::ChangeRegistrations(rdma_mock::Change::kInPlace);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const Key key = to.region().key();
  constexpr uint32_t kMine = kLocalRead | kLocalWrite;
  for (const uint32_t access : {kMine | kRemoteWrite, kMine, kMine | kRemoteWrite | kRemoteRead}) {
    ASSERT_TRUE(to.region().Modify(to.domain(), access).ok());
    EXPECT_EQ(to.region().key(), key);
    if (access == kMine) continue;
    ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 8, to.Address(0), key), PostResult::kOk);
    Expect(from.sends(), 1);
  }
  ASSERT_TRUE(to.region().Modify(to.domain(), kMine | kRemoteRead).ok());
  ASSERT_EQ(to.Receive(2, 0, 8), PostResult::kOk) << "it is its own as before";
  ASSERT_EQ(from.Send(3, 0, 8), PostResult::kOk);
  Expect(from.sends(), 3);
  Expect(to.receives(), 2);
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 4, 8, to.Address(0), key), PostResult::kOk);
  Expect(from.sends(), 4, Status::kRemoteAccess);
}

// After a region has come back to its domain, its key opens it again.
TEST_F(MishapsTest, ARegionThatChangesItsDomainIsOutOfReach) {
  rdma_mock::ChangeRegistrations(rdma_mock::Change::kInPlace);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const int before = rdma_mock::LiveDomains();
  auto other = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(to.region().Modify(**other, kAllAccess).ok());
  ASSERT_TRUE(to.region().Modify(to.domain(), kAllAccess).ok());
  other->reset();
  EXPECT_TRUE(Run([before] { return rdma_mock::LiveDomains() == before; }));
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 1, 8, to.Address(0), to.region().key()), PostResult::kOk);
  Expect(from.sends(), 1);
  other = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_TRUE(to.region().Modify(**other, kAllAccess).ok());
  ASSERT_EQ(from.PostTo(Opcode::kWrite, 2, 8, to.Address(0), to.region().key()), PostResult::kOk);
  Expect(from.sends(), 2, Status::kRemoteAccess);
  to.DestroyRegion();
}

// The driver has replaced it by another region of the adapter's.
TEST_F(MishapsTest, AChangedRegionServesItsOwnerUnderAnotherKey) {
  rdma_mock::ChangeRegistrations(rdma_mock::Change::kAnotherKey);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_TRUE(to.region().Modify(to.domain(), kLocalRead | kLocalWrite).ok());
  from.Put(0, Pattern(8, 1));
  ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);
  EXPECT_EQ(to.Get(0, 8), Pattern(8, 1));
}

// A device with windows of its own asks for memory that it can write.
TEST_F(MishapsTest, MemoryThatIsOnlyReadIsRegisteredAndBound) {
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  const ReadOnlyPage memory;
  auto region = a().Register(end.domain(), memory.data(), memory.size(), kLocalRead | kRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status();
  auto window = a().CreateWindow(end.domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok()) << window.status();
  const BindRequest bind = BindOf(1, **window, **region, memory.data(), 50);
  Key key = 0;
  ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
  Expect(end.sends(), 1);
  EXPECT_NE(key, 0u);
  ASSERT_TRUE((*region)->Modify(end.domain(), kLocalRead).ok());
  window->reset();
  region->reset();
}

// Where the driver changes it in place, the device's windows can still be bound to it, as it is
// pinned; elsewhere none can.
TEST_F(MishapsTest, MemoryThatBecomesReadOnlyIsChangedAndBound) {
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  for (const auto change : {rdma_mock::Change::kRefused, rdma_mock::Change::kInPlace}) {
    rdma_mock::ChangeRegistrations(change);
    constexpr size_t kBytes = 4096;
    void* const memory =
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    auto region = a().Register(end.domain(), memory, kBytes, kLocalRead);
    ASSERT_TRUE(region.ok()) << region.status();
    ASSERT_EQ(mprotect(memory, kBytes, PROT_READ), 0);
    ASSERT_TRUE((*region)->Modify(end.domain(), kLocalRead | kRemoteRead).ok());
    auto window = a().CreateWindow(end.domain(), WindowScope::kDomain);
    ASSERT_TRUE(window.ok()) << window.status();
    Key key = 0;
    ASSERT_EQ(end.pair().PostBind(BindOf(1, **window, **region, memory, 50), &key),
              PostResult::kOk);
    Expect(end.sends(), 1);
    EXPECT_NE(key, 0u);
    window->reset();
    region->reset();
    munmap(memory, kBytes);
  }
}

// It is pinned only to be read, which a driver that changes it in place may overlook.
TEST_F(MishapsTest, MemoryThatIsOnlyReadDoesNotBecomeWritable) {
  rdma_mock::ChangeRegistrations(rdma_mock::Change::kInPlace);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  const ReadOnlyPage memory;
  auto region = b().Register(to.domain(), memory.data(), memory.size(), kLocalRead | kRemoteRead);
  ASSERT_TRUE(region.ok()) << region.status();
  for (const uint32_t rights : {kLocalWrite | kRemoteRead, kLocalWrite | kRemoteWrite}) {
    EXPECT_TRUE(absl::IsInvalidArgument((*region)->Modify(to.domain(), kLocalRead | rights)));
  }
  ASSERT_TRUE((*region)->Modify(to.domain(), kLocalRead).ok());
  const Segment segment = {reinterpret_cast<uint64_t>(memory.data()), (*region)->key(), 8};
  ASSERT_EQ(from.Receive(1, 0, 8), PostResult::kOk);
  ASSERT_EQ(to.Send(2, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  Expect(from.receives(), 1);
  Expect(to.sends(), 2);
  ASSERT_EQ(to.Receive(3, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  ASSERT_EQ(from.Send(4, 0, 8), PostResult::kOk);
  Expect(to.receives(), 3, Status::kLocalProtection);
  region->reset();
}

// There was no memory for another one either, so to ask for the same rights is to try once more.
TEST_F(MishapsTest, ARegionThatTheDriverMayHaveLostIsRegisteredAgain) {
  rdma_mock::ChangeRegistrations(rdma_mock::Change::kInPlace);
  End& end = NewEnd(a());
  const uint32_t asked = rdma_mock::AskedAccess();
  rdma_mock::FailRegistrations(1);
  rdma_mock::FailCall(1, 0);
  EXPECT_TRUE(absl::IsResourceExhausted(end.region().Modify(end.domain(), kLocalRead)));
  EXPECT_STREQ(rdma_mock::FailedCall(), "ibv_rereg_mr");
  const ReadOnlyPage page;
  ASSERT_TRUE(a().Register(end.domain(), page.data(), page.size(), kLocalRead).ok());
  ASSERT_NE(rdma_mock::AskedAccess(), asked);
  ASSERT_TRUE(end.region().Modify(end.domain(), kAllAccess).ok());
  EXPECT_EQ(rdma_mock::AskedAccess(), asked);
}

TEST_F(MishapsTest, NoRegionGetsTheKeyOfOneThatWasChanged) {
  rdma_mock::ReuseKeys(true);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ASSERT_TRUE(from.region().Modify(from.domain(), kLocalRead | kLocalWrite).ok());
  Bytes memory = Pattern(100, 1);
  auto region = a().Register(from.domain(), memory.data(), memory.size(), kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_NE((*region)->key(), from.region().key());
  from.DestroyRegion();
  ASSERT_EQ(to.Receive(1, 0, 100), PostResult::kOk);
  const Segment segment = {reinterpret_cast<uint64_t>(memory.data()), (*region)->key(), 100};
  ASSERT_EQ(from.Send(2, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  Expect(from.sends(), 2);
  Expect(to.receives(), 1);
  EXPECT_EQ(to.Get(0, 100), memory);
}

// Unless told otherwise, libmlx5 would write a short message there with the processor.
TEST_F(MishapsTest, AShortMessageKeepsOffMemoryWhoseRegionHasEnded) {
  if (!rdma_mock::IsMlx5()) GTEST_SKIP() << "this device does not know its keys";
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Bytes memory = Pattern(8, 1);
  auto region = b().Register(to.domain(), memory.data(), memory.size(), kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  const Segment segment = {reinterpret_cast<uint64_t>(memory.data()), (*region)->key(), 8};
  ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  region->reset();
  from.Put(0, Pattern(8, 2));
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1, Status::kLocalProtection);
  ExpectBroken(to);
  EXPECT_EQ(memory, Pattern(8, 1));
}

// A region of half of what a process may lock has no room beside a registration with an unfit key.
TEST_F(MishapsTest, ALargeRegionNeedsItsMemoryOnce) {
  End& end = NewEnd(a());
  Bytes memory = Pattern(100, 1);
  rdma_mock::LimitRegistrations(1);
  rdma_mock::GiveLargeKeys(1);
  auto region = a().Register(end.domain(), memory.data(), memory.size(), kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  rdma_mock::LimitRegistrations(0);
  EXPECT_TRUE(absl::IsResourceExhausted(
      a().Register(end.domain(), memory.data(), memory.size(), kAllAccess).status()));
}

// libmlx5, if it cannot be told not to, writes short messages with the processor, to the address in
// the segment.
TEST_F(MishapsTest, AddressesFromZeroAreRefusedWhereTheLibraryWouldUseThem) {
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  Bytes memory = Pattern(100, 1);
  const bool taken =
      a().Register(end.domain(), memory.data(), memory.size(), kAllAccess, AddressBase::kZero).ok();
  EXPECT_EQ(taken, !rdma_mock::IsMlx5());
  auto window = a().CreateWindow(end.domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok()) << window.status();
  BindRequest bind = BindOf(1, **window, end.region(), end.memory().data(), 8);
  bind.base = AddressBase::kZero;
  Key key;
  EXPECT_EQ(end.pair().PostBind(bind, &key) == PostResult::kOk, taken);
}

// A server may have a domain for each client and send the same bytes to all of them.
TEST_F(MishapsTest, ADomainEndsThoughOthersMemoryWasUsedInIt) {
  const WildcardMemory shared(a());
  const int before = rdma_mock::LiveDomains();
  for (int client = 0; client < 3; ++client) {
    End& from = NewEnd(a());
    End& to = NewEnd(b());
    Connect(from, to);
    ExpectSent(shared.segment(), from, to);
    DestroyEnds();
    EXPECT_TRUE(Run([before] { return rdma_mock::LiveDomains() == before; }));
  }
}

TEST_F(MishapsTest, ADomainEndsThoughOthersMemoryThatHasChangedWasUsedInIt) {
  WildcardMemory shared(a());
  const int before = rdma_mock::LiveDomains();
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  ExpectSent(shared.segment(), from, to);
  ASSERT_TRUE(shared.region().Modify(shared.domain(), kLocalRead).ok());
  DestroyEnds();
  EXPECT_TRUE(Run([before] { return rdma_mock::LiveDomains() == before; }));
}

TEST_F(MishapsTest, AnEndOfADomainLeavesOthersTheirUseOfMemory) {
  const WildcardMemory shared(a());
  auto passing = a().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(passing.ok());
  EndOptions in_passing;
  in_passing.domain = passing->get();
  End& from = NewEnd(a());
  End& other = NewEnd(a(), in_passing);
  End& to = NewEnd(b());
  End& other_to = NewEnd(b());
  Connect(from, to);
  Connect(other, other_to);
  ExpectSent(shared.segment(), from, to);
  ExpectSent(shared.segment(), other, other_to);
  other.DestroyPair();
  other.DestroyRegion();
  passing->reset();
  rdma_mock::LimitRegistrations(0);
  ExpectSent(shared.segment(), from, to);
}

// To the device a window is of one domain: regions of others are registered in the pair's domain.
TEST_F(MishapsTest, AWindowOpensWhatIsOfAWildcardDomain) {
  auto wildcard = b().CreateDomain(/*wildcard=*/true);
  ASSERT_TRUE(wildcard.ok());
  Bytes memory = Pattern(100, 1);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  for (ProtectionDomain* const of_region : {&to.domain(), wildcard->get()}) {
    for (ProtectionDomain* const of_window : {&to.domain(), wildcard->get()}) {
      auto region = b().Register(*of_region, memory.data(), memory.size(), kAllAccess);
      ASSERT_TRUE(region.ok()) << region.status();
      auto window = b().CreateWindow(*of_window, WindowScope::kDomain);
      ASSERT_TRUE(window.ok()) << window.status();
      const BindRequest bind = BindOf(1, **window, **region, memory.data(), memory.size());
      Key key = 0;
      ASSERT_EQ(to.pair().PostBind(bind, &key), PostResult::kOk);
      Expect(to.sends(), 1);
      from.Put(0, Bytes(memory.size()));
      ASSERT_EQ(from.PostTo(Opcode::kRead, 2, memory.size(), bind.address, key), PostResult::kOk);
      Expect(from.sends(), 2);
      EXPECT_EQ(from.Get(0, memory.size()), memory);
    }
  }
}

// mlx4 draws keys from one range until sixteen were given back.
TEST_F(MishapsTest, UnfitKeysAreGivenBackForOthers) {
  End& end = NewEnd(a());
  Bytes memory = Pattern(100, 1);
  for (const int range : {1, 16, 30}) {
    rdma_mock::GiveLargeKeysUntilBack(range);
    auto region = a().Register(end.domain(), memory.data(), memory.size(), kAllAccess);
    EXPECT_TRUE(region.ok()) << range << ": " << region.status();
  }
}

TEST_F(MishapsTest, NoWindowTakesTheKeyOfARegionThatWasChanged) {
  rdma_mock::ReuseKeys(true);
  End& from = NewEnd(a());
  End& to = NewEnd(b());
  Connect(from, to);
  Bytes memory = Pattern(100, 1);
  auto other = a().Register(from.domain(), memory.data(), memory.size(), kAllAccess);
  auto window = a().CreateWindow(from.domain(), WindowScope::kQueuePair);
  ASSERT_TRUE(other.ok() && window.ok());
  ASSERT_TRUE(from.region().Modify(from.domain(), kLocalRead | kLocalWrite).ok());
  const BindRequest bind = BindOf(1, **window, **other, memory.data(), memory.size());
  Key key;
  ASSERT_EQ(from.pair().PostBind(bind, &key), PostResult::kOk);
  if (a().attributes().immediate_data) {
    EXPECT_EQ(key, from.region().key()) << "the device's own window: else this proves nothing";
  }
  Expect(from.sends(), 1);
  for (int id : {2, 3}) {
    ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
    ASSERT_EQ(from.Send(id, 0, 8), PostResult::kOk) << "the changed region's own memory";
    Expect(from.sends(), id);
    Expect(to.receives(), 1);
    window->reset();
  }
}

// libmlx5 refuses a bind of more than 2 GiB, which would end the connection.
TEST_F(MishapsTest, AWindowMayBeLongerThanTheDevicesWindows) {
  constexpr size_t kLong = size_t{3} << 30;
  void* const memory = mmap(nullptr, kLong, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  End& end = NewEnd(a());
  End& other = NewEnd(b());
  Connect(end, other);
  {
    auto region = a().Register(end.domain(), memory, kLong, kAllAccess);
    ASSERT_TRUE(region.ok()) << region.status();
    for (WindowScope scope : {WindowScope::kDomain, WindowScope::kQueuePair}) {
      auto window = a().CreateWindow(end.domain(), scope);
      ASSERT_TRUE(window.ok());
      Key key = 0;
      const PostResult posted =
          end.pair().PostBind(BindOf(1, **window, **region, memory, kLong), &key);
      if (rdma_mock::IsMlx5() && scope == WindowScope::kQueuePair) {
        EXPECT_EQ(posted, PostResult::kNoKey);  // a registration would be for all pairs
      } else {
        ASSERT_EQ(posted, PostResult::kOk);
        EXPECT_NE(key, 0u);
        Expect(end.sends(), 1);
      }
      EXPECT_FALSE(end.pair().Ended());
    }
  }
  munmap(memory, kLong);
}

// A registration in its place would be valid on every pair, and the peer could not end it.
TEST_F(MishapsTest, AWindowOfOnePairIsTheDevicesOrNone) {
  if (!a().attributes().pair_windows) GTEST_SKIP() << "windows are registrations";
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  auto window = a().CreateWindow(end.domain(), WindowScope::kQueuePair);
  ASSERT_TRUE(window.ok()) << window.status();
  const BindRequest bind = BindOf(0, **window, end.region(), end.memory().data(), 8);
  Key key;
  rdma_mock::FailCall(1, 0);
  const PostResult posted = end.pair().PostBind(bind, &key);
  EXPECT_STREQ(rdma_mock::FailedCall(), "ibv_alloc_mw");
  rdma_mock::FailCall(0, 0);
  EXPECT_EQ(posted, PostResult::kNoKey);
  ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
  Expect(end.sends(), 0);
}

// A bind may stand in the device's queue behind a long message.
TEST_F(MishapsTest, TheDevicesWindowStaysUntilItsBindIsDone) {
  for (const WindowScope scope : {WindowScope::kQueuePair, WindowScope::kDomain}) {
    End& end = NewEnd(a());
    End& peer = NewEnd(b());
    Connect(end, peer);
    auto window = a().CreateWindow(end.domain(), scope);
    ASSERT_TRUE(window.ok()) << window.status();
    Bytes memory = Pattern(100, 1);
    auto region = a().Register(end.domain(), memory.data(), memory.size(), kAllAccess);
    ASSERT_TRUE(region.ok()) << region.status();
    BindRequest bind = BindOf(0, **window, **region, memory.data(), 0);
    const auto post = [&](uint64_t id, uint64_t length) {
      bind.id = id;
      bind.length = length;
      Key key;
      ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
    };
    rdma_mock::ShowNoCompletions(true);
    post(1, 10);
    const int each = rdma_mock::LiveWindows();
    if (a().attributes().immediate_data) {
      EXPECT_EQ(each, 1) << "the device's own window: else this proves nothing";
    }
    post(2, 20);
    EXPECT_EQ(rdma_mock::LiveWindows(), 2 * each);
    post(3, 0);
    EXPECT_EQ(rdma_mock::LiveWindows(), 2 * each);
    rdma_mock::ShowNoCompletions(false);
    for (const uint64_t id : {1, 2, 3}) Expect(end.sends(), id);
    EXPECT_EQ(rdma_mock::LiveWindows(), 0);

    rdma_mock::ShowNoCompletions(true);
    post(4, 10);
    post(5, 20);
    region->reset();
    EXPECT_EQ(rdma_mock::LiveWindows(), 0) << "no device ends a region before its windows";
    window->reset();
    rdma_mock::ShowNoCompletions(false);
    for (const uint64_t id : {4, 5}) Expect(end.sends(), id);

    window = a().CreateWindow(end.domain(), scope);
    ASSERT_TRUE(window.ok()) << window.status();
    bind = BindOf(0, **window, end.region(), end.memory().data(), 0);
    rdma_mock::ShowNoCompletions(true);
    post(6, 10);
    window->reset();
    EXPECT_EQ(rdma_mock::LiveWindows(), each);
    end.pair().Disconnect(DisconnectMode::kAbrupt);
    EXPECT_EQ(rdma_mock::LiveWindows(), 0) << "the pair binds nothing any more";
    rdma_mock::ShowNoCompletions(false);
  }
}

// A bind that is alone in its queue takes the short way to the poller.
TEST_F(MishapsTest, TheDevicesWindowEndsWithItsWindowWhenItsBindWasPolled) {
  for (const WindowScope scope : {WindowScope::kQueuePair, WindowScope::kDomain}) {
    End& end = NewEnd(a());
    End& peer = NewEnd(b());
    Connect(end, peer);
    auto window = a().CreateWindow(end.domain(), scope);
    ASSERT_TRUE(window.ok()) << window.status();
    for (uint64_t id = 1; id <= 20; ++id) {
      const BindRequest bind = BindOf(id, **window, end.region(), end.memory().data(), 10);
      Key key;
      ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
      Expect(end.sends(), id);
      EXPECT_LE(rdma_mock::LiveWindows(), 1) << "the one before has ended";
    }
    window->reset();
    EXPECT_EQ(rdma_mock::LiveWindows(), 0) << "its destruction unbinds";
  }
}

// Even if the device is not asked for the new bind.
TEST_F(MishapsTest, ABindThatIsRefusedEndsTheKeyBefore) {
  End& end = NewEnd(a());
  End& peer = NewEnd(b());
  Connect(end, peer);
  auto window = a().CreateWindow(end.domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok()) << window.status();
  BindRequest bind = BindOf(1, **window, end.region(), end.memory().data(), 10);
  Key key = 0;
  ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
  Expect(end.sends(), 1);
  if (a().attributes().immediate_data) {
    EXPECT_EQ(rdma_mock::LiveWindows(), 1) << "the device's own window: else this proves nothing";
  }
  bind.id = 2;
  bind.length = end.memory().size() + 1;
  ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
  EXPECT_EQ(key, 0u);
  EXPECT_EQ(rdma_mock::LiveWindows(), 0);
  Expect(end.sends(), 2, Status::kLocalProtection);
}

// The queue fills up while memory is made for a bind, but a place has been kept for the bind.
TEST_F(MishapsTest, ABindKeepsItsPlace) {
  static End* from;
  static int posted;
  EndOptions small;
  small.max_sends = 4;
  from = &NewEnd(a(), small);
  posted = 0;
  End& to = NewEnd(b());
  Connect(*from, to);
  auto window = a().CreateWindow(from->domain(), WindowScope::kDomain);
  ASSERT_TRUE(window.ok());
  for (int i = 0; i < 4; ++i) ASSERT_EQ(to.Receive(1, 0, 8), PostResult::kOk);
  const BindRequest bind = BindOf(9, **window, from->region(), from->memory().data(), 8);
  rdma_mock::MeanwhileInMemory([] {
    rdma_mock::MeanwhileInMemory(nullptr);
    while (from->Send(1, 0, 8) == PostResult::kOk) ++posted;
  });
  Key key = 0;
  EXPECT_EQ(from->pair().PostBind(bind, &key), PostResult::kOk);
  EXPECT_NE(key, 0u);
  EXPECT_EQ(posted, 3);
  for (int i = 0; i < posted; ++i) Expect(from->sends(), 1);
  Expect(from->sends(), 9);
}

// The region is the same, but nothing of it is open any more.
TEST_F(MishapsTest, AChangeOfARegionEndsItsWindows) {
  for (const WindowScope scope : {WindowScope::kQueuePair, WindowScope::kDomain}) {
    End& end = NewEnd(a());
    End& peer = NewEnd(b());
    Connect(end, peer);
    auto window = a().CreateWindow(end.domain(), scope);
    ASSERT_TRUE(window.ok()) << window.status();
    const std::string before = rdma_mock::LiveObjects();
    const BindRequest bind = BindOf(1, **window, end.region(), end.memory().data(), 10);
    Key key = 0;
    ASSERT_EQ(end.pair().PostBind(bind, &key), PostResult::kOk);
    Expect(end.sends(), 1);
    EXPECT_NE(rdma_mock::LiveObjects(), before) << "else this proves nothing";
    ASSERT_TRUE(end.region().Modify(end.domain(), kLocalRead).ok());
    EXPECT_EQ(rdma_mock::LiveObjects(), before);
    window->reset();
    DestroyEnds();
  }
}

// The device takes fewer segments than the send has, so their bytes are copied.
TEST_F(MishapsTest, ARegionEndsBehindItsCopyForASend) {
  constexpr int kSegments = 20;
  EndOptions many;
  many.max_segments = kSegments;
  End& from = NewEnd(a(), many);
  End& to = NewEnd(b());
  Connect(from, to);
  SlowPage page;
  auto region = a().Register(from.domain(), page.memory(), SlowPage::kBytes, kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  page.Close();
  const Segment segment = {reinterpret_cast<uint64_t>(page.memory()), (*region)->key(), 8};
  const std::vector<Segment> segments(kSegments, segment);
  ASSERT_EQ(to.Receive(1, 0, 8 * kSegments), PostResult::kOk);
  std::thread poster([&] { from.Send(2, segments); });
  while (!page.touched()) std::this_thread::yield();
  region->reset();
  page.LetGo();
  poster.join();
  EXPECT_FALSE(page.in_use_until_then());
}

// The device does not check this memory if messages may be dropped.
TEST_F(MishapsTest, NoMessageIsCopiedIntoMemoryOfAnotherDomain) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), drops);
  Connect(from, to);
  auto domain = b().CreateDomain(/*wildcard=*/false);
  ASSERT_TRUE(domain.ok()) << domain.status();
  Bytes memory = Pattern(8, 1);
  auto region = b().Register(**domain, memory.data(), memory.size(), kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  const Segment segment = {reinterpret_cast<uint64_t>(memory.data()), (*region)->key(), 8};
  ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  from.Put(0, Pattern(8, 2));
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1, Status::kLocalProtection);
  EXPECT_EQ(memory, Pattern(8, 1));
}

// The processor, which copies the message, needs no registration.
TEST_F(MishapsTest, AMessageIsCopiedIntoMemoryThatCannotBeRegisteredOnceMore) {
  const WildcardMemory shared(b());
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), drops);
  Connect(from, to);
  rdma_mock::LimitRegistrations(0);
  const Segment segment = shared.segment();
  ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  from.Put(0, Pattern(8, 1));
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  Expect(to.receives(), 1);
  EXPECT_EQ(Bytes(shared.bytes().begin(), shared.bytes().begin() + 8), Pattern(8, 1));
}

TEST_F(MishapsTest, ARegionChangesBehindItsCopyOfAMessage) {
  EndOptions drops;
  drops.no_receive = NoReceive::kDrop;
  End& from = NewEnd(a());
  End& to = NewEnd(b(), drops);
  Connect(from, to);
  SlowPage page;
  auto region = b().Register(to.domain(), page.memory(), SlowPage::kBytes, kAllAccess);
  ASSERT_TRUE(region.ok()) << region.status();
  page.Close();
  const Segment segment = {reinterpret_cast<uint64_t>(page.memory()), (*region)->key(), 8};
  ASSERT_EQ(to.Receive(1, absl::MakeConstSpan(&segment, 1)), PostResult::kOk);
  BusyControlThread busy;  // the control thread polls too, and takes no signals
  ASSERT_EQ(from.Send(2, 0, 8), PostResult::kOk);
  std::thread poller([&] { to.receives().Poll(); });
  while (!page.touched()) std::this_thread::yield();
  EXPECT_TRUE((*region)->Modify(to.domain(), kLocalRead).ok());
  page.LetGo();
  poller.join();
  busy.LetGo();
  EXPECT_FALSE(page.in_use_until_then());
  Expect(to.receives(), 1);
}

}  // namespace
}  // namespace viaduct::verbs
