#include "verbs/base/mappings.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

bool IsShared(const void* address, size_t length) {
  return EveryMapping(address, length, [](const Mapping& mapping) { return mapping.shared; });
}

bool IsWritable(const void* address, size_t length) {
  return EveryMapping(address, length, [](const Mapping& mapping) { return mapping.writable; });
}

class MappingsTest : public testing::Test {
 protected:
  void SetUp() override {
    memory_ = static_cast<char*>(
        mmap(nullptr, 4 * page_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
  }
  void TearDown() override { munmap(memory_, 4 * page_); }

  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* memory_ = nullptr;
};

TEST_F(MappingsTest, TellSharedFromPrivate) {
  EXPECT_TRUE(IsShared(memory_, 4 * page_));
  EXPECT_TRUE(IsShared(memory_ + 5, 1));
  EXPECT_TRUE(IsShared(memory_ + page_ - 1, 2));
  // Two mappings side by side are one range.
  ASSERT_EQ(mprotect(memory_ + page_, page_, PROT_READ), 0);
  EXPECT_TRUE(IsShared(memory_, 4 * page_));
  // A private page in the middle.
  ASSERT_EQ(
      mmap(memory_ + 2 * page_, page_, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
      memory_ + 2 * page_);
  EXPECT_FALSE(IsShared(memory_, 4 * page_));
  EXPECT_TRUE(IsShared(memory_ + 3 * page_, page_));
  ASSERT_EQ(munmap(memory_ + page_, page_), 0);
  EXPECT_FALSE(IsShared(memory_, 2 * page_));
  const int local = 0;
  EXPECT_FALSE(IsShared(&local, sizeof local));
}

TEST_F(MappingsTest, TellRightsAndPlaces) {
  ASSERT_EQ(mprotect(memory_ + page_, page_, PROT_READ), 0);
  ASSERT_EQ(mprotect(memory_ + 2 * page_, page_, PROT_NONE), 0);
  EXPECT_TRUE(IsWritable(memory_, page_));
  EXPECT_FALSE(IsWritable(memory_, page_ + 1));
  const uint64_t begin = reinterpret_cast<uintptr_t>(memory_);
  Mapping found;
  int count = 0;
  EXPECT_TRUE(EveryMapping(memory_ + page_ + 5, page_, [&](const Mapping& mapping) {
    if (++count == 1) found = mapping;
    return true;
  }));
  EXPECT_EQ(count, 2);
  EXPECT_EQ(found.begin, begin + page_);
  EXPECT_EQ(found.end, begin + 2 * page_);
  EXPECT_TRUE(found.readable);
  EXPECT_FALSE(found.writable);
  EXPECT_FALSE(EveryMapping(memory_ + 2 * page_, 1,
                            [](const Mapping& mapping) { return mapping.readable; }));
}

TEST_F(MappingsTest, TellFilesFromOtherMemory) {
  bool file = false;
  const auto look = [&](const Mapping& mapping) { return (file = mapping.file, true); };
  EXPECT_TRUE(EveryMapping(memory_, 1, look));
  EXPECT_TRUE(file);
  const int local = 0;
  EXPECT_TRUE(EveryMapping(&local, sizeof local, look));
  EXPECT_FALSE(file);
}

// Programs end their main thread by pthread_exit and go on in others.
TEST_F(MappingsTest, AreThereWithoutTheMainThread) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::thread([this] {
      char state = 0;
      while (state != 'Z') {
        std::string pid, name;
        std::ifstream("/proc/self/stat") >> pid >> name >> state;
      }
      _exit(IsWritable(memory_, 4 * page_) ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0);  // as pthread_exit does at its end
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(MappingsTest, AMappingHoldsWhatEndsWithIt) {
  const Mapping mapping = {.begin = 100, .end = 200};
  EXPECT_TRUE(mapping.Holds(100, 100));
  EXPECT_FALSE(mapping.Holds(100, 101));
  EXPECT_FALSE(mapping.Holds(99, 1));
  EXPECT_FALSE(mapping.Holds(201, 1));
  EXPECT_FALSE(mapping.Holds(150, ~uint64_t{0}));
}

}  // namespace
}  // namespace viaduct::verbs
