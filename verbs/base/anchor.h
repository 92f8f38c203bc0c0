// What tasks of the executor hold of an object that may end before they run.
#ifndef VIADUCT_VERBS_BASE_ANCHOR_H_
#define VIADUCT_VERBS_BASE_ANCHOR_H_

#include <atomic>
#include <memory>

#include "verbs/base/errand.h"
#include "verbs/base/executor.h"

namespace viaduct::verbs {

// The object makes it, with std::make_shared, lets it Begin when tasks may come, and calls End
// before anything of itself goes; it then drains the executor. On the executor what Get returns
// stays until a call that may end the object.
template <auto kMethod, typename Object>
class Anchor final : public std::enable_shared_from_this<Anchor<kMethod, Object>> {
 public:
  void Begin(Object* object) { object_.store(object); }
  // Whether it had begun.
  bool End() { return object_.exchange(nullptr) != nullptr; }
  // Null: it has ended.
  Object* Get() const { return object_.load(); }
  // Calls kMethod of the object on the executor, if it still is, as an Errand. Any thread.
  void Post(Executor& executor) { errand_.Post(executor, this->shared_from_this()); }
  // The same at once. On the executor.
  void Call() {
    if (Object* const object = Get()) (object->*kMethod)();
  }

 private:
  std::atomic<Object*> object_{nullptr};
  Errand<&Anchor::Call, std::shared_ptr<Anchor>> errand_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_ANCHOR_H_
