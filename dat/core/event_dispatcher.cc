#include "dat/core/event_dispatcher.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/core/catch_up.h"
#include "dat/core/connection_request.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/notifier.h"
#include "dat/core/probes.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {
namespace {

using verbs::PassLockHolder;

// Least room of an eager dispatcher: a harvest polls as many completions as there is room for, even
// if an observer keeps them, and polls again if it got that many.
constexpr uint32_t kFewest = 4;

// No more than there is room for, since a consumer's call must not allocate.
int BatchOf(uint32_t length) {
  return static_cast<int>(std::min<uint32_t>(EventDispatcher::kBatch, length));
}

CompletionOwner& OwnerOf(const verbs::Completion& completion) {
  return *static_cast<CompletionOwner*>(completion.context);
}

// Shows the completion to its observer. False: the observer keeps it.
ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool BecomesEvent(const verbs::Completion& completion) {
  const CompletionOwner& owner = OwnerOf(completion);
  ProbeCompletion(owner.handle, completion);
  CompletionObserver* const observer = owner.observer.load(std::memory_order_acquire);
  return observer == nullptr || observer->OnCompletion(completion);
}

// A bind's completion carries a number, by which its table knows what the event shows.
[[gnu::noinline, gnu::cold]] void ShowBind(BindTable& binds, Event* event) {
  const BindTable::Entry bind = binds.Take(event->cookie);
  event->subject = bind.window;
  event->cookie = bind.cookie;
}

inline void Translate(const verbs::Completion& completion, Event* event) {
  CompletionOwner& owner = OwnerOf(completion);
  event->type = EventType::kCompletion;
  event->subject = owner.handle;
  event->cookie = completion.id;
  if (completion.opcode == verbs::Opcode::kBind) [[unlikely]]
    ShowBind(*owner.binds, event);
  event->opcode = completion.opcode;
  event->status = completion.status;
  event->has_immediate = completion.has_immediate;
  event->solicited = completion.solicited;
  event->notifies = !completion.quiet || completion.status != verbs::Status::kSuccess;
  if (IsReceive(completion.opcode) && completion.status == verbs::Status::kSuccess) {
    owner.counts.AddWithBytes(completion.opcode == verbs::Opcode::kReceiveWrite
                                  ? EndpointCount::kImmediates
                                  : EndpointCount::kReceives,
                              completion.length);
    if (owner.solicited_only.load(std::memory_order_relaxed)) [[unlikely]] {
      event->notifies = completion.solicited;
    }
  }
  event->length = completion.length;
  event->immediate = completion.immediate;
}

}  // namespace

Error EventDispatcher::Create(InterfaceAdapter& adapter, uint32_t length, uint32_t streams,
                              bool eager, Ref<EventDispatcher>* out) {
  auto dispatcher =
      Ref<EventDispatcher>::Adopt(new EventDispatcher(adapter, length, streams, eager));
  // Without a sink the device need not report completions that nobody polls.
  verbs::CompletionSink* sink = eager ? dispatcher.get() : nullptr;
  auto queue = adapter.context().CreateCompletionQueue(sink);
  if (!queue.ok()) return OutOf(Resource::kDevice);
  dispatcher->queue_ = *std::move(queue);
  if (Error error = adapter.AddChild(dispatcher.get()); !error.ok()) return error;
  *out = std::move(dispatcher);
  return Ok();
}

EventDispatcher::EventDispatcher(InterfaceAdapter& adapter, uint32_t length, uint32_t streams,
                                 bool eager)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      streams_(streams),
      eager_(eager),
      takes_all_(eager),
      length_(length),
      batch_(BatchOf(length)) {
  events_.Reserve(eager ? std::max(length, kFewest) : length);
}

EventDispatcher::~EventDispatcher() = default;

