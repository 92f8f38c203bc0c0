// Vi: what VipCreateVi returns. It wraps an endpoint and sees its completions before anybody can
// take them: that is where Length, ImmediateData and Status of a descriptor are written.
#ifndef VIADUCT_VIPL_VI_H_
#define VIADUCT_VIPL_VI_H_

#include <vipl.h>

#include <atomic>

#include "absl/base/thread_annotations.h"
#include "compat/vi_state.h"
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/object.h"
#include "verbs/base/callback_errand.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "vipl/cq.h"
#include "vipl/nic.h"
#include "vipl/turn.h"
#include "vipl/work_queue.h"

namespace viaduct::vipl {

class Vi final : public NicChild, private core::CompletionObserver, private core::EndpointObserver {
 public:
  static constexpr core::ObjectType kType = core::ObjectType::kVi;

  static VIP_RETURN Create(const core::Ref<Nic>& nic, const VIP_VI_ATTRIBUTES& attributes,
                           const core::Ref<Cq>& send_cq, const core::Ref<Cq>& receive_cq,
                           core::Ref<Vi>* out);
  VIP_RETURN Free();

  VIP_RETURN SetAttributes(const VIP_VI_ATTRIBUTES& attributes);
  VIP_VI_ATTRIBUTES attributes() const;
  // Who has seen a descriptor flushed by the end of the connection is told kError; and when this
  // says kError, all that were posted are flushed, and Done finds them. It may wait for the
  // executor: not inside an EpochGuard.
  compat::ViState state() const;
  bool Allows(compat::ViCall call) const {
    return compat::VerdictOf(state(), call) != compat::ViVerdict::kInvalidState;
  }

  // Data path: inside an EpochGuard.
  VIP_RETURN PostSend(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);
  VIP_RETURN PostReceive(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory);

  WorkQueue& sends() { return sends_; }
  WorkQueue& receives() { return receives_; }
  WorkQueue& QueueOf(WorkQueue::Side side) {
    return side == WorkQueue::Side::kReceive ? receives_ : sends_;
  }

  // Callbacks: notify.cc. A queue that has a completion queue has none.
  VIP_RETURN Notify(WorkQueue& queue, const ViNotifies::Registration& registration);

  // Connections: connect.cc. The profile of `header`, and of `request` below, is filled in: with
  // the attributes that the connection has.
  VIP_RETURN Connect(core::ConnectionHeader header, core::ConnectParameters parameters,
                     VIP_VI_ATTRIBUTES* peer);
  VIP_RETURN Accept(VIP_CONN_HANDLE handle);
  VIP_RETURN Disconnect();
  // Peer to peer: connect_peer.cc.
  VIP_RETURN ConnectPeer(core::PeerRequest request, core::ConnectParameters parameters);
  VIP_RETURN PeerOutcome(bool wait, VIP_VI_ATTRIBUTES* peer);

  Nic& nic() const { return *nic_; }
  // A pointer of the program's own: VipSetUserData.
  std::atomic<VIP_PVOID>& user_data() { return user_data_; }
  // False until it is whole: a handle can be guessed before VipCreateVi returned it.
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  void OnNicClosed() override;

 private:
  Vi(const core::Ref<Nic>& nic, const core::Ref<core::EventDispatcher>& dispatcher,
     const core::Ref<Cq>& send_cq, const core::Ref<Cq>& receive_cq);
  ~Vi() override;

  bool OnCompletion(const verbs::Completion& completion) override;
  // The error bits of a descriptor that did not just succeed. `posted`: the error it came with.
  uint32_t ErrorOf(verbs::Status status, uint32_t posted) const;
  // Asynchronous errors: errors.cc.
  void OnDisconnected(bool broken) override;
  void OnDropped() override;
  void OnRefusedWrite() override;
  void OnRefusedRead() override;
  void OnDamage(verbs::Damage damage) override;
  void Report(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_DESCRIPTOR* descriptor);

