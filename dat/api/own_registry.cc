// Defines what registration.h declares, for the libraries that programs link.
#include <atomic>

#include "dat/api/registration.h"
#include "verbs/base/settings.h"

namespace viaduct::dat {

DAT_IA_HANDLE ShownHandle(const core::InterfaceAdapter& adapter) { return adapter.handle(); }

bool ShownThreadSafety(const core::InterfaceAdapter&) { return true; }

// Called by every empty dequeue. Threads that race for the first call all find the same value.
bool AnswersBare() {
  enum : int { kUnknown, kFull, kBare };
  static constinit std::atomic<int> known{kUnknown};
  int answer = known.load(std::memory_order_relaxed);
  if (answer == kUnknown) [[unlikely]] {
    answer = verbs::ChoiceSetting(verbs::SettingId::kQueueEmpty) == "bare" ? kBare : kFull;
    known.store(answer, std::memory_order_relaxed);
  }
  return answer == kBare;
}

}  // namespace viaduct::dat
