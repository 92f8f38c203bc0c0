#include "verbs/base/fd_table.h"

#include <sys/eventfd.h>

#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs {
namespace {

constinit FdTable g_table;

TabledFd NewFd() {
  return OpenAs<TabledFd>([] { return TabledFd(g_table, Fd(eventfd(0, EFD_CLOEXEC))); });
}

TEST(FdTableTest, RemovesWhatWasNeverAdded) {
  constinit static FdTable empty;
  empty.Remove(7);
  empty.ForEach([](int) { ADD_FAILURE(); });
}

// Otherwise its number could be another file's by then. A close needs an FdChange.
TEST(FdTableTest, NoneIsClosedDuringItsCall) {
  const TabledFd tabled = NewFd();
  std::vector<int> seen;
  EXPECT_TRUE(g_table.TryForEach([&seen](int fd) {
    seen.push_back(fd);
    std::thread([] { EXPECT_FALSE(FdChange(std::try_to_lock).exists()); }).join();
  }));
  EXPECT_EQ(seen, std::vector<int>{tabled.get()});
}

TEST(FdTableTest, WhoMayNotWaitLeavesSomeOut) {
  const TabledFd tabled = NewFd();
  const FdChange change;
  std::thread([] { EXPECT_FALSE(g_table.TryForEach([](int) { ADD_FAILURE(); })); }).join();
}

}  // namespace
}  // namespace viaduct::verbs
