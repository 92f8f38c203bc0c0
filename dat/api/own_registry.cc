// registration.h in the libraries that programs link.
#include "dat/api/registration.h"

namespace viaduct::dat {

DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter) { return adapter.handle(); }

bool ShownThreadSafety(const core::InterfaceAdapter&) { return true; }

}  // namespace viaduct::dat
