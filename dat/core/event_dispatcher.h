// EventDispatcher: DAT's EVD, VIPL's completion queue; each VI also has one of its own.
//
// Completions of endpoints' requests stay in the device until somebody asks for them; all other
// events are queued here. The events of one stream keep their order, and a connection event is
// queued after every completion that was there before it.
//
// Threads: every call from any thread. The one lock is that of the device's completion queue, so
// that taking a completion needs no second lock. It is held neither across a wait nor across a call
// into the program, and is taken after the endpoint's.
#ifndef VIADUCT_DAT_CORE_EVENT_DISPATCHER_H_
#define VIADUCT_DAT_CORE_EVENT_DISPATCHER_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/attributes.h"
#include "absl/functional/function_ref.h"
#include "dat/core/bind_table.h"
#include "dat/core/counts.h"
#include "dat/core/error.h"
#include "dat/core/event.h"
#include "dat/core/event_ring.h"
#include "dat/core/object.h"
#include "dat/core/use.h"
#include "verbs/base/pass_lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class InterfaceAdapter;
class Notifier;

// Streams that may feed a dispatcher: DAT_EVD_FLAGS' bits.
enum Stream : uint32_t {
  kSoftwareStream = 0x001,
  kRequestStream = 0x010,
  kCompletionStream = 0x020,
  kConnectionStream = 0x040,
  kBindStream = 0x080,
  kAsyncStream = 0x100,
};
inline constexpr uint32_t kAllStreams = 0x1f1;
// The streams whose events wait in the device.
inline constexpr uint32_t kDeviceStreams = kCompletionStream | kBindStream;

// Which completions of a stream wake waiters and notifiers.
enum class CompletionMode : uint8_t {
  kDefault,      // all
  kThreshold,    // all; the consumer waits with thresholds
  kUnsignalled,  // all except successful ones of requests that were posted quiet
  kSolicited,    // receives: those whose sender asked for it, and failures
};

// Sees each completion when the dispatcher takes it from the device, with or without a call of the
// program, and before anybody can dequeue it: VIPL's Status words are written here. Called under
// the dispatcher's lock, for one completion at a time: must be short, without calls into the
// engine.
class CompletionObserver {
 public:
  // False: the observer keeps the completion, and it becomes no event; see TakeKept and WaitUntil.
  virtual bool OnCompletion(const verbs::Completion& completion) = 0;

 protected:
  ~CompletionObserver() = default;
};

// What a completion's `context` points to: the part of an endpoint that a dispatcher sees.
struct CompletionOwner {
  Handle handle = nullptr;  // for Event::subject
  std::atomic<CompletionObserver*> observer{nullptr};
  BindTable* binds = nullptr;               // the endpoint's
  std::atomic<bool> solicited_only{false};  // its receives are CompletionMode::kSolicited
  Counts<EndpointCount> counts;
};

class EventDispatcher final : public Object, private verbs::CompletionSink {
 public:
  static constexpr ObjectType kType = ObjectType::kEventDispatcher;
  // At most this many completions have been polled from the device but are not events yet.
  static constexpr int kBatch = 16;

  // `length` > 0 is a minimum. An `eager` dispatcher (VIPL) takes completions from the device as
  // soon as the device reports them, so that observers run without a call of the program, and has
  // no limit to the number of its events.
  static Error Create(InterfaceAdapter& adapter, uint32_t length, uint32_t streams, bool eager,
                      Ref<EventDispatcher>* out);

  // ---- the consumer's calls

  // kQueueEmpty; kInvalidState while somebody waits with exclusive ownership (DAT's rule).
  Error Dequeue(Event* event);

