// VipSendNotify, VipRecvNotify, VipCQNotify: [VIGM] vipcqnotify and its two relatives.
#include "verbs/base/callback_thread.h"
#include "verbs/base/epoch.h"
#include "vipl/cq.h"
#include "vipl/face.h"
#include "vipl/notifies.h"
#include "vipl/vi.h"

namespace viaduct::vipl {

// ---- on a work queue: the service takes the descriptor itself

VIP_RETURN Vi::Notify(WorkQueue& queue, const ViNotifies::Registration& registration) {
  // The completion queue reports the completions.
  if (queue.cq()) return VIP_INVALID_PARAMETER;
  verbs::PrepareCallbacks();
  queue.notifies().Add(registration);
  return ServeNotifies() || !queue.notifies().Withdraw(registration) ? VIP_SUCCESS
                                                                     : VIP_ERROR_RESOURCE;
}

bool Vi::ServeNotifies() { return notify_service_.Post(core::Ref<Vi>::Share(this)); }

void Vi::RunNotifies() {
  RunNotify(sends_);
  RunNotify(receives_);
}

void Vi::RunNotify(WorkQueue& queue) {
  ViNotifies::Registration next;
  if (!queue.notifies().Hold(&next)) return;
  VIP_DESCRIPTOR* descriptor = nullptr;
  {
    const verbs::EpochGuard guard;
    // The VI's destruction has cancelled the callback.
    if (FindVi(handle()) != this) return;
    static_cast<void>(queue.Done(handle(), &descriptor));
  }
  if (descriptor == nullptr) {
    queue.notifies().Release();
    // A device that has just been polled may report the next completion up to a tick late.
    return queue.dispatcher()->Arm();
  }
  queue.notifies().Take();
  // Before the call, which may end the thread.
  if (sends_.notifies().pending() || receives_.notifies().pending()) ServeNotifies();
  next.handler(next.context, nic_->handle(), handle(), descriptor);
}

// ---- on a completion queue: the service takes the entry, the handler takes the descriptor

VIP_RETURN Cq::Notify(const CqNotifies::Registration& registration) {
  verbs::PrepareCallbacks();
  notifies_.Add(registration);
  return ServeNotifies() || !notifies_.Withdraw(registration) ? VIP_SUCCESS : VIP_ERROR_RESOURCE;
}

bool Cq::ServeNotifies() { return service_.Post(core::Ref<Cq>::Share(this)); }

void Cq::RunNotify() {
  CqNotifies::Registration next;
  if (!notifies_.Hold(&next)) return;
  VIP_VI_HANDLE vi = nullptr;
  VIP_BOOLEAN receive = VIP_FALSE;
  bool done;
  {
    const verbs::EpochGuard guard;
    if (core::FindObject<Cq>(handle()) != this) return;
    done = Done(&vi, &receive) == VIP_SUCCESS;
  }
  if (!done) {
    notifies_.Release();
    return dispatcher_->Arm();
  }
  notifies_.Take();
  if (notifies_.pending()) ServeNotifies();
  next.handler(next.context, nic_->handle(), vi, receive);
}

}  // namespace viaduct::vipl

namespace {

using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Cq;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;
using viaduct::vipl::WorkQueue;

VIP_RETURN NotifyOnQueue(VIP_VI_HANDLE handle, WorkQueue::Side side, VIP_PVOID context,
                         VIP_VI_CALLBACK handler) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(handle);
    if (!vi || handler == nullptr) return VIP_INVALID_PARAMETER;
    return vi->Notify(vi->QueueOf(side), {handler, context});
  });
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipSendNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                                     VIP_VI_CALLBACK Handler) {
  return NotifyOnQueue(ViHandle, WorkQueue::Side::kSend, Context, Handler);
}

VIPL_EXPORT VIP_RETURN VipRecvNotify(VIP_VI_HANDLE ViHandle, VIP_PVOID Context,
                                     VIP_VI_CALLBACK Handler) {
  return NotifyOnQueue(ViHandle, WorkQueue::Side::kReceive, Context, Handler);
}

VIPL_EXPORT VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQHandle, VIP_PVOID Context,
                                   VIP_CQ_CALLBACK Handler) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Cq> cq = ShareObject<Cq>(CQHandle);
    if (!cq || Handler == nullptr) return VIP_INVALID_PARAMETER;
    return cq->Notify({Handler, Context});
  });
}
