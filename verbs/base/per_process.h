// What a process has once, and a forked child once again.
#ifndef VIADUCT_VERBS_BASE_PER_PROCESS_H_
#define VIADUCT_VERBS_BASE_PER_PROCESS_H_

#include <atomic>
#include <memory>
#include <new>
#include <utility>

#include "verbs/base/at_fork.h"

namespace viaduct::verbs {

// The T of this process: made at the first Get, never destroyed. The copy that a forked child
// inherits may be in the middle of anything, with a lock held by a thread that the child does not
// have. So the child puts it aside, calls its InForkChild() if T has one, and makes a T of its own.
// Any thread, no lock.
template <typename T>
class PerProcess {
 public:
  PerProcess() = delete;

  // The first call passes its arguments to T's constructor. Of several first calls at once each may
  // make a T, but all return the same one.
  template <typename... Arguments>
  static T& Get(Arguments&&... arguments) {
    if (T* const there = Find(); there != nullptr) return *there;
    if (!forks_.registered()) throw std::bad_alloc();
    auto made = std::make_unique<Entry>(inherited_, std::forward<Arguments>(arguments)...);
    Entry* one = nullptr;
    if (!one_.compare_exchange_strong(one, made.get(), std::memory_order_acq_rel)) {
      return one->object;
    }
    return made.release()->object;
  }
  // Null if it has not been made.
  static T* Find() {
    Entry* const one = one_.load(std::memory_order_acquire);
    return one != nullptr ? &one->object : nullptr;
  }

 private:
  struct Entry {
    template <typename... Arguments>
    explicit Entry(const Entry* parents, Arguments&&... arguments)
        : object(std::forward<Arguments>(arguments)...), inherited(parents) {}
    T object;
    const Entry* const inherited;  // the parent's; no leak checker is to report it
  };

  // In a forked child.
  static void PutAside() {
    Entry* const one = one_.exchange(nullptr);
    if (one == nullptr) return;
    inherited_ = one;
    if constexpr (requires { one->object.InForkChild(); }) one->object.InForkChild();
  }

  static inline const AtFork forks_{nullptr, nullptr, &PutAside};
  static inline constinit std::atomic<Entry*> one_{nullptr};
  static inline constinit const Entry* inherited_ = nullptr;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_PER_PROCESS_H_
