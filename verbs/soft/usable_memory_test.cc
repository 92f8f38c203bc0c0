#include "verbs/soft/usable_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace viaduct::verbs {
namespace {

class UsableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = static_cast<char*>(
        mmap(nullptr, 8 * page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override { munmap(memory_, 8 * page_); }
  void Protect(int number, int rights) {
    ASSERT_EQ(mprotect(memory_ + number * page_, page_, rights), 0);
  }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* memory_ = nullptr;
  UsableMemory usable_;
};

TEST_F(UsableMemoryTest, MemoryOfAllRightsIs) {
  for (int i = 0; i < 2; ++i) {  // the second time it is remembered
    EXPECT_TRUE(usable_.Has(memory_, 8 * page_, true));
    EXPECT_TRUE(usable_.Has(memory_ + 5, 1, true));
    EXPECT_TRUE(usable_.Has(memory_, page_, false));
  }
}

TEST_F(UsableMemoryTest, MemoryThatCanOnlyBeReadIsNotToBeWritten) {
  Protect(1, PROT_READ);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(usable_.Has(memory_ + page_, page_, false));
    EXPECT_FALSE(usable_.Has(memory_ + page_, page_, true));
    EXPECT_FALSE(usable_.Has(memory_, page_ + 1, true));
    EXPECT_TRUE(usable_.Has(memory_, page_, true));
    EXPECT_TRUE(usable_.Has(memory_, 8 * page_, false));
  }
}

TEST_F(UsableMemoryTest, WhatNobodyCanReadIsNot) {
  Protect(3, PROT_NONE);
  EXPECT_FALSE(usable_.Has(memory_ + 3 * page_, 1, false));
  EXPECT_FALSE(usable_.Has(memory_, 8 * page_, false));
}

// Even if it was remembered.
TEST_F(UsableMemoryTest, AHoleIsNot) {
  EXPECT_TRUE(usable_.Has(memory_, 8 * page_, true));
  ASSERT_EQ(munmap(memory_ + 4 * page_, page_), 0);
  EXPECT_FALSE(usable_.Has(memory_, 8 * page_, true));
  EXPECT_FALSE(usable_.Has(memory_ + 4 * page_, 1, false));
  EXPECT_TRUE(usable_.Has(memory_, 4 * page_, true));
}

// A program's data are in several mappings, and looking them up takes long.
TEST_F(UsableMemoryTest, TheMappingsOfARangeAreRememberedTogether) {
  Protect(1, PROT_READ | PROT_WRITE | PROT_EXEC);
  EXPECT_TRUE(usable_.Has(memory_, 3 * page_, true));
  Protect(1, PROT_READ);
  EXPECT_TRUE(usable_.Has(memory_, 3 * page_, true)) << "they were looked up";
}

// The first pages of memory_ are those of a file of one page.
class MemoryOfAFileTest : public UsableMemoryTest {
 protected:
  void SetUp() override {
    UsableMemoryTest::SetUp();
    if (madvise(memory_, page_, MADV_POPULATE_READ) != 0) {
      GTEST_SKIP() << "this kernel has no MADV_POPULATE_READ: " << strerror(errno);
    }
    ASSERT_TRUE(file_.valid());
    ASSERT_EQ(ftruncate(file_.get(), 1), 0);
  }
  void MapPages(size_t pages) {
    ASSERT_EQ(mmap(memory_, pages * page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                   file_.get(), 0),
              memory_);
  }

  const Fd file_{memfd_create("short", MFD_CLOEXEC)};
};

TEST_F(MemoryOfAFileTest, EndsWithThePageInWhichTheFileDoes) {
  MapPages(2);
  for (int i = 0; i < 2; ++i) {
    for (const bool written : {false, true}) {
      EXPECT_TRUE(usable_.Has(memory_, 1, written));
      EXPECT_TRUE(usable_.Has(memory_, page_, written));
      EXPECT_FALSE(usable_.Has(memory_, page_ + 1, written));
      EXPECT_FALSE(usable_.Has(memory_ + page_, 1, written));
    }
    Protect(1, PROT_READ);
  }
}

TEST_F(MemoryOfAFileTest, EndsBeforeTheMappingBehind) {
  MapPages(2);
  EXPECT_FALSE(usable_.Has(memory_, 3 * page_, true));
  EXPECT_TRUE(usable_.Has(memory_ + 2 * page_, page_, true));
  ASSERT_EQ(ftruncate(file_.get(), 2 * page_), 0);
  EXPECT_TRUE(usable_.Has(memory_, 3 * page_, true));
}

TEST_F(MemoryOfAFileTest, IsRememberedWhereTheFileIsWhole) {
  MapPages(1);
  EXPECT_TRUE(usable_.Has(memory_, 1, true));
  Protect(0, PROT_READ);
  EXPECT_TRUE(usable_.Has(memory_, page_, true)) << "it was looked up";
}

// It is a mapping of its own, at an address that was used before.
TEST_F(MemoryOfAFileTest, IsNotWhatWasThereBefore) {
  EXPECT_TRUE(usable_.Has(memory_, 8 * page_, true));
  MapPages(2);
  EXPECT_FALSE(usable_.Has(memory_, 2 * page_, true));
  EXPECT_TRUE(usable_.Has(memory_, page_, true));
}

// More mappings than are remembered.
TEST_F(UsableMemoryTest, ManyMappingsAreEachFound) {
  for (int number = 1; number < 8; number += 2) Protect(number, PROT_READ);
  for (int i = 0; i < 3; ++i) {
    for (int number = 0; number < 8; ++number) {
      EXPECT_EQ(usable_.Has(memory_ + number * page_, page_, true), number % 2 == 0) << number;
    }
  }
}

}  // namespace
}  // namespace viaduct::verbs
