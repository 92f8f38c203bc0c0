#include "vipl/vi.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "compat/attributes.h"
#include "compat/result.h"
#include "verbs/base/callback_thread.h"
#include "verbs/base/epoch.h"
#include "verbs/base/settings.h"
#include "vipl/face.h"

namespace viaduct::vipl {

Vi::Vi(const core::Ref<Nic>& nic, const core::Ref<core::EventDispatcher>& dispatcher,
       const core::Ref<Cq>& send_cq, const core::Ref<Cq>& receive_cq)
    : NicChild(kType),
      nic_(nic),
      connect_events_(dispatcher),
      sends_(WorkQueue::Side::kSend, nic->attributes().MaxDescriptorsPerQueue, dispatcher, send_cq),
      receives_(WorkQueue::Side::kReceive, nic->attributes().MaxDescriptorsPerQueue, dispatcher,
                receive_cq),
      all_immediate_(verbs::ChoiceSetting(verbs::SettingId::kImmediate) == "always") {}

Vi::~Vi() = default;

VIP_RETURN Vi::Create(const core::Ref<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes,
                      const core::Ref<Cq>& send_cq, const core::Ref<Cq>& receive_cq,
                      core::Ref<Vi>* out) {
  const VIP_RETURN checked = compat::CheckViAttributes(attributes, nic->attributes());
  if (checked != VIP_SUCCESS) return checked;
  const core::Ref<core::ProtectionZone> zone = nic->ZoneOf(attributes.Ptag);
  if (!zone) return VIP_INVALID_PTAG;

  core::Ref<core::EventDispatcher> dispatcher;
  core::Error error = core::EventDispatcher::Create(
      nic->adapter(), /*length=*/1, core::kCompletionStream | core::kConnectionStream,
      /*eager=*/true, &dispatcher);
  if (!error.ok()) return compat::ResultOf(error);

  core::Ref<Vi> vi;
  // Also if memory runs out on the way.
  absl::Cleanup undo = [&] {
    if (!vi) return dispatcher->Destroy();
    core::Ref<Vi> table_reference;
    if (core::HandleTable::Erase(vi->handle(), kType)) {
      table_reference = core::Ref<Vi>::Adopt(vi.get());
    }
    vi->FreeParts();
  };
  vi = core::Ref<Vi>::Adopt(new Vi(nic, dispatcher, send_cq, receive_cq));
  if (core::HandleTable::Insert(vi.get()) == nullptr) return VIP_ERROR_RESOURCE;
  core::Endpoint::Parts parts;
  parts.zone = zone;
  parts.receive = vi->receives_.dispatcher();
  parts.request = vi->sends_.dispatcher();
  parts.connect = dispatcher;
  parts.completions = vi.get();
  parts.observer = vi.get();
  parts.observers_owner = core::Ref<core::Object>::Share(vi.get());
  parts.subject = vi->handle();
  error = core::Endpoint::Create(nic->adapter(), parts,
                                 compat::EndpointAttributesOf(attributes, nic->attributes()),
                                 &vi->endpoint_);
  if (!error.ok()) return compat::ResultOfZoneUse(error);
  vi->endpoint_->set_profile(compat::ProfileOf(attributes));
  vi->Remember(attributes);
  if (!nic->AddChild(vi.get())) return VIP_INVALID_PARAMETER;
  std::move(undo).Cancel();
  vi->ready_.store(true, std::memory_order_release);
  *out = std::move(vi);
  return VIP_SUCCESS;
}

void Vi::Remember(const VIP_VI_ATTRIBUTES& attributes) {
  const verbs::MutexLock hold(&lock_);
  attributes_ = attributes;
  level_.store(attributes.ReliabilityLevel, std::memory_order_relaxed);
  max_transfer_size_.store(static_cast<uint32_t>(attributes.MaxTransferSize),
                           std::memory_order_relaxed);
  tag_.store(attributes.Ptag, std::memory_order_relaxed);
}

void Vi::FreeParts() {
  if (endpoint_) static_cast<void>(endpoint_->Free());
  for (WorkQueue* queue : {&sends_, &receives_}) {
    queue->Close();
    if (queue->cq()) queue->dispatcher()->Forget(handle());
  }
  connect_events_->Destroy();
}

VIP_RETURN Vi::Free() {
  core::Ref<Vi> table_reference;
  {
    // In its turn, so that no thread that has found the VI begins to connect it meanwhile. Later
    // attempts fail, since the endpoint has ended.
    const Turn turn = TakeTurn(Turns::Use::kChange);
    const VIP_RETURN may = CheckTurn(turn, compat::ViCall::kDestroy);
    if (may != VIP_SUCCESS) return may;
    if (!sends_.empty() || !receives_.empty()) return VIP_ERROR_RESOURCE;
    if (!core::HandleTable::Erase(handle(), kType)) return VIP_INVALID_PARAMETER;
    table_reference = core::Ref<Vi>::Adopt(this);
    nic_->RemoveChild(this);
    // A thread that had found the VI may have posted after the queues were checked.
    verbs::EpochSynchronize();
    if (!sends_.empty() || !receives_.empty()) static_cast<void>(Disconnect());
    FreeParts();
  }
  verbs::AwaitCallback(this);
  for (const core::Ref<Cq>& cq : {sends_.cq(), receives_.cq()}) {
    if (!cq) continue;
    verbs::AwaitCallback(cq.get());  // its handler may have been given this VI
    cq->Detach();
  }
  return VIP_SUCCESS;
}

void Vi::OnNicClosed() {
  sends_.Close();
  receives_.Close();
}

VIP_RETURN Vi::SetAttributes(const VIP_VI_ATTRIBUTES& attributes) {
  const VIP_RETURN checked = compat::CheckViAttributes(attributes, nic_->attributes());
  if (checked != VIP_SUCCESS) return checked;
  const core::Ref<core::ProtectionZone> zone = nic_->ZoneOf(attributes.Ptag);
  if (!zone) return VIP_INVALID_PTAG;
  const Turn turn = TakeTurn(Turns::Use::kChange);
  const VIP_RETURN may = CheckTurn(turn, compat::ViCall::kSetAttributes);
  if (may != VIP_SUCCESS) return may;
  core::Endpoint::Parts parts = endpoint_->parts();
  parts.zone = zone;
  const core::EndpointAttributes wanted =
      compat::EndpointAttributesOf(attributes, nic_->attributes());
  const core::Error error = endpoint_->Modify(&parts, &wanted);
  if (!error.ok()) return compat::ResultOfZoneUse(error);
  endpoint_->set_profile(compat::ProfileOf(attributes));
  Remember(attributes);
  return VIP_SUCCESS;
}

bool Vi::IsBreaking() const {
  if (compat::ViStateOf(endpoint_->state()) != compat::ViState::kConnected) return false;
  const verbs::EpochGuard guard;
  return endpoint_->Ended();
}

compat::ViState Vi::state() const {
  // While the connection breaks, the executor is about to flush everything and to move the state.
  while (IsBreaking()) nic_->adapter().executor().Drain();
  const compat::ViState state = compat::ViStateOf(endpoint_->state());
  // An attempt that ends in Error moves the state before it flushes.
  if (state == compat::ViState::kError) return compat::ViStateOf(endpoint_->SettledState());
  return state;
}

Turn Vi::TakeTurn(Turns::Use use) {
  return Turn(&turns_, use, [this] { return state() == compat::ViState::kIdle; });
}

bool Vi::HasEnded() const {
  return endpoint_->state() == core::EndpointState::kUnconfiguredUnconnected;
}

VIP_RETURN Vi::WrongState() const { return HasEnded() ? VIP_INVALID_PARAMETER : VIP_INVALID_STATE; }

VIP_RETURN Vi::CheckTurn(const Turn& turn, compat::ViCall call) const {
  if (HasEnded()) return VIP_INVALID_PARAMETER;  // it would look idle
  return turn.is_mine() && Allows(call) ? VIP_SUCCESS : VIP_INVALID_STATE;
}

VIP_VI_ATTRIBUTES Vi::attributes() const {
  const verbs::MutexLock hold(&lock_);
  return attributes_;
}

VIP_VI_ATTRIBUTES Vi::PeerAttributes() const {
  return compat::PeerAttributesOf(endpoint_->peer_profile(), attributes());
}

}  // namespace viaduct::vipl

