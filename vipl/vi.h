// Vi: what VipCreateVi returns. It wraps an endpoint and sees its completions before anybody can
// take them: at that moment it writes Length, ImmediateData and Status of the descriptor.
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
  // Returns kError to a caller that has seen a descriptor flushed by the end of the connection.
  // When it returns kError, all posted descriptors have been flushed, and Done finds them. It may
  // wait for the executor, so it must not be called inside an EpochGuard.
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

  // Callbacks: notify.cc. A queue that has a completion queue allows none.
  VIP_RETURN Notify(WorkQueue& queue, const ViNotifies::Registration& registration);

  // Connections: connect.cc. Connect and ConnectPeer fill in the profile of `header` and `request`
  // with the attributes that the connection has.
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
  // False until the VI is complete: a program can guess its handle before VipCreateVi has returned.
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  void OnNicClosed() override;

 private:
  Vi(const core::Ref<Nic>& nic, const core::Ref<core::EventDispatcher>& dispatcher,
     const core::Ref<Cq>& send_cq, const core::Ref<Cq>& receive_cq);
  ~Vi() override;

  bool OnCompletion(const verbs::Completion& completion) override;
  // The error bits of a descriptor that failed or was posted with an error. `posted`: that error or
  // 0.
  uint32_t ErrorOf(verbs::Status status, uint32_t posted) const;
  // Asynchronous errors: errors.cc.
  void OnDisconnected(bool broken) override;
  void OnDropped() override;
  void OnRefusedWrite() override;
  void OnRefusedRead() override;
  void OnDamage(verbs::Damage damage) override;
  void Report(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_DESCRIPTOR* descriptor);

  // Makes sure that RunNotifies will run on the callback thread. False: for one of PostCallback's
  // reasons it will not. Any thread, under any lock.
  bool ServeNotifies();
  void RunNotifies();
  void RunNotify(WorkQueue& queue);

  bool IsBreaking() const;
  // Those of the VI at the other end, once connected.
  VIP_VI_ATTRIBUTES PeerAttributes() const;
  void Remember(const VIP_VI_ATTRIBUTES& attributes);
  bool DescriptorIsValid(const VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory,
                         uint32_t* segments) const;
  bool Admit(VIP_DESCRIPTOR* descriptor, VIP_MEM_HANDLE memory, uint32_t* segments);
  VIP_RETURN AnswerPost(core::Error error, VIP_DESCRIPTOR* descriptor);
  VIP_RETURN AnswerRefusal(core::Error error, VIP_DESCRIPTOR* descriptor);
  void FreeParts();
  // Sleeps until the attempt that this thread began is decided.
  VIP_RETURN AwaitOutcome();
  // Marks what is flushed already, also where it goes to completion queues: a program may look at
  // its descriptors, or take their memory back, as soon as the call that flushed them returns.
  void MarkFlushed();
  Turn TakeTurn(Turns::Use use);
  // VipDestroyVi or VipCloseNic has ended the endpoint.
  bool HasEnded() const;
  // The answer to a call in the wrong state: VIP_INVALID_STATE, or VIP_INVALID_PARAMETER if the VI
  // has ended since the caller found it.
  VIP_RETURN WrongState() const;
  // Whether the VI's state and this turn allow `call`; VIP_INVALID_PARAMETER as above.
  VIP_RETURN CheckTurn(const Turn& turn, compat::ViCall call) const;
  // Why the engine has not begun the attempt; the VI may have ended meanwhile.
  VIP_RETURN ResultOfAttempt(core::Error error) const;
  // In the caller's turn: clears away what an earlier attempt has left.
  void BeginAttempt();
  // Takes the VI to Idle, with everything flushed.
  VIP_RETURN EndConnection();
  VIP_RETURN AwaitPeer(VIP_VI_ATTRIBUTES* peer);
  VIP_RETURN TellPeer(const core::Event& event, VIP_VI_ATTRIBUTES* peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(peer_lock_);

  const core::Ref<Nic> nic_;
  // The VI's own dispatcher, for the completions of queues without a completion queue, which make
  // no events, and for the outcome of connection attempts.
  const core::Ref<core::EventDispatcher> connect_events_;
  WorkQueue sends_;
  WorkQueue receives_;
  verbs::CallbackErrand<&Vi::RunNotifies, core::Ref<Vi>> notify_service_;
  core::Ref<core::Endpoint> endpoint_;  // set before ready_
  std::atomic<VIP_PVOID> user_data_{nullptr};
  // Taken by a thread in Connect, Accept or ConnectPeer, to which connection events then belong, or
  // in SetAttributes: attributes on which the two ends of a connection agree must not change.
  Turns turns_;
  // A peer-to-peer request waits for its outcome to be reported (kAsked), then for the VI to
  // disconnect (kMet). A thread checks for the outcome and takes it under one hold of the lock, or
  // it is the only waiter, which the next attempt lets leave first. So no outcome is mistaken for
  // that of another attempt.
  enum class PeerPhase : uint8_t { kNone, kAsked, kMet };
  verbs::Mutex peer_lock_;
  PeerPhase peer_phase_ ABSL_GUARDED_BY(peer_lock_) = PeerPhase::kNone;
  std::atomic<bool> peer_waiter_{false};  // a thread sleeps in PeerOutcome; set under the lock
  std::atomic<bool> ready_{false};

  mutable verbs::Mutex lock_;  // also held across EndConnection
  VIP_VI_ATTRIBUTES attributes_ ABSL_GUARDED_BY(lock_) = {};
  // Copies of the attributes that the data path needs; they change only in Idle.
  std::atomic<VIP_RELIABILITY_LEVEL> level_{0};
  std::atomic<uint32_t> max_transfer_size_{0};
  std::atomic<VIP_PROTECTION_HANDLE> tag_{nullptr};
  const bool all_immediate_;  // VIADUCT_IMMEDIATE
  mutable Registrations::Last last_region_{nullptr};
};

// Inside an EpochGuard. Null unless the handle is that of a complete VI.
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
