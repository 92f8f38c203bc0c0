// registration.h in the libraries that programs link.
#include "dat/api/registration.h"
#include "verbs/base/settings.h"

namespace viaduct::dat {

DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter) { return adapter.handle(); }

bool ShownThreadSafety(const core::InterfaceAdapter&) { return true; }

bool AnswersBare() {
  static const bool bare = verbs::ChoiceSetting(verbs::SettingId::kQueueEmpty) == "bare";
  return bare;
}

}  // namespace viaduct::dat
