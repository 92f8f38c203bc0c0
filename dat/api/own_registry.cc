// registration.h in the libraries that programs link.
#include "dat/api/registration.h"
#include "dat/api/return_code.h"
#include "verbs/base/settings.h"

namespace viaduct::dat {

DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter) { return adapter.handle(); }

bool ShownThreadSafety(const core::InterfaceAdapter&) { return true; }

// Debian's dtest and others poll `while (dat_evd_dequeue(...) == DAT_QUEUE_EMPTY)`.
DAT_RETURN EmptyAnswer() {
  static const bool bare = verbs::ChoiceSetting(verbs::SettingId::kQueueEmpty) == "bare";
  return bare ? DAT_RETURN{DAT_QUEUE_EMPTY} : Failure(DAT_QUEUE_EMPTY);
}

}  // namespace viaduct::dat
