#include "dat/core/event_dispatcher.h"

#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::core {
namespace {

using verbs::SpinLockHolder;

constexpr int kBatch = 16;

void Translate(const verbs::Completion& completion, Event* event) {
  auto* owner = static_cast<CompletionOwner*>(completion.context);
  if (owner->observer != nullptr) owner->observer->OnCompletion(completion);
  event->type = EventType::kCompletion;
  event->subject = owner->handle;
  event->cookie = completion.id;
  event->opcode = completion.opcode;
  event->status = completion.status;
  event->has_immediate = completion.has_immediate;
  event->solicited = completion.solicited;
  event->length = completion.length;
  event->immediate = completion.immediate;
}

}  // namespace

Error EventDispatcher::Create(InterfaceAdapter& adapter, uint32_t length, uint32_t streams,
                              bool eager, Ref<EventDispatcher>* out) {
  auto dispatcher = Ref<EventDispatcher>::Adopt(new EventDispatcher(adapter, length, streams));
  // Without a sink the device need not look after completions that nobody asks for.
  verbs::CompletionSink* sink = eager ? dispatcher.get() : nullptr;
  auto queue = adapter.context().CreateCompletionQueue(sink);
  if (!queue.ok()) return OutOf(Resource::kDevice);
  dispatcher->queue_ = *std::move(queue);
  if (Error error = adapter.AddChild(dispatcher.get()); !error.ok()) return error;
  *out = std::move(dispatcher);
  return Ok();
}

EventDispatcher::EventDispatcher(InterfaceAdapter& adapter, uint32_t length, uint32_t streams)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      streams_(streams),
      length_(length) {}

EventDispatcher::~EventDispatcher() = default;

bool EventDispatcher::TakeLocked(Event* event) {
  if (!events_.empty()) {
    *event = events_.Front();
    events_.Pop();
    return true;
  }
  verbs::Completion batch[kBatch];
  int n = queue_->Poll(batch, kBatch);
  if (n == 0) return false;
  Translate(batch[0], event);
  for (int i = 1; i < n; ++i) {
    Event later;
    Translate(batch[i], &later);
    events_.Push(later);
  }
  return true;
}

void EventDispatcher::HarvestLocked() {
  verbs::Completion batch[kBatch];
  int n;
  do {
    n = queue_->Poll(batch, kBatch);
    for (int i = 0; i < n; ++i) {
      Event event;
      Translate(batch[i], &event);
      events_.Push(event);
    }
  } while (n == kBatch);
}

Error EventDispatcher::Dequeue(Event* event) {
  if (owned_.load(std::memory_order_relaxed)) {
    return InvalidState(StateDetail::kDispatcherHasWaiter);
  }
  SpinLockHolder lock(&lock_);
  return TakeLocked(event) ? Ok() : Error(Code::kQueueEmpty);
}

bool EventDispatcher::Take(const WaitOptions& options, Event* event, uint32_t* more) {
  SpinLockHolder lock(&lock_);
  if (options.threshold <= 1 && more == nullptr) return TakeLocked(event);
  HarvestLocked();
  bool enough = events_.size() >= options.threshold;
  if (enough) {
    *event = events_.Front();
    events_.Pop();
  }
  if (more != nullptr) *more = static_cast<uint32_t>(events_.size());
  return enough;
}

Error EventDispatcher::Wait(verbs::Deadline deadline, const WaitOptions& options, Event* event,
                            uint32_t* more) {
  if (options.threshold == 0 || options.threshold > length()) return InvalidParameter(3);
  if (!waitable()) return InvalidState(StateDetail::kDispatcherUnwaitable);
  if (options.exclusive && owned_.exchange(true, std::memory_order_acquire)) {
    return InvalidState(StateDetail::kDispatcherHasWaiter);
  }
  waiters_.fetch_add(1);
  Error error = WaitOwned(deadline, options, event, more);
  waiters_.fetch_sub(1);
  if (options.exclusive) owned_.store(false, std::memory_order_release);
  return error;
}

