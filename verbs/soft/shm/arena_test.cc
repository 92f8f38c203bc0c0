// The arena, its pool, and what is refused.
#include "verbs/soft/shm/arena.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <future>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"
#include "verbs/soft/shm/chunk_pool.h"

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21U << 26)
#endif

namespace viaduct::verbs::shm {
namespace {

constexpr size_t kPage = 4096;

// Whether all pages with any of these bytes exist.
bool Exist(void* start, size_t bytes) {
  const auto first = reinterpret_cast<uintptr_t>(start) / kPage * kPage;
  const size_t length = reinterpret_cast<uintptr_t>(start) + bytes - first;
  std::vector<unsigned char> pages((length + kPage - 1) / kPage);
  if (mincore(reinterpret_cast<void*>(first), length, pages.data()) != 0) return false;
  return std::all_of(pages.begin(), pages.end(), [](unsigned char page) { return page & 1; });
}
// The bytes of the pages that exist, and of those that are reserved for the arena.
size_t BytesOf(const Arena& arena) {
  struct stat status = {};
  fstat(arena.fd(), &status);
  return static_cast<size_t>(status.st_blocks) * 512;
}

GivenFd Copy(const Arena& arena) { return GivenFd(fcntl(arena.fd(), F_DUPFD_CLOEXEC, 0)); }

TEST(ArenaTest, TheOtherSideSeesTheSameMemory) {
  std::shared_ptr<Arena> mine = Arena::Create();
  ASSERT_NE(mine, nullptr);
  std::shared_ptr<Arena> theirs = Arena::Open(Copy(*mine));
  ASSERT_NE(theirs, nullptr);
  ASSERT_TRUE(theirs->PayConnection(4095));
  mine->connection(4095).data[1][63].word.store(42);
  EXPECT_EQ(theirs->connection(4095).data[1][63].word.load(), 42u);
  mine->chunk(1, 7)[kChunkBytes - 1] = 9;
  EXPECT_EQ(theirs->chunk(1, 7)[kChunkBytes - 1], 9);
}

TEST(ArenaTest, RefusesWhatIsNotSealedOrOfAnotherLayout) {
  EXPECT_EQ(Arena::Open(GivenFd()), nullptr);
  EXPECT_EQ(Arena::Open(GivenFd(open("/dev/null", O_RDWR | O_CLOEXEC))), nullptr);
  const ArenaHeader good = {kArenaMagic, kArenaBytes};
  for (int what = 0; what < 4; what++) {
    Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ArenaHeader header = good;
    if (what == 1) header.magic++;
    if (what == 2) header.bytes++;
    ASSERT_EQ(ftruncate(fd.get(), kArenaBytes + (what == 3 ? 4096 : 0)), 0);
    ASSERT_EQ(pwrite(fd.get(), &header, sizeof header, 0), static_cast<ssize_t>(sizeof header));
    if (what != 0) fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    EXPECT_EQ(Arena::Open(GivenFd(std::move(fd))), nullptr) << what;
  }
}

TEST(ArenaTest, RefusesWhatLacksASeal) {
  const ArenaHeader good = {kArenaMagic, kArenaBytes};
  constexpr int kAll = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  for (const int lacking : {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL}) {
    Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(fd.get(), kArenaBytes), 0);
    ASSERT_EQ(pwrite(fd.get(), &good, sizeof good, 0), static_cast<ssize_t>(sizeof good));
    ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, kAll & ~lacking), 0);
    EXPECT_EQ(Arena::Open(GivenFd(std::move(fd))) != nullptr, lacking == 0) << lacking;
  }
}

