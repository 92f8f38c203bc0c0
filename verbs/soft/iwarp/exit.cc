#include "verbs/soft/iwarp/exit.h"

#include <poll.h>
#include <sys/socket.h>

#include "verbs/base/clock.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/unsent_links.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr Nanos kLongest = 500'000'000;
constexpr int kLookMilliseconds = 1;

// Polls until `waits` returns false or the deadline has passed.
template <typename Waits>
void Await(const Clock& clock, Deadline deadline, Waits waits) {
  while (waits() && !deadline.Passed(clock)) poll(nullptr, 0, kLookMilliseconds);
}

// Whether anything, a FIN included, is unacknowledged. Discards what comes meanwhile: if the time
// is not enough, the kernel goes on sending after the close only if nothing was left unread.
bool AnyOutstanding() {
  bool any = false;
  const bool all = Socket::TryForEach([&any](int fd) {
    if (!UnacknowledgedOf(fd).outstanding) return;
    any = true;
    (void)DiscardInput(fd);
  });
  return any || !all;
}

// Shuts them down.
bool AnyNotShut() {
  return !Socket::TryForEach([](int fd) { shutdown(fd, SHUT_WR); });
}

void EndConnections(EventLoop& loop) {
  const Deadline deadline = Deadline::After(loop, kLongest);
  Await(loop, deadline, FlushUnsent);
  Await(loop, deadline, AnyNotShut);
  Await(loop, deadline, AnyOutstanding);
}

}  // namespace

void EndConnectionsAtExit(EventLoop& loop) { loop.OnExit(&EndConnections); }

}  // namespace viaduct::verbs::iwarp
