#include "verbs/soft/iwarp/unsent_links.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "verbs/base/clock.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr Nanos kLongest = 500'000'000;
constexpr int kLookMilliseconds = 20;

struct Links {
  Mutex lock;
  std::vector<Unsent*> all ABSL_GUARDED_BY(lock);
};

Links& TheLinks() {
  static Links* const links = new Links;
  return *links;
}

// Nothing waits for a lock: the thread that exits may hold it.
void FlushAll(const Clock& clock) {
  Links& links = TheLinks();
  if (!links.lock.TryLock()) return;
  const Deadline deadline = Deadline::After(clock, kLongest);
  std::vector<Unsent*> left = links.all;
  while (!left.empty() && !deadline.Passed(clock)) {
    std::vector<pollfd> sockets;
    left.erase(std::remove_if(left.begin(), left.end(),
                              [&sockets](Unsent* link) {
                                const int fd = link->FlushAtExit();
                                if (fd >= 0) sockets.push_back({fd, POLLOUT, 0});
                                return fd < 0;
                              }),
               left.end());
    if (!sockets.empty()) poll(sockets.data(), sockets.size(), kLookMilliseconds);
  }
  links.lock.Unlock();
}

}  // namespace

void RememberUnsent(Unsent& link) {
  Links& links = TheLinks();
  const MutexLock hold(&links.lock);
  try {
    links.all.push_back(&link);
  } catch (const std::bad_alloc&) {
    // Its peer sees a message that breaks off.
  }
}

void ForgetUnsent(Unsent& link) {
  Links& links = TheLinks();
  const MutexLock hold(&links.lock);
  links.all.erase(std::remove(links.all.begin(), links.all.end(), &link), links.all.end());
}

void FlushUnsentAtExit(EventLoop& loop) {
  static std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  loop.OnExit([&loop] { FlushAll(loop); });
}

}  // namespace viaduct::verbs::iwarp
