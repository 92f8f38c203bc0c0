// What every function of the face begins with.
//
// Control calls: `return Control([&]() -> DAT_RETURN { ... });` with objects from Share, which
// holds references and no EpochGuard, since the last reference to go waits for guards. Calls of
// the data path (posting, dequeuing) go through DataPath: an EpochGuard, no reference.
#ifndef VIADUCT_DAT_API_FACE_H_
#define VIADUCT_DAT_API_FACE_H_

#include <cstdint>
#include <exception>
#include <new>

#include "absl/base/attributes.h"
#include "absl/types/span.h"
#include "dat/api/abi.h"
#include "dat/api/return_code.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/object.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/clock.h"
#include "verbs/base/epoch.h"

// The functions of the API have C++ linkage and stand in this namespace: what a library exports
// under the same names is written by routes.py, from the map and the headers.
namespace viaduct::dat {

// No exception leaves a C function, and no call is left by thread cancellation in its middle, but
// for one that sleeps.
template <typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline DAT_RETURN Protected(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Failure(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
  } catch (const std::exception&) {
    return Failure(DAT_INTERNAL_ERROR);
  }
}
// Inside a guard it is a signal handler's, which has interrupted a post or a poll and would wait
// for it for ever.
template <typename Body>
DAT_RETURN Control(const Body& body) {
  if (verbs::InsideEpochGuard()) [[unlikely]]
    return Failure(DAT_INVALID_STATE);
  const verbs::CancellationDisabled no_cancellation;
  return Protected(body);
}
// Of a call that sleeps for its caller, whom pthread_cancel ends there.
template <typename Body>
DAT_RETURN WaitControl(const Body& body) {
  if (verbs::InsideEpochGuard()) [[unlikely]]
    return Failure(DAT_INVALID_STATE);
  const verbs::CancellationAsleep only_there;
  return Protected(body);
}
// `body` gets the object, which the guard keeps; null if the handle is not that of a live T.
template <typename T, typename Body>
ABSL_ATTRIBUTE_ALWAYS_INLINE inline DAT_RETURN DataPath(DAT_HANDLE handle, const Body& body) {
  return Protected([&]() ABSL_ATTRIBUTE_ALWAYS_INLINE -> DAT_RETURN {
    const verbs::EpochGuard guard;
    return body(core::FindObject<T>(handle));
  });
}

// The object, or null if the handle is not that of a live T.
template <typename T>
core::Ref<T> Share(DAT_HANDLE handle) {
  return core::ShareObject<T>(handle);
}

// As Share, of `adapter` only. Null for DAT_HANDLE_NULL too.
template <typename T>
core::Ref<T> ShareOf(core::InterfaceAdapter& adapter, DAT_HANDLE handle) {
  core::Ref<T> object = core::ShareObject<T>(handle);
  return object && &object->adapter() == &adapter ? object : core::Ref<T>();
}

// A dispatcher that takes `stream`, or null. It may be one of another open of the same adapter:
// Debian's dapltest gives the endpoints of several opens one connection dispatcher.
inline core::Ref<core::EventDispatcher> ShareDispatcher(core::InterfaceAdapter& adapter,
                                                        DAT_HANDLE handle, core::Stream stream) {
  core::Ref<core::EventDispatcher> dispatcher = Share<core::EventDispatcher>(handle);
  const bool fits = dispatcher && (dispatcher->streams() & stream) != 0 &&
                    &dispatcher->adapter().context() == &adapter.context();
  return fits ? dispatcher : core::Ref<core::EventDispatcher>();
}

// Microseconds end here: everything below counts nanoseconds to a deadline.
inline verbs::Deadline ToDeadline(const core::InterfaceAdapter& adapter, DAT_TIMEOUT timeout) {
  if (timeout == DAT_TIMEOUT_INFINITE) return verbs::Deadline::Infinite();
  return adapter.DeadlineAfter(verbs::Nanos{timeout} * verbs::kNanosPerMicro);
}

// Private data as parameters number `argument` (size) and the next one (pointer).
inline DAT_RETURN CheckPrivateData(const core::InterfaceAdapter& adapter, DAT_COUNT size,
                                   const void* data, unsigned argument) {
  if (size < 0 || static_cast<uint32_t>(size) > adapter.max_private_data()) {
    return BadParameter(argument);
  }
  return size > 0 && data == nullptr ? BadParameter(argument + 1) : DAT_RETURN{DAT_SUCCESS};
}
inline absl::Span<const uint8_t> PrivateData(DAT_COUNT size, const void* data) {
  return {static_cast<const uint8_t*>(data), static_cast<size_t>(size)};
}

constexpr DAT_BOOLEAN ToBoolean(bool value) { return value ? DAT_TRUE : DAT_FALSE; }

inline DAT_IA_ADDRESS_PTR ToPointer(const verbs::Address& address) {
  return const_cast<sockaddr*>(address.data());
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_FACE_H_
