// Notifies: the one-shot callbacks that a program has asked for on a work queue or a completion
// queue, first come first served.
//
// Only the callback thread serves them: it takes what has completed and calls the next callback. So
// callbacks run in the order of the completions, no lock is held across a call, and a completion
// that comes while callbacks are pending only has to make sure that a service is posted.
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

// Any thread may call any of these functions.
template <typename Handler>
class Notifies {
 public:
  struct Registration {
    Handler handler;
    VIP_PVOID context;
    bool operator==(const Registration&) const = default;
  };

  void Add(const Registration& registration) {
    std::list<Registration> added{registration};
    const verbs::SpinLockHolder lock(&lock_);
    waiting_.splice(waiting_.end(), added);
    pending_.store(true, std::memory_order_relaxed);
  }
  // For the service, before it checks for a completion: returns the oldest registration, if there
  // is one. It stays pending, and nobody can withdraw it, until Take or Release.
  bool Hold(Registration* out) {
    const verbs::SpinLockHolder lock(&lock_);
    if (waiting_.empty()) return false;
    *out = waiting_.front();
    held_ = true;
    return true;
  }
  // There was a completion: removes the held registration, whose handler the service calls next.
  void Take() {
    std::list<Registration> taken;
    const verbs::SpinLockHolder lock(&lock_);
    held_ = false;
    taken.splice(taken.begin(), waiting_, waiting_.begin());
    if (waiting_.empty()) pending_.store(false, std::memory_order_relaxed);
  }
  void Release() {
    const verbs::SpinLockHolder lock(&lock_);
    held_ = false;
  }
  // Removes the newest registration equal to this one, other than the held one; equal registrations
  // are interchangeable. False: there is none.
  bool Withdraw(const Registration& registration) {
    std::list<Registration> withdrawn;
    const verbs::SpinLockHolder lock(&lock_);
    const auto end = std::prev(waiting_.rend(), held_ ? 1 : 0);
    const auto last = std::find(waiting_.rbegin(), end, registration);
    if (last == end) return false;
    withdrawn.splice(withdrawn.begin(), waiting_, std::next(last).base());
    if (waiting_.empty()) pending_.store(false, std::memory_order_relaxed);
    return true;
  }
  // A cheap check for code that reports a completion.
  bool pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> pending_{false};
  bool held_ ABSL_GUARDED_BY(lock_) = false;  // waiting_.front() is held
  verbs::SpinLock lock_;  // every VI has two: small; no memory is taken or given back under it
  std::list<Registration> waiting_ ABSL_GUARDED_BY(lock_);
};

using ViNotifies = Notifies<VIP_VI_CALLBACK>;
using CqNotifies = Notifies<VIP_CQ_CALLBACK>;

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_NOTIFIES_H_
