// What tasks of the executor hold in place of an object that may end before they run.
#ifndef VIADUCT_VERBS_BASE_ANCHOR_H_
#define VIADUCT_VERBS_BASE_ANCHOR_H_

#include <atomic>
#include <memory>

#include "verbs/base/errand.h"
#include "verbs/base/executor.h"

namespace viaduct::verbs {

// The object creates its anchor with std::make_shared, calls Begin when tasks may come, and calls
// End before any part of itself is destroyed; it then drains the executor. On the executor, the
// object that Get returns stays alive until a call that may end it.
template <auto kMethod, typename Object>
class Anchor final : public std::enable_shared_from_this<Anchor<kMethod, Object>> {
 public:
  void Begin(Object* object) { object_.store(object); }
  // Returns whether it had begun.
  bool End() { return object_.exchange(nullptr) != nullptr; }
  // Null if the object has ended.
  Object* Get() const { return object_.load(); }
  // Calls kMethod on the executor, as an Errand, if the object is still there then. Any thread.
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
