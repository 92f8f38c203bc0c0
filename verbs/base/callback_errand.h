// A method that its object wants called on the callback thread, again and again.
#ifndef VIADUCT_VERBS_BASE_CALLBACK_ERRAND_H_
#define VIADUCT_VERBS_BASE_CALLBACK_ERRAND_H_

#include <atomic>
#include <utility>

#include "verbs/base/callback_thread.h"

namespace viaduct::verbs {

// As Errand, but on the callback thread, where `kMethod` may run the program's callbacks; about the
// object (AwaitCallback). `Pointer` is a std::shared_ptr or a Ref.
template <auto kMethod, typename Pointer>
class CallbackErrand final : private PreparedCallback {
 public:
  // False: it will not be called, as PostCallback says.
  bool Post(Pointer object) {
    if (posted_.exchange(true)) return true;
    object_ = std::move(object);
    if (PostCallback(*this)) return true;
    Drop();
    return false;
  }

 private:
  const void* about() const override { return object_.get(); }
  // The call may end the object, and this with it.
  void Run() override {
    const Pointer object = Take();
    ((*object).*kMethod)();
  }
  void Drop() override { static_cast<void>(Take()); }
  Pointer Take() {
    Pointer object = std::exchange(object_, Pointer());
    posted_.exchange(false);  // sees what came before the Posts that found it true
    return object;
  }

  std::atomic<bool> posted_{false};
  Pointer object_ = Pointer();
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CALLBACK_ERRAND_H_
