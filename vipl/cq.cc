#include "vipl/cq.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "compat/result.h"
#include "dat/core/handle_table.h"
#include "verbs/base/callback_thread.h"
#include "verbs/base/epoch.h"
#include "vipl/face.h"
#include "vipl/vi.h"

namespace viaduct::vipl {
namespace {

// False: the entry is stale. The caller holds the dispatcher's lock and is inside an EpochGuard.
bool TakeEntry(const core::Event& event, VIP_VI_HANDLE* vi_handle, VIP_BOOLEAN* receive) {
  Vi* vi = FindVi(event.subject);
  if (vi == nullptr) return false;
  const WorkQueue::Side side = WorkQueue::SideOf(event.cookie);
  if (!vi->QueueOf(side).Announce(WorkQueue::NumberOf(event.cookie))) return false;
  *vi_handle = event.subject;
  *receive = side == WorkQueue::Side::kReceive ? VIP_TRUE : VIP_FALSE;
  return true;
}

}  // namespace

Cq::Cq(const core::Ref<Nic>& nic, core::Ref<core::EventDispatcher> dispatcher)
    : NicChild(kType), nic_(nic), dispatcher_(std::move(dispatcher)) {}

Cq::~Cq() = default;

VIP_RETURN Cq::Create(const core::Ref<Nic>& nic, VIP_ULONG entries, core::Ref<Cq>* out) {
  if (entries > nic->attributes().MaxCQEntries) return VIP_ERROR_RESOURCE;
  core::Ref<core::EventDispatcher> dispatcher;
  const core::Error error =
      core::EventDispatcher::Create(nic->adapter(), static_cast<uint32_t>(entries),
                                    core::kCompletionStream, /*eager=*/true, &dispatcher);
  if (!error.ok()) return compat::ResultOf(error);
  core::Ref<Cq> cq;
  // Also if memory runs out on the way. A program can guess the handle, so the queue may have been
  // freed already.
  absl::Cleanup undo = [&] {
    if (cq) static_cast<void>(cq->Free());
    dispatcher->Destroy();
  };
  cq = core::Ref<Cq>::Adopt(new Cq(nic, dispatcher));
  if (core::HandleTable::Insert(cq.get()) == nullptr) return VIP_ERROR_RESOURCE;
  if (!nic->AddChild(cq.get())) return VIP_INVALID_PARAMETER;
  std::move(undo).Cancel();
  *out = std::move(cq);
  return VIP_SUCCESS;
}

VIP_RETURN Cq::Free() {
  {
    const verbs::MutexLock hold(&lock_);
    if (attached_ != 0) return VIP_ERROR_RESOURCE;
    if (!core::HandleTable::Erase(handle(), kType)) return VIP_INVALID_PARAMETER;
    destroyed_ = true;
  }
  const core::Ref<Cq> table_reference = core::Ref<Cq>::Adopt(this);
  nic_->RemoveChild(this);
  dispatcher_->Destroy();
  verbs::AwaitCallback(this);
  return VIP_SUCCESS;
}

VIP_RETURN Cq::Resize(VIP_ULONG entries) {
  if (entries > nic_->attributes().MaxCQEntries) return VIP_ERROR_RESOURCE;
  const core::Error error = dispatcher_->Resize(static_cast<uint32_t>(entries));
  return error.code == core::Code::kInvalidState ? VIP_ERROR_RESOURCE : compat::ResultOf(error);
}

bool Cq::TakeLocked(VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive) {
  core::Event event;
  while (dispatcher_->PopQueued(&event)) {
    if (TakeEntry(event, vi, receive)) return true;
  }
  return false;
}

VIP_RETURN Cq::Done(VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive) {
  const bool taken = dispatcher_->TakeKept([&] { return TakeLocked(vi, receive); });
  return taken ? VIP_SUCCESS : VIP_NOT_DONE;
}

VIP_RETURN Cq::Wait(verbs::Deadline deadline, VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive) {
  return compat::ResultOf(dispatcher_->WaitUntil(deadline, [&] {
    const verbs::EpochGuard guard;
    return TakeLocked(vi, receive);
  }));
}

bool Cq::Attach() {
  const verbs::MutexLock hold(&lock_);
  if (destroyed_) return false;
  ++attached_;
  return true;
}

void Cq::Detach() {
  const verbs::MutexLock hold(&lock_);
  --attached_;
}

// The adapter's close wakes up the threads that wait.
void Cq::OnNicClosed() {}

}  // namespace viaduct::vipl

using viaduct::core::FindObject;
using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Cq;
using viaduct::vipl::DataPath;
using viaduct::vipl::Nic;
using viaduct::vipl::WaitControl;

VIPL_EXPORT VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE NicHandle, VIP_ULONG EntryCount,
                                   VIP_CQ_HANDLE* CQHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || EntryCount == 0 || CQHandle == nullptr) return VIP_INVALID_PARAMETER;
    Ref<Cq> cq;
    const VIP_RETURN result = Cq::Create(nic, EntryCount, &cq);
    if (result == VIP_SUCCESS) *CQHandle = cq->handle();
    return result;
  });
}

VIPL_EXPORT VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Cq> cq = ShareObject<Cq>(CQHandle);
    return cq ? cq->Free() : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQHandle, VIP_ULONG EntryCount) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Cq> cq = ShareObject<Cq>(CQHandle);
    if (!cq || EntryCount == 0) return VIP_INVALID_PARAMETER;
    return cq->Resize(EntryCount);
  });
}

namespace {

VIP_RETURN Poll(VIP_CQ_HANDLE handle, VIP_VI_HANDLE* vi, VIP_BOOLEAN* receive) {
  if (vi == nullptr || receive == nullptr) return VIP_INVALID_PARAMETER;
  return DataPath([&]() -> VIP_RETURN {
    const viaduct::verbs::EpochGuard guard;
    Cq* cq = FindObject<Cq>(handle);
    return cq != nullptr ? cq->Done(vi, receive) : VIP_INVALID_PARAMETER;
  });
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQHandle, VIP_VI_HANDLE* ViHandle,
                                 VIP_BOOLEAN* RecvQueue) {
  return Poll(CQHandle, ViHandle, RecvQueue);
}

VIPL_EXPORT VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQHandle, VIP_ULONG Timeout, VIP_VI_HANDLE* ViHandle,
                                 VIP_BOOLEAN* RecvQueue) {
  const VIP_RETURN polled = Poll(CQHandle, ViHandle, RecvQueue);
  if (polled != VIP_NOT_DONE) return polled;
  return WaitControl([&]() -> VIP_RETURN {
    const Ref<Cq> cq = ShareObject<Cq>(CQHandle);
    if (!cq) return VIP_INVALID_PARAMETER;
    return cq->Wait(cq->nic().DeadlineAfter(Timeout), ViHandle, RecvQueue);
  });
}