  // Sees to it that RunNotify comes on the callback thread. False: as PostCallback says. Any
  // thread, under any lock.
  bool ServeNotifies(WorkQueue& queue);
  void RunNotify(WorkQueue& queue);
  void RunSendNotify() { RunNotify(sends_); }
  void RunReceiveNotify() { RunNotify(receives_); }

  bool IsBreaking() const;
  void Remember(const VIP_VI_ATTRIBUTES& attributes);
  bool DescriptorIsValid(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory,
                         uint32_t* segments) const;
  bool Admit(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, uint32_t* segments);
  VIP_RETURN AnswerPost(core::Error error, VIP_DESCRIPTOR* descriptor);
  VIP_RETURN AnswerRefusal(core::Error error, VIP_DESCRIPTOR* descriptor);
  void FreeParts();
  // Of the attempt that this thread began: sleeps until it is decided.
  VIP_RETURN AwaitOutcome();
  Turn TakeTurn(Turns::Use use);
  // In the caller's turn: nothing of an attempt before is left.
  void BeginAttempt();
  // To Idle, with everything flushed.
  VIP_RETURN EndConnection();
  VIP_RETURN AwaitPeer(VIP_VI_ATTRIBUTES* peer);
  VIP_RETURN TellPeer(const core::Event& event, VIP_VI_ATTRIBUTES* peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(peer_lock_);

  const core::Ref<Nic> nic_;
  // Its own, for completions of queues without a completion queue, which make no events, and for
  // the outcome of connection attempts.
  const core::Ref<core::EventDispatcher> connect_events_;
  WorkQueue sends_;
  WorkQueue receives_;
  verbs::CallbackErrand<&Vi::RunSendNotify, core::Ref<Vi>> send_service_;
  verbs::CallbackErrand<&Vi::RunReceiveNotify, core::Ref<Vi>> receive_service_;
  core::Ref<core::Endpoint> endpoint_;  // from before ready_
  std::atomic<VIP_PVOID> user_data_{nullptr};
  // A thread is in Connect, Accept or ConnectPeer, and events of connections are its own, or in
  // SetAttributes: the two ends of a connection agree on attributes that stay.
  Turns turns_;
  // Of a request peer to peer: it waits for its outcome to be told, or for the VI to disconnect.
  // Whoever looks and takes the outcome does both under the lock, or is the one waiter, which the
  // next attempt lets leave first: no outcome is taken for another's.
  enum class PeerPhase : uint8_t { kNone, kAsked, kMet };
  verbs::Mutex peer_lock_;
  PeerPhase peer_phase_ ABSL_GUARDED_BY(peer_lock_) = PeerPhase::kNone;
  std::atomic<bool> peer_waiter_{false};  // a thread sleeps in PeerOutcome; set under the lock
  std::atomic<bool> ready_{false};

  mutable verbs::Mutex lock_;  // held over Disconnect, too
  VIP_VI_ATTRIBUTES attributes_ ABSL_GUARDED_BY(lock_) = {};
  // What the data path needs of them; they change in Idle alone.
  std::atomic<VIP_RELIABILITY_LEVEL> level_{0};
  std::atomic<uint32_t> max_transfer_size_{0};
  std::atomic<VIP_PROTECTION_HANDLE> tag_{nullptr};
  mutable Registrations::Last last_region_{nullptr};
};

// Inside an EpochGuard: null unless the handle is that of a whole VI.
inline Vi* FindVi(VIP_VI_HANDLE handle) {
  Vi* vi = core::FindObject<Vi>(handle);
  return vi != nullptr && vi->ready() ? vi : nullptr;
}
inline core::Ref<Vi> ShareVi(VIP_VI_HANDLE handle) {
  core::Ref<Vi> vi = core::ShareObject<Vi>(handle);
  return vi && vi->ready() ? vi : core::Ref<Vi>();
}

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_VI_H_