// Such a file has the seals and the size, but a page that nobody has paid for is a SIGBUS.
TEST(ArenaTest, RefusesHugePages) {
  constexpr size_t kHugePage = 2 << 20;
  Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | MFD_HUGE_2MB));
  if (!fd.valid() || fallocate(fd.get(), 0, 0, 1) != 0 ||
      fallocate(fd.get(), 0, kArenaBytes - 1, 1) != 0) {
    GTEST_SKIP() << "no two huge pages are free: " << strerror(errno);
  }
  void* const start =
      mmap(nullptr, kHugePage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  ASSERT_NE(start, MAP_FAILED);
  const ArenaHeader good = {kArenaMagic, kArenaBytes};
  std::memcpy(start, &good, sizeof good);
  munmap(start, kHugePage);
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  struct stat status;
  ASSERT_EQ(fstat(fd.get(), &status), 0);
  ASSERT_EQ(static_cast<size_t>(status.st_size), kArenaBytes);
  EXPECT_EQ(Arena::Open(GivenFd(std::move(fd))), nullptr);
}

// A file on a disk cannot be sealed: whoever made it can truncate it under a reader.
TEST(ArenaTest, RefusesWhatCannotBeSealed) {
  Fd fd(open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!fd.valid()) GTEST_SKIP() << "no O_TMPFILE in " << testing::TempDir();
  const ArenaHeader good = {kArenaMagic, kArenaBytes};
  ASSERT_EQ(ftruncate(fd.get(), kArenaBytes), 0);
  ASSERT_EQ(pwrite(fd.get(), &good, sizeof good, 0), static_cast<ssize_t>(sizeof good));
  EXPECT_EQ(Arena::Open(GivenFd(std::move(fd))), nullptr);
}

// A connection whose block begins and ends within pages.
constexpr uint32_t kPaid = 2051;
static_assert(kPaid * sizeof(ConnectionBlock) % kPage + sizeof(ConnectionBlock) > 3 * kPage);

TEST(ArenaTest, WhatIsPaidForExists) {
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  EXPECT_GE(BytesOf(*arena), kConnectionOffset + size_t{2} * kFirstChunks * kChunkBytes);
  for (int d : {0, 1}) EXPECT_TRUE(Exist(arena->chunk(d, 0), kFirstChunks * kChunkBytes)) << d;
  ASSERT_TRUE(arena->PayConnection(kPaid));
  EXPECT_TRUE(Exist(&arena->connection(kPaid), sizeof(ConnectionBlock)));
  ASSERT_TRUE(arena->PayChunks(1, kFirstChunks, kChunkStep));
  EXPECT_TRUE(Exist(arena->chunk(1, kFirstChunks), kChunkStep * kChunkBytes));
}

// As kernels before Linux 5.14. A poster's errno must not change.
TEST(ArenaTest, AKernelThatCannotPopulateIsPaid) {
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  std::thread([&] {
    if (!ForbidCalls({SYS_madvise}, EINVAL)) GTEST_SKIP() << "no filters of system calls";
    const size_t before = BytesOf(*arena);
    errno = ENOENT;
    EXPECT_TRUE(arena->PayConnection(kPaid));
    EXPECT_EQ(errno, ENOENT);
    EXPECT_GE(BytesOf(*arena), before + sizeof(ConnectionBlock));
  }).join();
}

TEST(ArenaTest, NothingIsMappedBehindIt) {
  const auto mappings = [] {
    int count = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.find("/memfd:viaduct") != std::string::npos) count++;
    }
    return count;
  };
  const int before = mappings();
  std::shared_ptr<Arena> arena = Arena::Create();
  EXPECT_EQ(mappings(), before + 1);
  arena.reset();
  EXPECT_EQ(mappings(), before);
}

