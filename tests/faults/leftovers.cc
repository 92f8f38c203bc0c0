#include "tests/faults/leftovers.h"

#include <poll.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/conformance/harness/process_facts.h"

namespace viaduct::tests {
namespace {

constexpr int kPatienceMilliseconds = 10000;

int64_t Milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

int LinesWith(const char* path, const std::string& text) {
  std::ifstream file(path);
  int count = 0;
  for (std::string line; std::getline(file, line);) count += line.find(text) != std::string::npos;
  return count;
}

// Nothing signals that the last descriptor has gone, so this checks every 20 ms.
bool Within(const std::function<bool()>& condition) {
  const int64_t end = Milliseconds() + kPatienceMilliseconds;
  while (!condition()) {
    if (Milliseconds() > end) return false;
    poll(nullptr, 0, 20);
  }
  return true;
}

// Sockets that a process still has; closed ones that the kernel keeps for a while have inode 0.
std::string OpenTcp(const char* path) {
  std::ifstream file(path);
  std::string line, open;
  std::getline(file, line);  // the heading
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string field[10];
    for (std::string& f : field) fields >> f;
    if (field[9] != "0") open += line + "\n";
  }
  return open;
}

std::string OpenNames() {
  std::ifstream file("/proc/thread-self/net/unix");
  std::string line, open;
  while (std::getline(file, line)) {
    if (line.find("@viaduct-") != std::string::npos) open += line + "\n";
  }
  return open;
}

}  // namespace

Holdings HoldingsNow() {
  return {OpenDescriptors(), Threads(), LinesWith("/proc/self/maps", "/memfd:")};
}

::testing::AssertionResult HoldsAtMost(const Holdings& most) {
  Holdings now;
  // The call that a test lets fail may be one of those that count.
  if (Within([&] {
        now = HoldingsNow();
        return now.descriptors <= most.descriptors && now.threads <= most.threads &&
               now.arenas <= most.arenas;
      })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << now.descriptors << " descriptors instead of " << most.descriptors << ", " << now.threads
         << " threads instead of " << most.threads << ", " << now.arenas << " arenas instead of "
         << most.arenas;
}

::testing::AssertionResult NetworkIsEmpty() {
  std::string left;
  if (Within([&] {
        left = OpenTcp("/proc/thread-self/net/tcp") + OpenTcp("/proc/thread-self/net/tcp6") +
               OpenNames();
        return left.empty();
      })) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "still open:\n" << left;
}

}  // namespace viaduct::tests
