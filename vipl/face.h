// What every exported function has in common.
#ifndef VIADUCT_VIPL_FACE_H_
#define VIADUCT_VIPL_FACE_H_

#include <vipl.h>

#include <exception>
#include <utility>

#include "absl/base/attributes.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/epoch.h"

// In front of every definition of an API function, and of nothing else.
#define VIPL_EXPORT extern "C" __attribute__((visibility("default")))

namespace viaduct::vipl {

// No exception leaves it, failed allocation is VIP_ERROR_RESOURCE.
template <typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline VIP_RETURN Protected(Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception&) {
    return VIP_ERROR_RESOURCE;
  }
}

// Runs a call on the data path. `body` makes the EpochGuard itself.
template <typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline VIP_RETURN DataPath(Body&& body) noexcept {
  return Protected(std::forward<Body>(body));
}

// Runs any other: the thread cannot be cancelled inside either. Cancellation that came meanwhile
// may strike where it ends, so it is not noexcept. Inside a guard it is a signal handler's, which
// has interrupted a post or a poll and would wait for it for ever.
template <typename Body>
VIP_RETURN Control(Body&& body) {
  if (verbs::InsideEpochGuard()) [[unlikely]]
    return VIP_ERROR_RESOURCE;
  const verbs::CancellationDisabled no_cancellation;
  return DataPath(std::forward<Body>(body));
}

// Runs one that sleeps for its caller, whom pthread_cancel ends there.
template <typename Body>
VIP_RETURN WaitControl(Body&& body) {
  if (verbs::InsideEpochGuard()) [[unlikely]]
    return VIP_ERROR_RESOURCE;
  const verbs::CancellationAsleep only_there;
  return Protected(std::forward<Body>(body));
}

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_FACE_H_
