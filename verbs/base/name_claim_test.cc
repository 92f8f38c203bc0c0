#include "verbs/base/name_claim.h"

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "verbs/base/call_filter.h"

namespace viaduct::verbs {
namespace {

// Another run of this test may be in the same network namespace.
std::string UniqueName() { return absl::StrCat("claim-test-", std::random_device()()); }

TEST(NameClaim, IsHeldOnceAtATime) {
  const std::string name = UniqueName();
  std::optional<NameClaim> claim;
  {
    auto taken = NameClaim::Take(name);
    ASSERT_TRUE(taken.ok()) << taken.status();
    claim.emplace(*std::move(taken));
  }
  EXPECT_TRUE(absl::IsAlreadyExists(NameClaim::Take(name).status()));
  EXPECT_TRUE(NameClaim::Take(name + "x").ok());
  claim.reset();
  EXPECT_TRUE(NameClaim::Take(name).ok());
}

TEST(NameClaim, HoldsAgainstAnotherProcessAndEndsWithIt) {
  const std::string name = UniqueName();
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto claim = NameClaim::Take(name);
    char byte = claim.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1 || read(go[0], &byte, 1) != 1) _exit(2);
    _exit(0);  // without releasing it
  }
  char byte;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_TRUE(absl::IsAlreadyExists(NameClaim::Take(name).status()));
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(NameClaim::Take(name).ok());
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

TEST(NameClaim, AForkedChildDoesNotKeepIt) {
  const std::string name = UniqueName();
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  pid_t child;
  char byte;
  {
    auto claim = NameClaim::Take(name);
    ASSERT_TRUE(claim.ok()) << claim.status();
    child = fork();
    if (child == 0) {
      _exit(write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 1 ? 0 : 2);
    }
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
  }
  EXPECT_TRUE(NameClaim::Take(name).ok());
  ASSERT_EQ(write(go[1], "g", 1), 1);
  int status;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  for (int fd : {ready[0], ready[1], go[0], go[1]}) close(fd);
}

// A fork copies the descriptors first, and only some milliseconds later the memory that holds the
// library's table of them.
TEST(NameClaim, NoChildKeepsOneThatEndsWhileItIsBorn) {
  const std::vector<char> memory(size_t{64} << 20, 1);
  int ready[2], go[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(go), 0);
  std::atomic<bool> stop{false};
  std::vector<std::string> names;
  std::thread taking([&] {
    while (!stop) {
      names.push_back(UniqueName());
      EXPECT_TRUE(NameClaim::Take(names.back()).ok());
    }
  });
  constexpr int kChildren = 50;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child != 0) continue;
    close(go[1]);
    char byte;
    _exit(write(ready[1], "r", 1) == 1 && read(go[0], &byte, 1) == 0 ? 0 : 2);
  }
  stop = true;
  taking.join();
  char byte;
  for (int i = 0; i < kChildren; ++i) ASSERT_EQ(read(ready[0], &byte, 1), 1);
  int kept = 0;
  for (const std::string& name : names) kept += NameClaim::Take(name).ok() ? 0 : 1;
  EXPECT_EQ(kept, 0) << "of " << names.size();
  close(go[1]);
  for (int i = 0; i < kChildren; ++i) {
    int status = -1;
    EXPECT_GT(wait(&status), 0);
    EXPECT_EQ(status, 0);
  }
  for (int fd : {ready[0], ready[1], go[0]}) close(fd);
}

// Filters of system calls may refuse the socket, and security modules the name.
TEST(NameClaim, SaysWhereThereMayBeNone) {
  for (const long call : {SYS_socket, SYS_bind}) {
    const pid_t child = fork();
    if (child == 0) {
      if (!ForbidCalls({call}, EACCES)) _exit(2);
      _exit(absl::IsPermissionDenied(NameClaim::Take(UniqueName()).status()) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << call;
  }
}

TEST(NameClaim, RefusesANameThatDoesNotFit) {
  EXPECT_TRUE(absl::IsInvalidArgument(NameClaim::Take(std::string(100, 'a')).status()));
  EXPECT_TRUE(NameClaim::Take(std::string(16, '\0')).ok());
}

}  // namespace
}  // namespace viaduct::verbs