void EventDispatcher::PushLocked(const Event& event) {
  events_.Push(event);
  notices_ += event.notifies;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline void EventDispatcher::QueueLocked(
    const verbs::Completion* completions, int n) {
  for (int i = 0; i < n; ++i) {
    if (!BecomesEvent(completions[i])) continue;
    Event event;
    Translate(completions[i], &event);
    PushLocked(event);
  }
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool EventDispatcher::DealLocked(
    const verbs::Completion* completions, int n, Event* event) {
  for (int i = 0; i < n; ++i) {
    if (!BecomesEvent(completions[i])) continue;
    Translate(completions[i], event);
    if (i + 1 < n) QueueLocked(completions + i + 1, n - i - 1);
    return true;
  }
  return false;
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool EventDispatcher::TakeLocked(Event* event, bool* taken,
                                                                     bool* overflows) {
  *taken = PopQueued(event);
  if (*taken) {
    if (overflowed_) [[unlikely]]
      *overflows = FindOverflowLocked(/*taken=*/true);
    return false;
  }
  verbs::Completion batch[kBatch];
  int n;
  bool came = false;
  do {
    n = queue_->PollLocked(batch, batch_);
    counts_.Add(DispatcherCount::kPolls);
    if (n == 0) break;
    counts_.Add(DispatcherCount::kPollsFound);
    came = true;
    *taken = DealLocked(batch, n, event);
  } while (n == batch_ && !*taken);
  if (n == batch_ || overflowed_) [[unlikely]]
    *overflows = FindOverflowLocked(*taken);
  return came;
}

// A consumer that takes one event at a time lets the others wait in the device. To find out whether
// they all fit, takes as many from there as there is room for.
bool EventDispatcher::FindOverflowLocked(bool taken) {
  if (eager_) return false;
  verbs::Completion completion;
  while (events_.size() < length_ && queue_->PollLocked(&completion, 1) == 1) {
    QueueLocked(&completion, 1);
  }
  return OverflowsLocked(taken);
}

// Takes everything that the device has; if memory is exhausted, the rest waits there.
bool EventDispatcher::HarvestLocked() {
  verbs::Completion batch[kBatch];
  int n, room;
  bool came = false;
  do {
    room = static_cast<int>(std::min<size_t>(kBatch, events_.MakeRoom()));
    if (room == 0) break;
    n = queue_->PollLocked(batch, room);
    QueueLocked(batch, n);
    came = came || n != 0;
  } while (n == room);
  return came;
}

bool EventDispatcher::HarvestSomeLocked() {
  verbs::Completion completion;
  bool came = false;
  while (events_.size() <= length_ && events_.MakeRoom() != 0 &&
         queue_->PollLocked(&completion, 1) == 1) {
    came = true;
    QueueLocked(&completion, 1);
  }
  return came;
}

bool EventDispatcher::OverflowsLocked(bool taken) {
  if (eager_) return false;
  const bool overflows = events_.size() + taken > length_;
  const bool news = overflows && !overflowed_;
  overflowed_ = overflows;
  return news;
}

Error EventDispatcher::Dequeue(Event* event) {
  if (owned_.load(std::memory_order_relaxed)) {
    return InvalidState(StateDetail::kDispatcherHasWaiter);
  }
  if (IsPlainlyEmpty()) {
    adapter_->executor().GiveWay();
    counts_.Add(DispatcherCount::kDequeues);
    counts_.Add(DispatcherCount::kDequeuesEmpty);
    return Code::kQueueEmpty;
  }
  bool came, taken, news, overflows = false;
  {
    PassLockHolder lock(&queue_->lock());
    const uint64_t before = notices_;
    came = TakeLocked(event, &taken, &overflows);
    counts_.Add(DispatcherCount::kDequeues);
    counts_.Add(taken ? DispatcherCount::kDequeuesFound : DispatcherCount::kDequeuesEmpty);
    news = NewsLocked(before);
  }
  if (came) WakeWaiters(0);
  if (watched()) [[unlikely]]
    Tell(news, /*polled=*/true);
  if (overflows) [[unlikely]]
    ReportOverflow();
  return taken ? Ok() : Error(Code::kQueueEmpty);
}

struct EventDispatcher::WaitProgress {
  bool looked = false;
  uint64_t first_notices = 0;  // notices_ at its first look, for several events
  uint64_t last_notices = 0;   // notices_ at its last look
};

bool EventDispatcher::Take(const WaitOptions& options, Event* event, uint32_t* more,
                           WaitProgress* progress) {
  bool came, taken, overflows = false;
  {
    PassLockHolder lock(&queue_->lock());
    if (options.threshold <= 1 && more == nullptr) {
      came = TakeLocked(event, &taken, &overflows);
      progress->last_notices = notices_;
    } else {
      came = HarvestLocked();
      overflows = OverflowsLocked();
      progress->last_notices = notices_;
      taken = events_.size() >= options.threshold;
      if (!progress->looked) {
        progress->first_notices = notices_;
      } else if (notices_ == progress->first_notices) {
        taken = false;  // only quiet completions have come
      }
      if (taken) {
        PopQueued(event);
        if (overflowed_) (void)OverflowsLocked();  // everything may fit now
      }
      if (more != nullptr) *more = static_cast<uint32_t>(events_.size());
    }
  }
  progress->looked = true;
  if (came) WakeWaiters(1);
  if (overflows) [[unlikely]]
    ReportOverflow();  // at once: what has come need not end the wait
  return taken;
}

Error EventDispatcher::Wait(verbs::Deadline deadline, const WaitOptions& options, Event* event,
                            uint32_t* more) {
  if (options.threshold == 0 || options.threshold > length()) return InvalidParameter(3);
  const uint32_t refusals = refusals_.load();
  if (!waitable()) return InvalidState(StateDetail::kDispatcherUnwaitable);
  if (options.threshold > 1 && watched()) {
    if (mode() == CompletionMode::kSolicited) {
      return InvalidState(StateDetail::kDispatcherSolicited);
    }
    if (mode() == CompletionMode::kUnsignalled) return InvalidState(StateDetail::kDispatcherNotify);
  }
  if (options.exclusive && owned_.exchange(true, std::memory_order_acquire)) {
    return InvalidState(StateDetail::kDispatcherHasWaiter);
  }
  WaitProgress progress;
  const bool waits_for_several = options.exclusive && options.threshold > 1;
  bool decided = false, took = false;
  // Runs also if the wait is refused before it looks, or the thread is cancelled in its sleep: then
  // nobody knows what it has seen, and the notifier is told of all that is queued.
  const absl::Cleanup leave = [&] {
    if (waits_for_several) WaitsFor(0);
    // A full fence: either SetNotifier sees that nobody waits, or this thread sees the notifier.
    if (options.exclusive) owned_.exchange(false);
    if (watched()) [[unlikely]] {
      if (decided && progress.looked) {
        PassOn(progress.last_notices);
      } else {
        TellQueued();
      }
      // A wait that was refused in its sleep has not taken what it was woken for.
      if (!took) Look();
    }
  };
  if (waits_for_several && !WaitsFor(options.threshold)) return InvalidParameter(3);
  const Error error = WaitCounted(deadline, options.interruptible, refusals,
                                  [&] { return Take(options, event, more, &progress); });
  decided = true;
  took = error.ok();
  return error;
}

bool EventDispatcher::WaitsFor(uint32_t threshold) {
  const PassLockHolder lock(&queue_->lock());
  if (threshold > length_) return false;
  waited_for_ = threshold;
  return true;
}

void EventDispatcher::PassOn(uint64_t seen) {
  bool news;
  {
    const PassLockHolder lock(&queue_->lock());
    news = notices_ != seen;
  }
  Tell(news, /*polled=*/true);
}

Error EventDispatcher::WaitUntil(verbs::Deadline deadline, absl::FunctionRef<bool()> take) {
  int looks = 0;
  bool polled = true;
  const Error error = WaitCounted(deadline, /*interruptible=*/false, refusals_.load(), [&] {
    ++looks;
    return TakeKeptFor(1, take, &polled);
  });
  // It was woken, and has taken what another thread had polled: what it was woken for may be
  // something else, for which the device has rung nobody but this thread.
  if (looks > 1 && !polled) Look();
  return error;
}

// A waiter counts itself before it looks. So a thread that takes something from the device after
// that look sees the count, and wakes the waiter.
Error EventDispatcher::WaitCounted(verbs::Deadline deadline, bool interruptible, uint32_t refusals,
                                   absl::FunctionRef<bool()> look) {
  waiters_.fetch_add(1);
  const absl::Cleanup leave = [this] { waiters_.fetch_sub(1); };
  counts_.Add(DispatcherCount::kWaits);
  verbs::Executor& executor = adapter_->executor();
  bool slept = false, caught_up = false;
  Error error = Ok();
  verbs::WaitResult last = verbs::WaitResult::kReady;
  for (;;) {
    const uint32_t wakes = queue_->wakes();
    error = Code::kAbort;
    if (aborted_.load()) break;
    error = InvalidState(StateDetail::kDispatcherUnwaitable);
    if (!waitable() || refusals_.load() != refusals) break;
    error = Ok();
    if (look()) break;
    error = Code::kInterrupted;
    if (last == verbs::WaitResult::kInterrupted && interruptible) break;
    // If the waiter is woken all the time, the device never gets to check the deadline.
    error = Code::kTimeout;
    if (last == verbs::WaitResult::kTimedOut || (slept && deadline.Passed(executor))) {
      if (std::exchange(caught_up, true) || !CatchUp(executor, deadline)) break;
      continue;
    }
    if (!std::exchange(slept, true)) counts_.Add(DispatcherCount::kSleeps);
    last = queue_->Wait(deadline, wakes);
  }
  if (slept && error.ok()) counts_.Add(DispatcherCount::kWoken);
  return error;
}

void EventDispatcher::Look(bool all, bool polled) {
  bool came, news, overflows;
  {
    PassLockHolder lock(&queue_->lock());
    const uint64_t before = notices_;
    came = all ? HarvestLocked() : HarvestSomeLocked();
    overflows = OverflowsLocked();
    news = NewsLocked(before);
  }
  if (came) WakeWaiters(0);
  if (watched()) [[unlikely]]
    Tell(news, polled || came);
  if (overflows) ReportOverflow();
}

Error EventDispatcher::PostSoftware(void* pointer) {
  if ((streams_ & kSoftwareStream) == 0) return InvalidParameter(1);
  // Completions that wait in the device count against the length.
  if ((streams_ & kDeviceStreams) != 0) Look(/*all=*/false, /*polled=*/true);
  Event event;
  event.type = EventType::kSoftware;
  event.pointer = pointer;
  bool news;
  {
    PassLockHolder lock(&queue_->lock());
    if (events_.size() >= length_) return Code::kQueueFull;
    const uint64_t before = notices_;
    PushLocked(event);
    news = NewsLocked(before);
  }
  queue_->Wake();
  if (watched()) Tell(news, /*polled=*/false);
  return Ok();
}

// An eager dispatcher queues nothing but the events of one connection, for which there is room.
void EventDispatcher::KeepRoom(uint32_t events) {
  if (eager_) return;
  const PassLockHolder lock(&queue_->lock());
  events_.Keep(events, length_);
}

void EventDispatcher::GiveUpRoom(uint32_t events) {
  if (eager_) return;
  const PassLockHolder lock(&queue_->lock());
  events_.GiveUp(events);
}

uint32_t EventDispatcher::kept_room() const {
  const PassLockHolder lock(&queue_->lock());
  return events_.kept_room();
}

Error EventDispatcher::Post(const Event& event, uint32_t kept) {
  Error error = Ok();
  bool news, overflows;
  {
    PassLockHolder lock(&queue_->lock());
    const uint64_t before = notices_;
    HarvestLocked();
    if (!eager_) events_.GiveUp(kept);
    if (IsOfConnections(event.type)) counts_.Add(DispatcherCount::kConnectionEvents);
    // End sets aborted_ before it looks for queued requests under the lock.
    if (event.type == EventType::kConnectionRequest &&
        (aborted_.load() || events_.size() >= length_)) {
      error = Code::kQueueFull;
    } else if (events_.MakeRoom() == 0) {
      error = OutOf(Resource::kMemory);
    } else {
      PushLocked(event);
    }
    overflows = OverflowsLocked();
    news = NewsLocked(before);
  }
  queue_->Wake();
  if (watched()) Tell(news, /*polled=*/true);
  if (overflows) ReportOverflow();
  return error;
}

void EventDispatcher::ReportOverflow() {
  if ((streams_ & kAsyncStream) != 0 && adapter_->IsAsyncDispatcher(*this)) return;
  adapter_->PostAsync(EventType::kAsyncOverflow, handle());
}

// ---------------------------------------------------------------------------- notification

void EventDispatcher::Tell(bool news, bool polled) {
  verbs::EpochGuard guard;
  Notifier* notifier = notifier_.load(std::memory_order_acquire);
  if (notifier == nullptr) return;
  if (news && enabled()) notifier->Trigger(handle());
  if (polled && !unarmed_.load(std::memory_order_relaxed) && !unarmed_.exchange(true)) {
    notifier->AddUnarmed(*this);
  }
}

void EventDispatcher::Arm() {
  unarmed_.store(false);
  queue_->Arm(*this);
  Look(takes_all(), /*polled=*/false);
}

Error EventDispatcher::SetNotifier(Notifier* notifier) {
  if (notifier != nullptr) {
    if (Error error = notifier->Attach(*this); !error.ok()) return error;
    notifier->AddReference();
    watchers_.fetch_add(1);
  }
  Notifier* const old = notifier_.exchange(notifier, std::memory_order_acq_rel);
  if (old != nullptr) {
    verbs::EpochSynchronize();  // others may still follow the old pointer
    old->Detach(*this, /*freed=*/aborted_.load());
    old->DropReference();
    watchers_.fetch_sub(1);
  }
  if (notifier == nullptr) return Ok();
  if (aborted_.load()) return SetNotifier(nullptr);  // freed meanwhile
  Arm();
  if (old == nullptr) TellQueued();
  return Ok();
}

// Covers events that came before there was a notifier, or were queued by a thread that has not seen
// the new one.
void EventDispatcher::TellQueued() {
  bool notices = false;
  {
    PassLockHolder lock(&queue_->lock());
    if (!owned_.load()) events_.ForEach([&](const Event& event) { notices |= event.notifies; });
  }
  Tell(notices, /*polled=*/false);
}

Ref<Notifier> EventDispatcher::notifier() const {
  verbs::EpochGuard guard;
  // The dispatcher's own reference lasts as long as the guard.
  return Ref<Notifier>::Share(notifier_.load(std::memory_order_acquire));
}

void EventDispatcher::AddStream(CompletionMode mode) {
  modes_[static_cast<size_t>(mode)].fetch_add(1);
  if (mode >= CompletionMode::kUnsignalled) watchers_.fetch_add(1);
}

void EventDispatcher::DropStream(CompletionMode mode) {
  modes_[static_cast<size_t>(mode)].fetch_sub(1);
  if (mode >= CompletionMode::kUnsignalled) watchers_.fetch_sub(1);
  const PassLockHolder harvest_under_way(&queue_->lock());
}

CompletionMode EventDispatcher::mode() const {
  for (CompletionMode mode :
       {CompletionMode::kSolicited, CompletionMode::kUnsignalled, CompletionMode::kThreshold}) {
    if (modes_[static_cast<size_t>(mode)].load(std::memory_order_relaxed) != 0) return mode;
  }
  return CompletionMode::kDefault;
}

// ------------------------------------------------------------------------------------ life

void EventDispatcher::TakeAll() {
  if (!takes_all_.exchange(true)) Arm();
}

uint32_t EventDispatcher::QueuedReceives(Handle subject, Receives which) {
  Harvest();
  uint32_t count = 0;
  PassLockHolder lock(&queue_->lock());
  events_.ForEach([&](const Event& event) {
    count += event.type == EventType::kCompletion && event.subject == subject &&
             IsReceive(event.opcode) &&
             (which == Receives::kAll || event.status == verbs::Status::kSuccess);
  });
  return count;
}

void EventDispatcher::Forget(Handle subject) {
  Harvest();
  PassLockHolder lock(&queue_->lock());
  events_.RemoveIf([subject](const Event& event) { return event.subject == subject; });
}

void EventDispatcher::Remove(Handle subject, uint64_t cookie) {
  PassLockHolder lock(&queue_->lock());
  events_.RemoveFirst([&](const Event& event) {
    return event.type == EventType::kCompletion && event.subject == subject &&
           event.cookie == cookie;
  });
}

void EventDispatcher::SetWaitable(bool waitable) {
  waitable_.store(waitable);
  if (!waitable) {
    refusals_.fetch_add(1);
    queue_->Wake();
  }
}

void EventDispatcher::SetEnabled(bool enabled) {
  enabled_.store(enabled, std::memory_order_relaxed);
}

Error EventDispatcher::Resize(uint32_t length) {
  Harvest();
  PassLockHolder lock(&queue_->lock());
  if (events_.size() > length || waited_for_ > length) {
    return InvalidState(StateDetail::kDispatcherInUse);
  }
  events_.Reserve(length);
  length_ = length;
  batch_ = BatchOf(length);
  overflowed_ = false;  // everything fits
  return Ok();
}

uint32_t EventDispatcher::length() const {
  PassLockHolder lock(&queue_->lock());
  return length_;
}

bool EventDispatcher::waitable() const { return waitable_.load(); }

uint32_t EventDispatcher::Queued() {
  Harvest();
  PassLockHolder lock(&queue_->lock());
  return static_cast<uint32_t>(events_.size());
}

Error EventDispatcher::Free() {
  // A user may be a reserved point whose request is here already: the executor is about to end it.
  if (uses_.any()) adapter_->executor().Drain();
  if (uses_.any()) return InvalidState(StateDetail::kDispatcherInUse);
  // An owner that is about to wait counts, too: other calls may have been refused because of it.
  if (owned_.load() || waiters_.load() != 0) return InvalidState(StateDetail::kDispatcherHasWaiter);
  if (!uses_.End()) return InvalidState(StateDetail::kDispatcherInUse);
  return End();
}

Handle EventDispatcher::TakeUntoldRequest() {
  PassLockHolder lock(&queue_->lock());
  Handle request = nullptr;
  events_.RemoveFirst([&](const Event& event) {
    if (event.type != EventType::kConnectionRequest) return false;
    request = event.subject;
    return true;
  });
  return request;
}

void EventDispatcher::EndUntoldRequests() {
  while (const Handle handle = TakeUntoldRequest()) {
    if (const auto request = ShareObject<ConnectionRequest>(handle)) request->Destroy();
  }
}

void EventDispatcher::Destroy() { (void)End(); }

Error EventDispatcher::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<EventDispatcher>();
  adapter_->RemoveChild(this);
  aborted_.store(true);
  queue_->Wake();
  (void)SetNotifier(nullptr);
  EndUntoldRequests();
  DropReference();
  return Ok();
}

}  // namespace viaduct::core
