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

// Looks until there is nothing that it would wait for.
template <typename Waits>
void Await(const Clock& clock, Deadline deadline, Waits waits) {
  while (waits() && !deadline.Passed(clock)) poll(nullptr, 0, kLookMilliseconds);
}

// The FIN counts. What comes meanwhile is thrown away: where the time is not enough, the kernel
// goes on behind the close only if nothing was left unread.
bool AnyOutstanding() {
  bool any = false;
  Socket::ForEach([&any](int fd) {
    if (!UnacknowledgedOf(fd).outstanding) return;
    any = true;
    char bytes[16384];
    (void)recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
  });
  return any;
}

void EndConnections(EventLoop& loop) {
  const Deadline deadline = Deadline::After(loop, kLongest);
  Await(loop, deadline, FlushUnsent);
  Socket::ForEach([](int fd) { shutdown(fd, SHUT_WR); });
  Await(loop, deadline, AnyOutstanding);
}

}  // namespace

void EndConnectionsAtExit(EventLoop& loop) { loop.OnExit(&EndConnections); }

}  // namespace viaduct::verbs::iwarp
