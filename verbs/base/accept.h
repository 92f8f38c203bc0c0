// What a listener does where accept gives it nobody.
#ifndef VIADUCT_VERBS_BASE_ACCEPT_H_
#define VIADUCT_VERBS_BASE_ACCEPT_H_

#include <cerrno>

#include "verbs/base/clock.h"

namespace viaduct::verbs {

// Does this errno of an accept say that nobody has come, or nobody who is still there? With any
// other, a shortage or a filter of system calls that refuses, the listening socket stays readable:
// it is looked at again after kAcceptPause.
inline bool IsNobody(int error) {
  return error == EAGAIN || error == EINTR || error == ECONNABORTED;
}

inline constexpr Nanos kAcceptPause = 100 * kNanosPerMilli;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ACCEPT_H_
