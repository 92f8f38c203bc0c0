// A method that its object wants called on the callback thread.
#ifndef VIADUCT_VERBS_BASE_CALLBACK_ERRAND_H_
#define VIADUCT_VERBS_BASE_CALLBACK_ERRAND_H_

#include <atomic>
#include <utility>

#include "verbs/base/callback_thread.h"

namespace viaduct::verbs {

// Like Errand, but `kMethod` runs on the callback thread, where it may call the program's
// callbacks; AwaitCallback of the object waits for it. `Pointer` is a std::shared_ptr or a Ref.
template <auto kMethod, typename Pointer>
class CallbackErrand final : private PreparedCallback {
 public:
  // False: the method will not be called, for one of PostCallback's reasons.
  bool Post(Pointer object) {
    if (posted_.exchange(true)) return true;
    object_ = std::move(object);
    if (PostCallback(*this)) return true;
    Drop();
    return false;
  }

 private:
  const void* about() const override { return object_.get(); }
  // The call may destroy the object, and this errand with it.
  void Run() override {
    const Pointer object = Take();
    ((*object).*kMethod)();
  }
  void Drop() override { static_cast<void>(Take()); }
  Pointer Take() {
    Pointer object = std::exchange(object_, Pointer());
    posted_.exchange(false);  // sees what was stored before the Posts that found it true
    return object;
  }

  std::atomic<bool> posted_{false};
  Pointer object_ = Pointer();
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CALLBACK_ERRAND_H_
