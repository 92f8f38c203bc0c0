#include "dat/core/notifier.h"

#include <algorithm>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/core/catch_up.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "verbs/base/callback_thread.h"

namespace viaduct::core {

using verbs::MutexLock;

namespace {

constexpr size_t kLooks = 32;  // polls of dispatchers between two checks of the clock
// So often may a sleep end without news for the waiter: a dispatcher that is full, or has only
// completions that do not notify, would wake it for ever.
constexpr int kMostEarly = 16;

}  // namespace

class Notifier::AgentCall final : public verbs::PreparedCallback {
 public:
  explicit AgentCall(const Agent& agent) : agent_(agent) {}

  const Agent& agent() const { return agent_; }
  // Of `self`, whose dispatcher triggered it.
  void SetTrigger(Ref<Notifier> self, Handle dispatcher) {
    self_ = std::move(self);
    dispatcher_ = dispatcher;
  }

 private:
  const void* about() const override { return self_.get(); }
  void Run() override {
    const std::unique_ptr<AgentCall> ended(this);
    Handle told;
    {
      MutexLock lock(&self_->lock_);
      if (self_->quiet_) return;
      told = self_->freed_ ? nullptr : self_->ToldLocked(dispatcher_);
    }
    agent_.function(agent_.instance, told);
  }
  void Drop() override { delete this; }

