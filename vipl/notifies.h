// Notifies: the one-shot callbacks that a program has asked for on a work queue or a completion
// queue, first come first served.
//
// They are served on the callback thread alone: it takes what has completed and calls the next of
// them. So they come in the order of the completions, no lock is held across a call, and whatever
// completes while some are pending only has to see to it that a service is under way.
#ifndef VIADUCT_VIPL_NOTIFIES_H_
#define VIADUCT_VIPL_NOTIFIES_H_

#include <vipl.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"

namespace viaduct::vipl {

// Any thread calls anything.
template <typename Handler>
class Notifies {
 public:
  struct Registration {
    Handler handler;
    VIP_PVOID context;
    bool operator==(const Registration&) const = default;
  };

  void Add(const Registration& registration) {
    const verbs::MutexLock lock(&lock_);
    waiting_.push_back(registration);
    pending_.store(true, std::memory_order_relaxed);
  }
  // The service's, which looks then for what has completed: the oldest, if there is one. It is
  // still pending, and nobody withdraws it, until Take or Release follows.
  bool Hold(Registration* out) {
    const verbs::MutexLock lock(&lock_);
    if (waiting_.empty()) return false;
    *out = waiting_.front();
    held_ = true;
    return true;
  }
  // Something has; its handler is to be called.
  void Take() {
    const verbs::MutexLock lock(&lock_);
    held_ = false;
    waiting_.pop_front();
    if (waiting_.empty()) pending_.store(false, std::memory_order_relaxed);
  }
  void Release() {
    const verbs::MutexLock lock(&lock_);
    held_ = false;
  }
  // Of those that are like it, which are as good as it, the newest leaves; false: there is none.
  bool Withdraw(const Registration& registration) {
    const verbs::MutexLock lock(&lock_);
    const auto end = std::prev(waiting_.rend(), held_ ? 1 : 0);
    const auto last = std::find(waiting_.rbegin(), end, registration);
    if (last == end) return false;
    waiting_.erase(std::next(last).base());
    if (waiting_.empty()) pending_.store(false, std::memory_order_relaxed);
    return true;
  }
  // For who completes: cheap.
  bool pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> pending_{false};
  bool held_ ABSL_GUARDED_BY(lock_) = false;  // the first of those that wait
  verbs::Mutex lock_;
  std::list<Registration> waiting_ ABSL_GUARDED_BY(lock_);
};

using ViNotifies = Notifies<VIP_VI_CALLBACK>;
using CqNotifies = Notifies<VIP_CQ_CALLBACK>;

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_NOTIFIES_H_
