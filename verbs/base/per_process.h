// What a process has once, and a forked child once again.
#ifndef VIADUCT_VERBS_BASE_PER_PROCESS_H_
#define VIADUCT_VERBS_BASE_PER_PROCESS_H_

#include <atomic>
#include <memory>
#include <utility>

namespace viaduct::verbs {

// Owner of one T, for constinit objects: made at the first Get, never destroyed. What a fork has
// copied may be in the middle of anything, a lock of it held by a thread that the child does not
// have: so the child puts it aside, and makes its own. Any thread, no lock.
template <typename T>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  // The first call gives T these. Of several at once each may make one, and all get the same.
  template <typename... Arguments>
  T& Get(Arguments&&... arguments) {
    Entry* one = one_.load(std::memory_order_acquire);
    if (one != nullptr) return one->object;
    auto made = std::make_unique<Entry>(inherited_, std::forward<Arguments>(arguments)...);
    if (!one_.compare_exchange_strong(one, made.get(), std::memory_order_acq_rel)) {
      return one->object;
    }
    return made.release()->object;
  }

  // In a forked child.
  void PutAside() {
    if (Entry* const one = one_.exchange(nullptr); one != nullptr) inherited_ = one;
  }

 private:
  struct Entry {
    template <typename... Arguments>
    explicit Entry(const Entry* parents, Arguments&&... arguments)
        : object(std::forward<Arguments>(arguments)...), inherited(parents) {}
    T object;
    const Entry* const inherited;  // a leak to nobody
  };

  std::atomic<Entry*> one_{nullptr};
  const Entry* inherited_ = nullptr;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_PER_PROCESS_H_