Error EventDispatcher::WaitOwned(verbs::Deadline deadline, const WaitOptions& options, Event* event,
                                 uint32_t* more) {
  verbs::WaitResult last = verbs::WaitResult::kReady;
  for (;;) {
    const uint32_t wakes = queue_->wakes();
    if (aborted_.load()) return Code::kAbort;
    if (!waitable()) return InvalidState(StateDetail::kDispatcherUnwaitable);
    if (Take(options, event, more)) return Ok();
    if (last == verbs::WaitResult::kTimedOut) return Code::kTimeout;
    if (last == verbs::WaitResult::kInterrupted && options.interruptible) {
      return Code::kInterrupted;
    }
    last = queue_->Wait(deadline, wakes);
  }
}

void EventDispatcher::OnCompletions(verbs::CompletionQueue& queue) {
  {
    SpinLockHolder lock(&lock_);
    HarvestLocked();
  }
  if (waiters_.load() != 0) queue.Wake();
}

Error EventDispatcher::PostSoftware(void* pointer) {
  if ((streams_ & kSoftwareStream) == 0) return InvalidParameter(1);
  Event event;
  event.type = EventType::kSoftware;
  event.pointer = pointer;
  {
    SpinLockHolder lock(&lock_);
    if (events_.size() >= length_) return Code::kQueueFull;
    events_.Push(event);
  }
  queue_->Wake();
  return Ok();
}

Error EventDispatcher::Post(const Event& event) {
  {
    SpinLockHolder lock(&lock_);
    HarvestLocked();
    if (event.type == EventType::kConnectionRequest && events_.size() >= length_) {
      return Code::kQueueFull;
    }
    events_.Push(event);
  }
  queue_->Wake();
  return Ok();
}

void EventDispatcher::Harvest() {
  SpinLockHolder lock(&lock_);
  HarvestLocked();
}

void EventDispatcher::Forget(Handle subject) {
  SpinLockHolder lock(&lock_);
  HarvestLocked();
  events_.RemoveIf([subject](const Event& event) { return event.subject == subject; });
}

void EventDispatcher::Remove(Handle subject, uint64_t cookie) {
  SpinLockHolder lock(&lock_);
  bool removed = false;
  events_.RemoveIf([&](const Event& event) {
    if (removed || event.type != EventType::kCompletion || event.subject != subject ||
        event.cookie != cookie) {
      return false;
    }
    return removed = true;
  });
}

Error EventDispatcher::SetWaitable(bool waitable) {
  waitable_.store(waitable);
  if (!waitable) queue_->Wake();
  return Ok();
}

void EventDispatcher::SetEnabled(bool enabled) {
  enabled_.store(enabled, std::memory_order_relaxed);
}

Error EventDispatcher::Resize(uint32_t length) {
  SpinLockHolder lock(&lock_);
  HarvestLocked();
  if (events_.size() > length) return InvalidState(StateDetail::kDispatcherInUse);
  length_ = length;
  return Ok();
}

uint32_t EventDispatcher::length() const {
  SpinLockHolder lock(&lock_);
  return length_;
}

bool EventDispatcher::waitable() const { return waitable_.load(); }

uint32_t EventDispatcher::Queued() {
  SpinLockHolder lock(&lock_);
  HarvestLocked();
  return static_cast<uint32_t>(events_.size());
}

Error EventDispatcher::Free() {
  if (feeders_.load(std::memory_order_acquire) != 0) {
    return InvalidState(StateDetail::kDispatcherInUse);
  }
  if (waiters_.load() != 0) return InvalidState(StateDetail::kDispatcherHasWaiter);
  Destroy();
  return Ok();
}

void EventDispatcher::Destroy() {
  if (!HandleTable::Erase(handle(), kType)) return;
  adapter_->RemoveChild(this);
  aborted_.store(true);
  queue_->Wake();
  DropReference();
}

}  // namespace viaduct::core
