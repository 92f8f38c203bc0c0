// What a listener does when accept returns no connection.
#ifndef VIADUCT_VERBS_BASE_ACCEPT_H_
#define VIADUCT_VERBS_BASE_ACCEPT_H_

#include <cerrno>

#include "verbs/base/clock.h"

namespace viaduct::verbs {

// Does this errno of accept say that no peer is waiting, or that the one that was has gone? After
// any other error (a shortage, or a system-call filter that refuses) the listening socket stays
// readable: accept is tried again after kAcceptPause.
inline bool IsNobody(int error) {
  return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

inline constexpr Nanos kAcceptPause = 100 * kNanosPerMilli;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ACCEPT_H_