namespace {

using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Cq;
using viaduct::vipl::Nic;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;

// False: the handle is not a completion queue of this NIC.
bool AttachCq(const Nic& nic, VIP_CQ_HANDLE handle, Ref<Cq>* out) {
  if (handle == nullptr) return true;
  Ref<Cq> cq = ShareObject<Cq>(handle);
  if (!cq || &cq->nic() != &nic || !cq->Attach()) return false;
  *out = cq;
  return true;
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipCreateVi(VIP_NIC_HANDLE NicHandle, VIP_VI_ATTRIBUTES* ViAttribs,
                                   VIP_CQ_HANDLE SendCQHandle, VIP_CQ_HANDLE RecvCQHandle,
                                   VIP_VI_HANDLE* ViHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || ViAttribs == nullptr || ViHandle == nullptr) return VIP_INVALID_PARAMETER;
    Ref<Cq> send_cq, receive_cq;
    absl::Cleanup detach = [&] {
      if (send_cq) send_cq->Detach();
      if (receive_cq) receive_cq->Detach();
    };
    if (!AttachCq(*nic, SendCQHandle, &send_cq) || !AttachCq(*nic, RecvCQHandle, &receive_cq)) {
      return VIP_INVALID_PARAMETER;
    }
    Ref<Vi> vi;
    const VIP_RETURN result = Vi::Create(nic, *ViAttribs, send_cq, receive_cq, &vi);
    if (result != VIP_SUCCESS) return result;
    std::move(detach).Cancel();
    *ViHandle = vi->handle();
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipDestroyVi(VIP_VI_HANDLE ViHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    return vi ? vi->Free() : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE ViHandle, VIP_VI_ATTRIBUTES* ViAttribs) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || ViAttribs == nullptr) return VIP_INVALID_PARAMETER;
    return vi->SetAttributes(*ViAttribs);
  });
}

VIPL_EXPORT VIP_RETURN VipQueryVi(VIP_VI_HANDLE ViHandle, VIP_VI_STATE* State,
                                  VIP_VI_ATTRIBUTES* ViAttribs, VIP_BOOLEAN* SendQEmpty,
                                  VIP_BOOLEAN* RecvQEmpty) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || State == nullptr || ViAttribs == nullptr || SendQEmpty == nullptr ||
        RecvQEmpty == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    *State = static_cast<VIP_VI_STATE>(vi->state());
    *ViAttribs = vi->attributes();
    *SendQEmpty = vi->sends().empty() ? VIP_TRUE : VIP_FALSE;
    *RecvQEmpty = vi->receives().empty() ? VIP_TRUE : VIP_FALSE;
    return VIP_SUCCESS;
  });
}