  const Agent agent_;
  Ref<Notifier> self_;
  Handle dispatcher_ = nullptr;
};

std::unique_ptr<Notifier::AgentCall> Notifier::NewCall(const Agent& agent) {
  if (agent.function == nullptr) return nullptr;
  verbs::PrepareCallbacks();
  return std::make_unique<AgentCall>(agent);
}

Error Notifier::Create(InterfaceAdapter& adapter, const Agent& agent, Ref<Notifier>* out) {
  return Publish(Ref<Notifier>::Adopt(new Notifier(adapter, NewCall(agent), false)), out);
}

Error Notifier::CreateWithDescriptor(InterfaceAdapter& adapter, Ref<Notifier>* out) {
  return Publish(Ref<Notifier>::Adopt(new Notifier(adapter, nullptr, true)), out);
}

Error Notifier::Publish(Ref<Notifier> notifier, Ref<Notifier>* out) {
  if (notifier->has_descriptor_ && !notifier->descriptor_.valid()) return OutOf(Resource::kDevice);
  Error error = notifier->adapter_->AddChild(notifier.get());
  if (error.ok()) *out = std::move(notifier);
  return error;
}

Notifier::Notifier(InterfaceAdapter& adapter, std::unique_ptr<AgentCall> call, bool with_descriptor)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      has_descriptor_(with_descriptor),
      agent_call_(std::move(call)) {
  if (with_descriptor) descriptor_ = verbs::EventFd::Open();
}

Notifier::~Notifier() = default;

Notifier::Agent Notifier::agent() const {
  MutexLock lock(&lock_);
  return agent_call_ != nullptr ? agent_call_->agent() : Agent();
}

// ------------------------------------------------------------------------------ taking

Notifier::Dispatchers Notifier::UnarmedLocked() const {
  Dispatchers unarmed;
  // Each of them is alive: a dispatcher detaches before its end.
  for (EventDispatcher* d : unarmed_) unarmed.push_back(Ref<EventDispatcher>::Share(d));
  return unarmed;
}

// A dispatcher that was polled, or has reported news, may report the next up to a tick late.
void Notifier::ArmDispatchers(EventDispatcher* but) {
  Dispatchers unarmed;
  {
    MutexLock lock(&lock_);
    unarmed = UnarmedLocked();
    const bool stays = std::find(unarmed_.begin(), unarmed_.end(), but) != unarmed_.end();
    unarmed_.clear();
    if (stays) unarmed_.push_back(but);
  }
  for (const Ref<EventDispatcher>& dispatcher : unarmed) {
    if (dispatcher.get() != but) dispatcher->Arm();
  }
}

// Dispatchers that are not busy are armed: the control thread reports their news.
void Notifier::Spin(const Dispatchers& busy, const Waiter& self, verbs::Deadline deadline) {
  const verbs::Nanos spin = adapter_->context().spin_time();
  if (spin == 0 || busy.empty()) return;
  const size_t rounds = std::max<size_t>(kLooks / busy.size(), 1);
  const verbs::Clock& clock = adapter_->executor();
  const verbs::Nanos end = clock.Now() + spin;
  do {
    for (size_t i = 0; i < rounds; ++i) {
      for (const Ref<EventDispatcher>& dispatcher : busy) dispatcher->Look();
      if (self.told.load(std::memory_order_relaxed)) return;
    }
  } while (clock.Now() < end && !deadline.Passed(clock));
}

verbs::ParkResult Notifier::ParkAt(EventDispatcher& busy, const Waiter& self,
                                   verbs::Deadline deadline) {
  verbs::CompletionQueue& queue = busy.device_queue();
  const uint32_t wakes = queue.wakes();
  busy.Look();
  if (self.told.load(std::memory_order_relaxed)) return verbs::ParkResult::kUnparked;
  switch (queue.Wait(deadline, wakes)) {
    case verbs::WaitResult::kReady:
      busy.Look();  // also if the waiter has been told of something else, which ends its wait
      break;
    case verbs::WaitResult::kWoken:
      break;
    case verbs::WaitResult::kInterrupted:
      return verbs::ParkResult::kInterrupted;
    case verbs::WaitResult::kTimedOut:
      busy.Look();
      return verbs::ParkResult::kTimedOut;
  }
  return verbs::ParkResult::kUnparked;
}

void Notifier::Waiter::Tell(Handle teller) {
  dispatcher = teller;
  told.store(true, std::memory_order_relaxed);
  if (queue != nullptr) {
    queue->Wake();
  } else {
    parker->Unpark();
  }
}

Handle Notifier::LiveLocked(Handle teller) const {
  const auto is_live = [](Handle handle) {
    return HandleTable::TypeOf(handle) == ObjectType::kEventDispatcher;
  };
  if (is_live(teller)) return teller;
  for (const EventDispatcher* attached : attached_) {
    if (is_live(attached->handle())) return attached->handle();
  }
  return nullptr;
}

Handle Notifier::ToldLocked(Handle teller) const {
  return teller == nullptr ? nullptr : LiveLocked(teller);
}

bool Notifier::TakeLocked(Handle* dispatcher) {
  if (!triggered_) return false;
  triggered_ = false;
  *dispatcher = LiveLocked(std::exchange(trigger_, nullptr));
  if (has_descriptor_) descriptor_.Clear();
  return true;
}

// Of several, the one that ended the last sleep will probably end the next one.
EventDispatcher* Notifier::Likeliest(const Dispatchers& busy) {
  MutexLock lock(&lock_);
  for (const Ref<EventDispatcher>& dispatcher : busy) {
    if (busy.size() == 1 || dispatcher->handle() == awoken_by_) return dispatcher.get();
  }
  return nullptr;
}

Error Notifier::Wait(verbs::Deadline deadline, Handle* dispatcher) {
  *dispatcher = nullptr;
  {
    MutexLock lock(&lock_);
    if (TakeLocked(dispatcher)) return Ok();
  }
  Waiter self;
  self.parker = adapter_->executor().NewParker();
  Dispatchers busy;
  {
    MutexLock lock(&lock_);
    if (TakeLocked(dispatcher) || freed_) return Ok();
    busy = UnarmedLocked();
    waiters_.push_back(&self);
  }
  const absl::Cleanup leave = [&] { Leave(self); };
  if (busy.size() > 1) Spin(busy, self, deadline);
  const bool spun = self.told.load(std::memory_order_relaxed);
  EventDispatcher* own = nullptr;
  if (!spun) {
    own = Likeliest(busy);
    ArmDispatchers(own);
    MutexLock lock(&lock_);
    if (own != nullptr && !self.told) self.queue = &own->device_queue();
  }
  for (int early = 0;; ++early) {
    const verbs::ParkResult result =
        self.queue != nullptr ? ParkAt(*own, self, deadline) : self.parker->Park(deadline);
    if (result == verbs::ParkResult::kTimedOut && CatchUp(adapter_->executor(), deadline) &&
        own != nullptr) {
      own->Look();
    }
    {
      MutexLock lock(&lock_);
      if (self.told) {
        self.heard = true;
        *dispatcher = ToldLocked(self.dispatcher);
        if (!spun) awoken_by_ = self.dispatcher;
        return Ok();
      }
      if (result != verbs::ParkResult::kUnparked) {
        return result == verbs::ParkResult::kTimedOut ? Code::kQueueEmpty : Code::kInterrupted;
      }
      if (self.queue == nullptr || early < kMostEarly) continue;
      self.queue = nullptr;
    }
    ArmDispatchers();
  }
}

void Notifier::Leave(Waiter& waiter) {
  MutexLock lock(&lock_);
  if (!waiter.told) {
    waiters_.erase(std::find(waiters_.begin(), waiters_.end(), &waiter));
  } else if (!waiter.heard && !freed_) {
    TellLocked(waiter.dispatcher);
  }
}

Error Notifier::Take(Handle* dispatcher) {
  *dispatcher = nullptr;
  // Arm first: so what is there by now is found, and what comes later sets the descriptor at once.
  ArmDispatchers();
  MutexLock lock(&lock_);
  return TakeLocked(dispatcher) ? Ok() : Error(Code::kQueueEmpty);
}

Error Notifier::SetAgent(const Agent& agent) {
  if (has_descriptor_) return InvalidState(StateDetail::kNone);
  std::unique_ptr<AgentCall> call = NewCall(agent);  // and then the one before
  {
    MutexLock lock(&lock_);
    if (freed_) return InvalidHandle<Notifier>();
    agent_call_.swap(call);
  }
  try {
    ArmDispatchers();
  } catch (const std::bad_alloc&) {  // the agent is set, but may be called a tick late
  }
  return Ok();
}

// ----------------------------------------------------------------------------- telling

void Notifier::Trigger(Handle dispatcher) {
  std::unique_ptr<AgentCall> call;
  {
    MutexLock lock(&lock_);
    if (freed_) return;
    call = std::move(agent_call_);
    TellLocked(dispatcher);
  }
  Post(std::move(call), dispatcher);
}

void Notifier::TellLocked(Handle dispatcher) {
  if (!waiters_.empty()) {
    Waiter* waiter = waiters_.front();
    waiters_.pop_front();
    waiter->Tell(dispatcher);
  } else if (!triggered_) {
    triggered_ = true;
    trigger_ = dispatcher;
    if (has_descriptor_) descriptor_.Set();
  }
}

void Notifier::Post(std::unique_ptr<AgentCall> call, Handle dispatcher) {
  if (call == nullptr) return;
  call->SetTrigger(Ref<Notifier>::Share(this), dispatcher);
  if (verbs::PostCallback(*call)) static_cast<void>(call.release());
}

void Notifier::TellWaitersLocked() {
  for (Waiter* waiter : waiters_) waiter->Tell(nullptr);
  waiters_.clear();
}

void Notifier::AddUnarmed(EventDispatcher& dispatcher) {
  MutexLock lock(&lock_);
  // It may be in there already, if it was armed by other means than ArmDispatchers.
  if (std::find(unarmed_.begin(), unarmed_.end(), &dispatcher) != unarmed_.end()) return;
  unarmed_.push_back(&dispatcher);
}

Error Notifier::Attach(EventDispatcher& dispatcher) {
  MutexLock lock(&lock_);
  if (freed_) return InvalidHandle<Notifier>();
  // AddUnarmed must not need memory, since nobody would repeat the call.
  if (unarmed_.capacity() <= attached_.size()) unarmed_.reserve(2 * attached_.size() + 1);
  attached_.push_back(&dispatcher);
  return Ok();
}

void Notifier::Detach(EventDispatcher& dispatcher, bool freed) {
  std::unique_ptr<AgentCall> call;
  {
    MutexLock lock(&lock_);
    unarmed_.erase(std::remove(unarmed_.begin(), unarmed_.end(), &dispatcher), unarmed_.end());
    attached_.erase(std::find(attached_.begin(), attached_.end(), &dispatcher));
    if (!attached_.empty() || !freed) return;
    TellWaitersLocked();
    call = std::move(agent_call_);
  }
  Post(std::move(call), nullptr);
}

// --------------------------------------------------------------------------------- end

Error Notifier::Free() {
  {
    MutexLock lock(&lock_);
    if (!attached_.empty() || !waiters_.empty()) return InvalidState(StateDetail::kNotifierInUse);
    agent_call_ = nullptr;
    freed_ = quiet_ = true;
  }
  // An agent that is running may use what the program frees next.
  verbs::AwaitCallback(this);
  return End();
}

void Notifier::ReleaseWaiters() {
  MutexLock lock(&lock_);
  freed_ = true;
  TellWaitersLocked();
}

void Notifier::Destroy() {
  (void)End();
  // As above; an agent that is not running yet is told of the end.
  verbs::AwaitCallback(this);
}

Error Notifier::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<Notifier>();
  adapter_->RemoveChild(this);
  std::unique_ptr<AgentCall> call;
  {
    MutexLock lock(&lock_);
    freed_ = true;
    call = std::move(agent_call_);
    TellWaitersLocked();
  }
  Post(std::move(call), nullptr);
  DropReference();
  return Ok();
}

}  // namespace viaduct::core
