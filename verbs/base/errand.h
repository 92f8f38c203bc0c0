// A method that its object wants called on the executor, soon and without fail.
#ifndef VIADUCT_VERBS_BASE_ERRAND_H_
#define VIADUCT_VERBS_BASE_ERRAND_H_

#include <atomic>
#include <utility>

#include "verbs/base/executor.h"
#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

// Calls `kMethod` of the object whose member the errand is. `Pointer` keeps the object alive until
// then: a std::shared_ptr or a Ref, or a plain pointer if the object sees to that itself.
//
// Needs no memory. Several Posts in a row lead to one call, so the object itself remembers what
// there is to do. The call sees what the caller stored before Post. Post: any thread.
template <auto kMethod, typename Pointer>
class Errand final : private PreparedTask {
 public:
  void Post(Executor& executor, Pointer object) {
    if (posted_.exchange(true)) return;
    object_ = std::move(object);
    if (!executor.Post(*this)) object_ = Pointer();
  }

 private:
  // The call may destroy the object, and this errand with it.
  void Run() override {
    const Pointer object = std::exchange(object_, Pointer());
    posted_.exchange(false);  // sees what was stored before the Posts that found it true
    ((*object).*kMethod)();
  }

  std::atomic<bool> posted_{false};
  Pointer object_ = Pointer();
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ERRAND_H_
