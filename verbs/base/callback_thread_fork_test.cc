// ThreadSanitizer knows no new threads in the forked child of a process that has several.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "gtest/gtest.h"
#include "verbs/base/callback_thread.h"

namespace viaduct::verbs {
namespace {

// The child's copy of the callback thread is no callback thread of the child.
TEST(CallbackThreadForkTest, AChildThatACallbackForksAwaitsCallbacksOfItsOwn) {
  std::promise<pid_t> forked;
  PostCallback(nullptr, [&forked] {
    const pid_t child = fork();
    if (child != 0) return forked.set_value(child);
    static std::atomic<bool> begun{false}, returned{false};
    PostCallback(&begun, [] {
      begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      returned = true;
    });
    while (!begun) std::this_thread::yield();
    AwaitCallback(&begun);
    _exit(returned ? 0 : 1);
  });
  int status = -1;
  const pid_t child = forked.get_future().get();
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace viaduct::verbs
