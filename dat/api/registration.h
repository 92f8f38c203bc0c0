// What differs between the libraries that programs link, which are their own registry, and the
// plug-in, which lives under somebody else's: each defines these (own_registry.cc, plugin.cc).
#ifndef VIADUCT_DAT_API_REGISTRATION_H_
#define VIADUCT_DAT_API_REGISTRATION_H_

#include "dat/api/abi.h"
#include "dat/api/face.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::dat {

// The adapter's handle as programs know it: wherever an adapter is told to a program that did not
// name it itself.
DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter);

// is_thread_safe of DAT_PROVIDER_ATTR. The engine is; a registry may want to read there what its
// entry says.
bool ShownThreadSafety(const core::InterfaceAdapter& adapter);

// Whether the three functions that wait or look for events say without its class that there is
// none.
bool AnswersBare();
// A provider's answer. Some leave the class away, which is put right, but where that is what the
// program compares with.
inline DAT_RETURN FromProvider(DAT_RETURN answer) {
  constexpr DAT_RETURN kClasses = DAT_CLASS_ERROR | DAT_CLASS_WARNING;
  if (answer == DAT_SUCCESS || (answer & kClasses) != 0) return answer;
  const bool no_event = answer == DAT_QUEUE_EMPTY || answer == DAT_TIMEOUT_EXPIRED;
  return no_event && AnswersBare() ? answer : DAT_CLASS_ERROR | answer;
}

// That answer. Programs written for OFED compare with the bare type: Debian's dtest in `while
// (dat_evd_dequeue(...) == DAT_QUEUE_EMPTY)`.
inline DAT_RETURN NoEvent(DAT_UINT32 type) {
  return AnswersBare() ? DAT_RETURN{type} : Failure(type);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_REGISTRATION_H_
