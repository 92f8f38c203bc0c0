// A method that its object wants called on the executor, soon and without fail.
#ifndef VIADUCT_VERBS_BASE_ERRAND_H_
#define VIADUCT_VERBS_BASE_ERRAND_H_

#include <atomic>
#include <utility>

#include "verbs/base/executor.h"
#include "verbs/base/prepared_task.h"

namespace viaduct::verbs {

// Calls `kMethod` of the object whose member it is. `Pointer` keeps the object until then: a
// std::shared_ptr or a Ref, or a plain pointer where the object sees to that itself.
//
// Needs no memory, and of many Posts in a row comes one call: what there is to do the object
// remembers by itself. What the caller stored before Post is seen by that call. Post: any thread.
template <auto kMethod, typename Pointer>
class Errand final : private PreparedTask {
 public:
  void Post(Executor& executor, Pointer object) {
    if (posted_.exchange(true)) return;
    object_ = std::move(object);
    if (!executor.Post(*this)) object_ = Pointer();
  }

 private:
  // The call may end the object, and this with it.
  void Run() override {
    const Pointer object = std::exchange(object_, Pointer());
    posted_.exchange(false);  // sees what came before the Posts that found it true
    ((*object).*kMethod)();
  }

  std::atomic<bool> posted_{false};
  Pointer object_ = Pointer();
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ERRAND_H_
