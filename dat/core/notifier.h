// Notifier: DAT's CNO. Dispatchers report news to it, and it wakes a waiting thread, calls the
// program's agent, or makes a descriptor readable.
//
// A trigger that meets no waiter is remembered until somebody takes it; further ones until then add
// nothing. The dispatcher that comes with it is a hint: the first one that triggered or, if that
// was freed since, another attached one, because null says that none is left. An agent is called
// once, at the next trigger, on the callback thread.
//
// A waiting thread polls the busy dispatchers itself, for as long as a wait on one of them would
// spin. Then it arms all of them except the one that will probably have news first, and sleeps on
// that one's device queue, as a wait on that dispatcher does. The control thread reports news of
// the armed ones.
//
// Threads: every call from any thread. The notifier's lock is taken with no dispatcher's lock held,
// and no dispatcher's lock is taken under it; the adapter's may be held. Trigger is called inside
// an EpochGuard.
#ifndef VIADUCT_DAT_CORE_NOTIFIER_H_
#define VIADUCT_DAT_CORE_NOTIFIER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "dat/core/error.h"
#include "dat/core/object.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_fd.h"
#include "verbs/base/executor.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class EventDispatcher;
class InterfaceAdapter;

class Notifier final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kNotifier;

  struct Agent {
    void (*function)(void* instance, Handle dispatcher) = nullptr;  // null: none
    void* instance = nullptr;
  };
  static Error Create(InterfaceAdapter& adapter, const Agent& agent, Ref<Notifier>* out);
  // With a descriptor in place of an agent.
  static Error CreateWithDescriptor(InterfaceAdapter& adapter, Ref<Notifier>* out);

  // ---- the consumer's calls

  // Takes a trigger, or waits for one. `dispatcher` is null if the last dispatcher was freed during
  // the wait, or the adapter was closed. kQueueEmpty at the deadline, kInterrupted by a signal.
  Error Wait(verbs::Deadline deadline, Handle* dispatcher);
  // Takes a remembered trigger; kQueueEmpty if there is none.
  Error Take(Handle* dispatcher);
  // Sets the agent for the next trigger; calling it then needs no memory. kInvalidState for a
  // notifier with a descriptor; kInvalidHandle while it is being freed, so that an agent that is
  // running then cannot set one that its end would call. Throws std::bad_alloc.
  Error SetAgent(const Agent& agent);
  // kInvalidState while dispatchers refer to it or threads wait. After the return its agent is not
  // called any more, and does not run any more as far as verbs::AwaitCallback guarantees that.
  Error Free();

  // ---- what it shows
  InterfaceAdapter& adapter() const { return *adapter_; }
  Agent agent() const;
  int descriptor() const { return has_descriptor_ ? descriptor_.get() : -1; }

  // ---- the dispatchers' calls
  Error Attach(EventDispatcher& dispatcher);  // kInvalidHandle while the notifier is being freed
  // When the last dispatcher is freed, waiters and the agent get null.
  void Detach(EventDispatcher& dispatcher, bool freed);
  void Trigger(Handle dispatcher);
  // News of this dispatcher may now be reported late: the next waiter polls or arms it first.
  void AddUnarmed(EventDispatcher& dispatcher);

  // ---- the adapter's calls, when it is closed
  // Waiters get null, and nobody waits any more. Destroy follows.
  void ReleaseWaiters();
  // Waiters and the agent get null; the handle is dead. Waits for an agent that is running.
  void Destroy() override;

 private:
  // Lives on the waiting thread's stack as long as it is in waiters_.
  struct Waiter {
    std::unique_ptr<verbs::Parker> parker;
    verbs::CompletionQueue* queue = nullptr;  // where it sleeps; null: on `parker`
    Handle dispatcher = nullptr;
    std::atomic<bool> told{false};  // set under the lock, when the waiter leaves waiters_
    bool heard = false;             // its thread has taken what it was told
    void Tell(Handle teller);
  };
  // Removes a waiter, however its thread leaves; a trigger that it did not take goes to the next.
  void Leave(Waiter& waiter);
  void TellLocked(Handle dispatcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  // The call of the agent, made when the agent is set.
  class AgentCall;
  static std::unique_ptr<AgentCall> NewCall(const Agent& agent);  // null: no agent
  Notifier(InterfaceAdapter& adapter, std::unique_ptr<AgentCall> call, bool with_descriptor);
  ~Notifier() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it
  static Error Publish(Ref<Notifier> notifier, Ref<Notifier>* out);
  using Dispatchers = std::vector<Ref<EventDispatcher>>;
  Dispatchers UnarmedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void ArmDispatchers(EventDispatcher* but = nullptr);
  EventDispatcher* Likeliest(const Dispatchers& busy);
  // Polls until the waiter is told, or it is time to sleep.
  void Spin(const Dispatchers& busy, const Waiter& self, verbs::Deadline deadline);
  // Sleeps on the device's queue of `busy`. May return early, as if unparked.
  verbs::ParkResult ParkAt(EventDispatcher& busy, const Waiter& self, verbs::Deadline deadline);
  bool TakeLocked(Handle* dispatcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `teller` if its handle is live, else the handle of an attached dispatcher; null if there is
  // none.
  Handle LiveLocked(Handle teller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The same for a waiter or agent that was told `teller` some time ago: null stays null.
  Handle ToldLocked(Handle teller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void TellWaitersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void Post(std::unique_ptr<AgentCall> call, Handle dispatcher);

  const Ref<InterfaceAdapter> adapter_;
  const bool has_descriptor_;
  mutable verbs::Mutex lock_;
  verbs::EventFd descriptor_;
  std::unique_ptr<AgentCall> agent_call_ ABSL_GUARDED_BY(lock_);
  bool freed_ ABSL_GUARDED_BY(lock_) = false;
  bool quiet_ ABSL_GUARDED_BY(lock_) = false;  // freed by the consumer: no agent is called any more
  bool triggered_ ABSL_GUARDED_BY(lock_) = false;
  Handle trigger_ ABSL_GUARDED_BY(lock_) = nullptr;    // the dispatcher that triggered
  Handle awoken_by_ ABSL_GUARDED_BY(lock_) = nullptr;  // the dispatcher that ended the last sleep
  // A dispatcher whose notifier is set to this one again is in here twice for a moment.
  std::vector<EventDispatcher*> attached_ ABSL_GUARDED_BY(lock_);
  std::deque<Waiter*> waiters_ ABSL_GUARDED_BY(lock_);
  std::vector<EventDispatcher*> unarmed_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_NOTIFIER_H_