  struct WaitOptions {
    uint32_t threshold = 1;
    bool exclusive = false;      // DAT: one waiter owns the dispatcher; a second one is refused
    bool interruptible = false;  // DAT: a signal ends the wait with kInterrupted
  };
  // Takes the first event when at least `threshold` are queued. `more` (may be null) is the number
  // left, on time-out too. kTimeout, kAbort (the dispatcher died), kInterrupted, kInvalidState
  // (another waiter, unwaitable, or a threshold above 1 with a stream of quiet completions),
  // kInvalidParameter (threshold). Quiet completions do not end a wait that has begun.
  Error Wait(verbs::Deadline deadline, const WaitOptions& options, Event* event, uint32_t* more);
  // For completions that observers keep. Calls `take` under the lock, like an observer; if it
  // returns false, calls it again after a harvest that found something. Returns its last result.
  template <typename Take>
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool TakeKept(const Take& take) {
    return TakeKeptFor(0, take);
  }
  // Waits until `take` returns true: it is called as in TakeKept, first at once and then after each
  // wake-up. kTimeout, kAbort.
  Error WaitUntil(verbs::Deadline deadline, absl::FunctionRef<bool()> take);
  // Only inside `take` of these two: takes the oldest event, if there is one.
  bool PopQueued(Event* event) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (events_.empty()) return false;
    *event = events_.Front();
    events_.Pop();
    return true;
  }
  // Makes every thread in WaitUntil call its `take` again.
  void Wake() { queue_->Wake(); }

  // kInvalidParameter without kSoftwareStream, kQueueFull.
  Error PostSoftware(void* pointer);
  // False ends every wait under way with kInvalidState, even if true follows at once.
  void SetWaitable(bool waitable);
  // kInvalidState if more than `length` events are queued, or waited for.
  Error Resize(uint32_t length);
  // Only an enabled dispatcher triggers its notifier.
  void SetEnabled(bool enabled);
  // Null: no notifier. After the return the old one is not triggered any more. kInvalidHandle: the
  // new one is being freed, and the old one stays.
  Error SetNotifier(Notifier* notifier);

  // kInvalidState while a stream feeds it or a thread waits on it. On success the handle is dead,
  // and connection requests that nobody has dequeued are refused.
  Error Free();

  // ---- what it shows
  InterfaceAdapter& adapter() const { return *adapter_; }
  uint32_t length() const;
  uint32_t streams() const { return streams_; }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  bool waitable() const;
  Ref<Notifier> notifier() const;
  // The most restrictive mode among the streams that feed it.
  CompletionMode mode() const;
  // Events that a Dequeue could take now: for tests.
  uint32_t Queued();
  // Kept by KeepRoom and not given up: for tests.
  uint32_t kept_room() const;
  Counts<DispatcherCount>& counts() { return counts_; }

  // ---- the engine's calls

  // Keeps room for that many connection events, so that they need no memory when they come. Throws
  // std::bad_alloc, with nothing changed.
  void KeepRoom(uint32_t events);
  // That many of them will not come.
  void GiveUpRoom(uint32_t events);
  // Queues an event after all completions that the device has. kConnectionRequest events are
  // refused with kQueueFull if the queue is full (the backlog), or if nobody can dequeue any more;
  // every other event fits unless memory is lacking (kInsufficientResources). `kept`: gives up that
  // much of the kept room, which includes the room for this event.
  Error Post(const Event& event, uint32_t kept = 0);
  // Takes what the device has into the queue; observers run. Reports an overflow that this reveals,
  // since a dequeue that finds an event in the queue checks for none.
  void Harvest() { Look(/*all=*/true, /*polled=*/true); }
  UseCount& uses() { return uses_; }  // by what feeds it: endpoints, service points, adapters
  void AddStream(CompletionMode mode);
  // For a stream whose queue pair is gone: after the return no thread is inside a harvest that took
  // a completion of the stream, so its owner and its observer may go.
  void DropStream(CompletionMode mode);
  // Takes what the device has, as when the device reports news, and tells the notifier. Not inside
  // an EpochGuard.
  void Look() { Look(takes_all(), /*polled=*/true); }
  // Tells the notifier at once of what is there, and without delay of what comes next. Not inside
  // an EpochGuard.
  void Arm();
  // From now on, for ever, takes all completions from the device as soon as it reports them.
  void TakeAll();
  // Counts the receives of that subject that are queued or that the device has.
  enum class Receives : uint8_t { kMessages, kAll };  // kMessages: successful ones
  uint32_t QueuedReceives(Handle subject, Receives which);
  // Forgets the queued events of an object that is being freed.
  void Forget(Handle subject);
  // Removes one queued completion out of turn: the oldest of that subject and cookie.
  void Remove(Handle subject, uint64_t cookie);
  verbs::CompletionQueue& device_queue() { return *queue_; }
  // Waiters return kAbort; the handle is dead.
  void Destroy() override;

 private:
  EventDispatcher(InterfaceAdapter& adapter, uint32_t length, uint32_t streams, bool eager);
  ~EventDispatcher() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it
  void OnCompletions(verbs::CompletionQueue&) override {
    counts_.Add(DispatcherCount::kNews);
    Look();
  }
  // `all`: take more than fits, too. `polled`: the device's next report may come late even if it
  // has nothing now.
  void Look(bool all, bool polled);
  // Tells a new notifier of what is queued.
  void TellQueued();
  bool takes_all() const { return takes_all_.load(std::memory_order_relaxed); }
  void PushLocked(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Turns completions that were taken from the device into events, unless their observers keep
  // them.
  void QueueLocked(const verbs::Completion* completions, int n)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // The same, but the first event goes to `event`; false: there is none.
  bool DealLocked(const verbs::Completion* completions, int n, Event* event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // These three return whether something came from the device: if so, the caller must call
  // WakeWaiters after it has released the lock.
  bool HarvestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Like HarvestLocked, but stops when one more than fits is queued: the rest keeps its place in
  // the work queues.
  bool HarvestSomeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Takes the oldest event, or one straight from the device. Sets `overflows` if that showed that
  // more is there than fits.
  bool TakeLocked(Event* event, bool* taken, bool* overflows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Checks for an overflow after a poll that may have left something in the device. `taken`: the
  // consumer is just getting one event, which counts, too.
  bool FindOverflowLocked(bool taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Wakes the waiting threads if there are others than the caller; `self`: 1 if it waits, else 0.
  void WakeWaiters(uint32_t self) {
    if (waiters_.load(std::memory_order_relaxed) > self) queue_->Wake();
  }
  // `self`: for WakeWaiters. `polled` (may be null): whether it has polled the device.
  template <typename Take>
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool TakeKeptFor(uint32_t self, const Take& take,
                                                bool* polled = nullptr) {
    bool came, taken, news;
    {
      const verbs::PassLockHolder lock(&queue_->lock());
      taken = take();
      if (polled != nullptr) *polled = !taken;
      if (taken) return true;
      const uint64_t before = notices_;
      came = HarvestLocked();
      taken = came && take();
      news = NewsLocked(before);
    }
    if (came) WakeWaiters(self);
    if (watched()) [[unlikely]]
      Tell(news, /*polled=*/true);
    return taken;
  }
  // Tells the notifier of events that came after a waiter's last look, when there were `seen`
  // notices: they were kept from the notifier because of the waiter, which has not seen them.
  void PassOn(uint64_t seen);
  // Notes the threshold of an exclusive waiter that wants several events; 0 at the end of the wait.
  // False: the dispatcher can never hold so many.
  bool WaitsFor(uint32_t threshold);
  struct WaitProgress;
  bool Take(const WaitOptions& options, Event* event, uint32_t* more, WaitProgress* progress);
  // `refusals`: the value of refusals_ when the wait began.
  Error WaitCounted(verbs::Deadline deadline, bool interruptible, uint32_t refusals,
                    absl::FunctionRef<bool()> look);
  // True once when more is queued than fits; an event that was `taken` just now counts, too.
  bool OverflowsLocked(bool taken = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  void ReportOverflow();
  // Nothing is queued, and nothing can come from the device. So a thread that polls in a loop for
  // connection events does not take the lock, and keeps nobody from queueing one.
  bool IsPlainlyEmpty() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return (streams_ & kDeviceStreams) == 0 && events_.empty();
  }
  bool watched() const { return watchers_.load(std::memory_order_relaxed) != 0; }
  // Something that notifies was queued since notices_ was `before`, and no exclusive waiter owns
  // the dispatcher: at the end of its wait an owner checks for what came after its last look.
  bool NewsLocked(uint64_t before) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock()) {
    return notices_ != before && !owned_.load(std::memory_order_relaxed);
  }
  // Ends the queued connection requests, of which nobody will hear. Takes them one by one, since
  // the end of a dispatcher must not need memory.
  void EndUntoldRequests();
  Handle TakeUntoldRequest();  // null: there is none
  // `news`: triggers the notifier, unless disabled. `polled`: notes that the device's next report
  // may come late.
  void Tell(bool news, bool polled);

  const Ref<InterfaceAdapter> adapter_;
  const uint32_t streams_;
  const bool eager_;
  std::atomic<bool> takes_all_;
  UseCount uses_;
  std::atomic<uint32_t> waiters_{0};
  std::atomic<bool> enabled_{true};
  std::atomic<bool> owned_{false};  // an exclusive waiter is inside
  std::atomic<bool> waitable_{true};
  std::atomic<uint32_t> refusals_{0};  // how often it became unwaitable
  std::atomic<bool> aborted_{false};
  // Counts what makes the paths below do more: the notifier, streams with quiet completions.
  std::atomic<uint32_t> watchers_{0};
  std::atomic<Notifier*> notifier_{nullptr};  // followed inside an EpochGuard; owns a reference
  std::atomic<bool> unarmed_{false};          // needs Arm; the notifier knows
  std::atomic<uint32_t> modes_[4] = {};       // streams of each CompletionMode
  uint32_t length_ ABSL_GUARDED_BY(queue_->lock());
  uint32_t waited_for_ ABSL_GUARDED_BY(queue_->lock()) = 0;  // WaitsFor
  int batch_ ABSL_GUARDED_BY(queue_->lock());  // completions that a dequeue polls at once
  EventRing events_ ABSL_GUARDED_BY(queue_->lock());
  uint64_t notices_ ABSL_GUARDED_BY(queue_->lock()) =
      0;  // how many events that notify were queued so far
  bool overflowed_ ABSL_GUARDED_BY(queue_->lock()) = false;
  Counts<DispatcherCount> counts_;
  // The last member, so that it is destroyed first: until then its sink may use the others.
  std::unique_ptr<verbs::CompletionQueue> queue_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_EVENT_DISPATCHER_H_
