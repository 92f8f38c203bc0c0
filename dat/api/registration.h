// What differs between the libraries that programs link, which are their own registry, and the
// plug-in, which lives under somebody else's: each defines these (own_registry.cc, plugin.cc).
#ifndef VIADUCT_DAT_API_REGISTRATION_H_
#define VIADUCT_DAT_API_REGISTRATION_H_

#include "dat/api/abi.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::dat {

// The adapter's handle as programs know it: wherever an adapter is told to a program that did not
// name it itself.
DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter);

// is_thread_safe of DAT_PROVIDER_ATTR. The engine is; a registry may want to read there what its
// entry says.
bool ShownThreadSafety(const core::InterfaceAdapter& adapter);

// Whether dat_evd_dequeue and dat_evd_wait say without its class that there is no event.
bool AnswersBare();

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_REGISTRATION_H_
