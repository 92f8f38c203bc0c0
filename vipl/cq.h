// Cq: what VipCreateCQ returns, an eager dispatcher that several work queues feed.
//
// An entry names a descriptor by its number in its work queue. An entry whose descriptor was taken
// without VipCQDone is stale: it is removed along with the descriptor, or skipped when VipCQDone
// meets it.
#ifndef VIADUCT_VIPL_CQ_H_
#define VIADUCT_VIPL_CQ_H_

#include <vipl.h>

#include "absl/base/thread_annotations.h"
#include "dat/core/event.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/object.h"
#include "verbs/base/callback_errand.h"
#include "verbs/base/lock.h"
#include "vipl/nic.h"
#include "vipl/notifies.h"

namespace viaduct::vipl {

class Cq final : public NicChild {
 public:
  static constexpr core::ObjectType kType = core::ObjectType::kCompletionQueue;

  static VIP_RETURN Create(const core::Ref<Nic>& nic, VIP_ULONG entries, core::Ref<Cq>* out);
  // VIP_ERROR_RESOURCE while a work queue is attached. Threads that wait return.
  VIP_RETURN Free();
  VIP_RETURN Resize(VIP_ULONG entries);

  // Takes the next entry that is not stale. The caller is inside an EpochGuard.
  VIP_RETURN Done(VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive);
  // The same, but waits. The caller is not inside an EpochGuard.
  VIP_RETURN Wait(verbs::Deadline deadline, VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive);

  // Callbacks: notify.cc.
  VIP_RETURN Notify(const CqNotifies::Registration& registration);
  // Called just before an entry is queued. Any thread, under any lock.
  void OnEntry() {
    if (notifies_.pending()) ServeNotifies();
  }

  // Once for each work queue. Attach returns false once the completion queue is being destroyed.
  bool Attach();
  void Detach();

  Nic& nic() const { return *nic_; }
  const core::Ref<core::EventDispatcher>& dispatcher() const { return dispatcher_; }

  void OnNicClosed() override;

 private:
  Cq(const core::Ref<Nic>& nic, core::Ref<core::EventDispatcher> dispatcher);
  ~Cq() override;
  // Takes the next entry that is not stale. Under the dispatcher's lock, inside an EpochGuard.
  bool TakeLocked(VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive);
  // Makes sure that RunNotify will run on the callback thread. False: for one of PostCallback's
  // reasons it will not.
  bool ServeNotifies();
  void RunNotify();

  const core::Ref<Nic> nic_;
  const core::Ref<core::EventDispatcher> dispatcher_;
  CqNotifies notifies_;
  verbs::CallbackErrand<&Cq::RunNotify, core::Ref<Cq>> service_;
  verbs::Mutex lock_;
  int attached_ ABSL_GUARDED_BY(lock_) = 0;
  bool destroyed_ ABSL_GUARDED_BY(lock_) = false;
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_CQ_H_
