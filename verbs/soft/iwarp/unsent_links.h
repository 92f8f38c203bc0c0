// The links whose socket once had no room: what waits in them has a moment to go when the process
// exits, so that the peer sees a disconnect and not a message that breaks off.
#ifndef VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_
#define VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_

#include "verbs/base/event_loop.h"

namespace viaduct::verbs::iwarp {

// Of a link, until Forget has returned.
class Unsent {
 public:
  // Sends what waits, as far as the socket takes it. -1 if nothing is left, or nothing can be done
  // about it; else the descriptor that must have room. On the loop.
  virtual int FlushAtExit() = 0;

 protected:
  ~Unsent() = default;
};

// Any thread.
void RememberUnsent(Unsent& link);
void ForgetUnsent(Unsent& link);

// For up to half a second of the exit. Before ShutDownSocketsAtExit; idempotent, any thread.
void FlushUnsentAtExit(EventLoop& loop);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_UNSENT_LINKS_H_
