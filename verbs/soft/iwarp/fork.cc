#include "verbs/soft/iwarp/fork.h"

#include <atomic>

#include "verbs/soft/iwarp/ending.h"
#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {

void BeginAnewInForkChildren(EventLoop& loop) {
  static constinit std::atomic<bool> done{false};  // to the loop of this process
  if (done.exchange(true)) return;
  loop.OnForkChild([] {
    Socket::CloseAllInForkChild();
    Ending::ForgetAllInForkChild();
    done.store(false);
  });
}

}  // namespace viaduct::verbs::iwarp
