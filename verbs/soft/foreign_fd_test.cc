#include "verbs/soft/foreign_fd.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "verbs/base/fd.h"
#include "verbs/base/fd_table.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/testing_hang_up.h"
#include "verbs/soft/testing_slow_close.h"

namespace viaduct::verbs {
namespace {

constexpr char kService[] = "viaduct-foreign-fd-test";
// Another run of this test may be in the same network namespace.
const uint16_t kPort = static_cast<uint16_t>(std::random_device()());
constexpr std::chrono::seconds kLong(10);

// False if `act` has not returned after kLong; waits for it all the same.
bool ReturnsAtOnce(std::function<void()> act) {
  std::packaged_task<void()> task(std::move(act));
  std::future<void> returned = task.get_future();
  std::thread thread(std::move(task));
  const bool at_once = returned.wait_for(kLong) == std::future_status::ready;
  thread.join();
  return at_once;
}

bool Comes(const std::function<bool()>& state) {
  const auto end = std::chrono::steady_clock::now() + kLong;
  while (!state()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

struct Pair {
  Pair() {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
    near = ChannelFd(fds[0]);
    far = Fd(fds[1]);
  }
  ChannelFd near;
  Fd far;
};

TEST(ForeignFdTest, WhatIsGivenIsClosedElsewhere) {
  SlowToClose slow;
  GivenFd given(slow.Take());
  const int number = given.get();
  EXPECT_TRUE(ReturnsAtOnce([&given] { given.Reset(); }));
  EXPECT_FALSE(given.valid());
  EXPECT_TRUE(Comes([number] { return !IsOpen(number); })) << "its close has begun";
  slow.LetGo();
}

TEST(ForeignFdTest, NoMoreIsTakenInUntilAHangingCloseEnds) {
  const ListeningFd listener = *ListenAt(kService, kPort);
  SlowToClose slow;
  GivenFd(slow.Take()).Reset();
  std::deque<GivenFd> more;
  while (more.size() < 70) more.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  more.clear();
  EXPECT_TRUE(TooManyToClose());
  pid_t pid;
  const absl::StatusOr<ChannelFd> visitor = DialTo(kService, kPort, &pid);
  ASSERT_TRUE(visitor.ok()) << visitor.status();
  EXPECT_FALSE(AcceptAt(listener.get()).valid());
  EXPECT_TRUE(IsShortage(errno));
  slow.LetGo();
  EXPECT_TRUE(Comes([] { return !TooManyToClose(); }));
  EXPECT_TRUE(AcceptAt(listener.get()).valid());
}

TEST(ForeignFdTest, AChannelWithNothingUnreadIsClosedAtOnce) {
  SlowToClose slow;
  GivenFd(slow.Take()).Reset();  // a close elsewhere would wait for this one
  Pair pair;
  const int number = pair.near.get();
  pair.near.Reset();
  EXPECT_FALSE(IsOpen(number));
  EXPECT_TRUE(HearsTheEnd(pair.far.get()));
  slow.LetGo();
}

TEST(ForeignFdTest, WhatLiesUnreadInAChannelKeepsNobody) {
  for (const char* const bytes : {"something", ""}) {
    SCOPED_TRACE(bytes);
    SlowToClose slow;
    Pair pair;
    if (*bytes == 0) {
      EXPECT_EQ(send(pair.far.get(), "", 0, 0), 0);  // one more empty message before it
    }
    ASSERT_TRUE(SendWith(pair.far.get(), bytes, slow.Take().get()));
    EXPECT_TRUE(ReturnsAtOnce([&pair] { pair.near.Reset(); }));
    EXPECT_TRUE(HearsTheEnd(pair.far.get()));
    slow.LetGo();
  }
}

TEST(ForeignFdTest, WhatNobodyHasAcceptedKeepsNobody) {
  ListeningFd listener = *ListenAt(kService, kPort);
  SlowToClose slow;
  pid_t pid;
  const absl::StatusOr<ChannelFd> visitor = DialTo(kService, kPort, &pid);
  ASSERT_TRUE(visitor.ok()) << visitor.status();
  ASSERT_TRUE(SendWith(visitor->get(), "unread", slow.Take().get()));
  EXPECT_TRUE(ReturnsAtOnce([&listener] { listener.Reset(); }));
  EXPECT_TRUE(HearsTheEnd(visitor->get()));
  EXPECT_TRUE(ListenAt(kService, kPort).ok()) << "the name is free";
  slow.LetGo();
}

constinit FdTable g_table;
bool g_was_tabled = false;

bool LookUpAndEnd(int fd) {
  g_table.ForEach([fd](int tabled) { g_was_tabled |= tabled == fd; });
  return true;
}

// Ending it may take a while, and a child may be forked meanwhile.
TEST(ForeignFdTest, WhatIsBeingEndedIsStillInItsTable) {
  TabledFd fd(g_table, Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)), &LookUpAndEnd, &CloseElsewhere);
  const int number = fd.get();
  fd.Reset();
  EXPECT_TRUE(g_was_tabled);
  EXPECT_FALSE(IsOpen(number));
  g_table.ForEach([](int) { ADD_FAILURE(); });
}

// Checks whether the socket that it gets already has a name.
class NamedWhenOwned : public ListeningFd {
 public:
  explicit NamedWhenOwned(ListeningFd fd) : ListeningFd(std::move(fd)), named_(IsNamed()) {}
  bool was_named() const { return named_; }
  bool IsNamed() const {
    sockaddr_un name;
    socklen_t length = sizeof name;
    EXPECT_EQ(getsockname(get(), reinterpret_cast<sockaddr*>(&name), &length), 0);
    return length > sizeof name.sun_family;
  }

 private:
  bool named_;
};

TEST(ForeignFdTest, AListenerIsItsOwnersBeforeItHasAName) {
  const auto listener = ListenAt<NamedWhenOwned>(kService, kPort);
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_FALSE(listener->was_named());
  EXPECT_TRUE(listener->IsNamed());
}

}  // namespace
}  // namespace viaduct::verbs
