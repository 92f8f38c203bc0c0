// Notifier: DAT's CNO. Dispatchers tell it of news, and it tells a waiting thread, the program's
// agent, or a descriptor that is readable.
//
// A trigger that meets no waiter is remembered, once, until somebody takes it; the dispatcher that
// comes with it is a hint: the first of those it stands for, and another attached one once that has
// been freed, since null says that none is left. The agent is called once, at the next trigger, on
// the callback thread.
//
// A waiting thread looks after the dispatchers that are busy itself, for as long as a wait on one
// of them would spin. Then it sleeps on the device's queue of the one that will probably have news
// first, as a wait on that dispatcher does, and has the others armed, of which the control thread
// tells.
//
// Threads: every call from any thread. Its lock is taken with no dispatcher's lock held, and none
// is taken under it. Trigger is called inside an EpochGuard.
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

  // Takes a trigger, or waits for one. `dispatcher` is null when the last dispatcher has been freed
  // under the waiter, or the adapter closed. kQueueEmpty at the deadline, kInterrupted by a signal.
  Error Wait(verbs::Deadline deadline, Handle* dispatcher);
  // Takes a trigger that is there: kQueueEmpty.
  Error Take(Handle* dispatcher);
  // For the triggers from now on. kInvalidState for one with a descriptor; kInvalidHandle while it
  // is being freed, so that the agent under way sets none for its end. Throws std::bad_alloc; a
  // call of the agent needs no memory.
  Error SetAgent(const Agent& agent);
  // kInvalidState while dispatchers refer to it or threads wait. When it has returned, its agent is
  // not called any more, and not at work as far as verbs::AwaitCallback says.
  Error Free();

  // ---- what it shows
  InterfaceAdapter& adapter() const { return *adapter_; }
  Agent agent() const;
  int descriptor() const { return has_descriptor_ ? descriptor_.get() : -1; }

  // ---- the dispatchers' calls
  Error Attach(EventDispatcher& dispatcher);  // kInvalidHandle while it is being freed
  // The last one to be freed sends the waiters away.
  void Detach(EventDispatcher& dispatcher, bool freed);
  void Trigger(Handle dispatcher);
  // What comes to this dispatcher would be told late: the next waiter arms it first.
  void AddUnarmed(EventDispatcher& dispatcher);

  // Waiters and the agent are told null; the handle is dead.
  void Destroy() override;

 private:
  // Lives on the waiting thread's stack as long as it is in waiters_.
  struct Waiter {
    std::unique_ptr<verbs::Parker> parker;
    verbs::CompletionQueue* queue = nullptr;  // it sleeps there, if not null
    Handle dispatcher = nullptr;
    std::atomic<bool> told{false};  // changed under the lock, and then the waiter is forgotten
    bool heard = false;             // its thread knows
    void Tell(Handle teller);
  };
  // Takes it out, however its thread leaves; what it was told and has not heard goes to the next.
  void Leave(Waiter& waiter);
  void TellLocked(Handle dispatcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  Notifier(InterfaceAdapter& adapter, bool with_descriptor);
  ~Notifier() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it
  static Error Publish(Ref<Notifier> notifier, Ref<Notifier>* out);
  using Dispatchers = std::vector<Ref<EventDispatcher>>;
  Dispatchers UnarmedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void ArmDispatchers(EventDispatcher* but = nullptr);
  EventDispatcher* Likeliest(const Dispatchers& busy);
  // Until somebody told the waiter, or it is time to sleep.
  void Spin(const Dispatchers& busy, const Waiter& self, verbs::Deadline deadline);
  // May return early, as if unparked.
  verbs::ParkResult ParkAt(EventDispatcher& busy, const Waiter& self, verbs::Deadline deadline);
  bool TakeLocked(Handle* dispatcher) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // `teller` while its handle is live, else an attached dispatcher's; null without one.
  Handle LiveLocked(Handle teller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // What somebody hears who was told this some time ago: the same, but null stays null.
  Handle ToldLocked(Handle teller) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void TellWaitersLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // The call of an agent that is set, made with it; null: none is.
  class AgentCall;
  static std::unique_ptr<AgentCall> NewCall(const Agent& agent);
  void Post(std::unique_ptr<AgentCall> call, Handle dispatcher);

  const Ref<InterfaceAdapter> adapter_;
  const bool has_descriptor_;
  mutable verbs::Mutex lock_;
  verbs::EventFd descriptor_;
  std::unique_ptr<AgentCall> agent_call_ ABSL_GUARDED_BY(lock_);
  bool freed_ ABSL_GUARDED_BY(lock_) = false;
  bool quiet_ ABSL_GUARDED_BY(lock_) = false;  // by the consumer: no agent is called any more
  bool triggered_ ABSL_GUARDED_BY(lock_) = false;
  Handle trigger_ ABSL_GUARDED_BY(lock_) = nullptr;    // the dispatcher that did it
  Handle awoken_by_ ABSL_GUARDED_BY(lock_) = nullptr;  // the dispatcher that ended the last sleep
  // One that is set again is there twice for a moment.
  std::vector<EventDispatcher*> attached_ ABSL_GUARDED_BY(lock_);
  std::deque<Waiter*> waiters_ ABSL_GUARDED_BY(lock_);
  std::vector<EventDispatcher*> unarmed_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_NOTIFIER_H_
