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

// Runs `body` and lets no exception out: a failed allocation becomes VIP_ERROR_RESOURCE.
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

// Runs any other call, inside which the thread cannot be cancelled either. A cancellation that was
// requested meanwhile may take effect when the call ends, so this is not noexcept. A call inside an
// EpochGuard comes from a signal handler that has interrupted a post or a poll, for which it would
// wait forever; it fails instead.
template <typename Body>
VIP_RETURN Control(Body&& body) {
  if (verbs::InsideEpochGuard()) [[unlikely]]
    return VIP_ERROR_RESOURCE;
  const verbs::CancellationDisabled no_cancellation;
  return DataPath(std::forward<Body>(body));
}

// Runs a call that sleeps for its caller; pthread_cancel can end the thread while it sleeps.
template <typename Body>
VIP_RETURN WaitControl(Body&& body) {
  if (verbs::InsideEpochGuard()) [[unlikely]]
    return VIP_ERROR_RESOURCE;
  const verbs::CancellationAsleep only_there;
  return Protected(std::forward<Body>(body));
}

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_FACE_H_