// A peer that writes to the file from memory that is missing holds the file's lock until it is
// there. Here userfaultfd keeps it away, as a FUSE that does not answer would for a mapped file.
TEST(ArenaTest, APeerThatHangsInTheFileKeepsNobody) {
  const std::shared_ptr<Arena> arena = Arena::Create();
  ASSERT_NE(arena, nullptr);
  if (madvise(&arena->direction(0), 0, MADV_POPULATE_WRITE) != 0) {
    GTEST_SKIP() << "this kernel has no MADV_POPULATE_WRITE: " << strerror(errno);
  }
  Fd faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC)));
  if (!faults.valid()) {  // the call takes a capability, the device only access to it
    const Fd device(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
    faults.Reset(ioctl(device.get(), USERFAULTFD_IOC_NEW, O_CLOEXEC));
  }
  if (!faults.valid()) GTEST_SKIP() << "no userfaultfd for this user: " << strerror(errno);
  uffdio_api api = {UFFD_API, 0, 0};
  ASSERT_EQ(ioctl(faults.get(), UFFDIO_API, &api), 0);
  void* const missing =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(missing, MAP_FAILED);
  uffdio_register range = {};
  range.range = {reinterpret_cast<uint64_t>(missing), kPage};
  range.mode = UFFDIO_REGISTER_MODE_MISSING;
  ASSERT_EQ(ioctl(faults.get(), UFFDIO_REGISTER, &range), 0);

  std::thread peer([&, fd = Copy(*arena)] {
    EXPECT_EQ(pwrite(fd.get(), missing, kPage, 0), static_cast<ssize_t>(kPage));
  });
  uffd_msg fault;
  EXPECT_EQ(read(faults.get(), &fault, sizeof fault), static_cast<ssize_t>(sizeof fault));
  std::future<bool> paid = std::async(std::launch::async, [&] {
    return arena->PayConnection(7) && arena->PayChunks(0, kFirstChunks, kChunkStep);
  });
  EXPECT_EQ(paid.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  uffdio_zeropage there = {};
  there.range = range.range;
  EXPECT_EQ(ioctl(faults.get(), UFFDIO_ZEROPAGE, &there), 0);
  peer.join();
  EXPECT_TRUE(paid.get());
  munmap(missing, kPage);
}

TEST(ChunkPoolTest, GrowsAndComesBack) {
  std::shared_ptr<Arena> arena = Arena::Create();
  ChunkPool pool(*arena, 1);
  std::set<int> taken;
  for (uint32_t i = 0; i < kChunks; i++) EXPECT_TRUE(taken.insert(pool.Take(0)).second);
  EXPECT_EQ(*taken.begin(), 0);
  EXPECT_EQ(pool.Take(0), -1);
  arena->direction(1).returned.fetch_or(0xf0);
  EXPECT_EQ(pool.Take(0), 4);
  pool.PutBack(4);
  EXPECT_EQ(pool.Take(0), 4);
}

TEST(ChunkPoolTest, WhatCannotBePaidForIsNotGivenOut) {
  std::shared_ptr<Arena> arena = Arena::Create();
  ChunkPool pool(*arena, 1);
  for (uint32_t i = 0; i < kFirstChunks; i++) EXPECT_GE(pool.Take(0), 0);
  std::thread([&] {
    if (!ForbidCalls({SYS_madvise}, ENOMEM)) GTEST_SKIP() << "no filters of system calls";
    EXPECT_EQ(pool.Take(0), -1);
  }).join();
  EXPECT_EQ(pool.Take(0), static_cast<int>(kFirstChunks)) << "there is memory again";
}

TEST(ChunkPoolTest, AConnectionHasNoMoreThanIsFree) {
  std::shared_ptr<Arena> arena = Arena::Create();
  ChunkPool pool(*arena, 0);
  uint32_t first = 0, second = 0;
  while (pool.Take(first) >= 0) first++;
  EXPECT_EQ(first, kChunks / 2);
  while (pool.Take(second) >= 0) second++;
  EXPECT_EQ(second, kChunks / 4);
  EXPECT_GE(pool.Take(0), 0) << "a third always finds some";
}

TEST(ChunkPoolTest, APeerReturnsOnlyWhatItHad) {
  std::shared_ptr<Arena> arena = Arena::Create();
  ChunkPool pool(*arena, 0);
  for (uint32_t i = 0; i < kFirstChunks; i++) pool.Take(0);
  arena->direction(0).returned.fetch_or(~uint64_t{0});
  std::set<int> again;
  for (uint32_t i = 0; i < kFirstChunks; i++) EXPECT_TRUE(again.insert(pool.Take(0)).second);
  EXPECT_EQ(*again.rbegin(), static_cast<int>(kFirstChunks) - 1) << "and none that it never had";
}

}  // namespace
}  // namespace viaduct::verbs::shm
