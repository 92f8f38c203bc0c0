// The owner of a TCP socket.
#ifndef VIADUCT_VERBS_SOFT_IWARP_SOCKET_H_
#define VIADUCT_VERBS_SOFT_IWARP_SOCKET_H_

#include "verbs/base/fd.h"
#include "verbs/base/fd_table.h"
#include "verbs/soft/foreign_fd.h"

namespace viaduct::verbs::iwarp {

// Move-only. Closes the descriptor that it owns, which is in the table of sockets until then. A
// forked child closes its copies, so that peers notice the parent's death while the child lives.
class Socket : public TabledFd {
 public:
  Socket() = default;
  explicit Socket(Fd fd);
  template <bool (*kEnd)(int)>
  explicit Socket(ForeignFd<kEnd> fd) : TabledFd(Table(), fd.Release(), kEnd, &CloseElsewhere) {}

  // Calls act(fd) for every socket, which is not closed meanwhile. Any thread; waits for nobody:
  // false if it has left some out because of other threads.
  template <typename Act>
  static bool TryForEach(Act act) {
    return Table().TryForEach(act);
  }

 private:
  static FdTable& Table();
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_SOCKET_H_
