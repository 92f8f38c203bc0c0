// What differs between the libraries that programs link, which are their own registry, and the
// plug-in, which runs under somebody else's: each defines these functions (own_registry.cc,
// plugin.cc).
#ifndef VIADUCT_DAT_API_REGISTRATION_H_
#define VIADUCT_DAT_API_REGISTRATION_H_

#include "dat/api/abi.h"
#include "dat/api/face.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::dat {

// The adapter's handle as programs know it, for calls that return an adapter's handle which the
// program did not pass in.
DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter);

// The value of is_thread_safe in DAT_PROVIDER_ATTR. The engine is thread-safe, but a registry may
// expect what its entry says.
bool ShownThreadSafety(const core::InterfaceAdapter& adapter);

// Whether the three functions that wait or poll for events return the bare type, without its class,
// when there is none.
bool AnswersBare();
// Passes on a provider's return value. Some providers omit the class; it is added, except where
// programs compare with the bare type.
inline DAT_RETURN FromProvider(DAT_RETURN answer) {
  constexpr DAT_RETURN kClasses = DAT_CLASS_ERROR | DAT_CLASS_WARNING;
  if (answer == DAT_SUCCESS || (answer & kClasses) != 0) return answer;
  const bool no_event = answer == DAT_QUEUE_EMPTY || answer == DAT_TIMEOUT_EXPIRED;
  return no_event && AnswersBare() ? answer : DAT_CLASS_ERROR | answer;
}

// The return value when there is no event. Programs written for OFED compare with the bare type:
// Debian's dtest in `while (dat_evd_dequeue(...) == DAT_QUEUE_EMPTY)`.
inline DAT_RETURN NoEvent(DAT_UINT32 type) {
  return AnswersBare() ? DAT_RETURN{type} : Failure(type);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_REGISTRATION_H_
