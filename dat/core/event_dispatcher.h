// EventDispatcher: DAT's EVD, VIPL's completion queue, and one for each VI beside them.
//
// Events of endpoints' requests stay in the device until they are asked for; all others are
// queued here. Order: events of one stream keep theirs, and a connection event is queued behind
// every completion that was there before it.
//
// Threads: every call from any thread. One lock, that of its queue of the device, so that taking a
// completion costs no second one; held neither across a wait nor across a call into the program,
// and taken after the endpoint's.
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
// Those whose events wait in the device.
inline constexpr uint32_t kDeviceStreams = kCompletionStream | kBindStream;

// Which completions of a stream wake waiters and notifiers.
enum class CompletionMode : uint8_t {
  kDefault,      // all
  kThreshold,    // all; the consumer waits with thresholds
  kUnsignalled,  // all but those whose requests were posted quiet, and succeed
  kSolicited,    // receives: those whose sender asked for it, and failures
};

// Sees each completion at the moment the dispatcher takes it from the device, with or without a
// call of the program, before anybody can dequeue it: VIPL's Status words are written here.
// Under the dispatcher's lock, one after the other: short, no call into the engine.
class CompletionObserver {
 public:
  // False: the observer keeps it, and there is no event; see WaitUntil.
  virtual bool OnCompletion(const verbs::Completion& completion) = 0;

 protected:
  ~CompletionObserver() = default;
};

// What a completion's `context` points to: the endpoint shows itself through this.
struct CompletionOwner {
  Handle handle = nullptr;  // for Event::subject
  std::atomic<CompletionObserver*> observer{nullptr};
  BindTable* binds = nullptr;               // of an endpoint
  std::atomic<bool> solicited_only{false};  // CompletionMode::kSolicited of its receives
  Counts<EndpointCount> counts;
};

class EventDispatcher final : public Object, private verbs::CompletionSink {
 public:
  static constexpr ObjectType kType = ObjectType::kEventDispatcher;
  // So many completions that the device has given out are not events yet, at the most.
  static constexpr int kBatch = 16;

  // `length` > 0 is a minimum. With `eager`, completions are taken from the device as soon as
  // it reports them, so that observers run although nobody calls, and any number may be there
  // (VIPL).
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
  // Takes the first event when at least `threshold` are queued. `more` (may be null) is the
  // number left, on time-out too. kTimeout, kAbort (the object died), kInterrupted,
  // kInvalidState (waiter, unwaitable, a threshold above 1 with a stream of quiet completions),
  // kInvalidParameter (threshold). Quiet completions do not end a wait that has begun.
  Error Wait(verbs::Deadline deadline, const WaitOptions& options, Event* event, uint32_t* more);
  // For what observers keep. `take` is asked under the lock, as an observer is called, and if it
  // says no, again after a look at the device. Returns what it said.
  template <typename Take>
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool TakeKept(const Take& take) {
    return TakeKeptFor(0, take);
  }
  // Waits until `take` says yes: it is asked so after each look at the device and after each Wake.
  // kTimeout, kAbort.
  Error WaitUntil(verbs::Deadline deadline, absl::FunctionRef<bool()> take);
  // Inside `take` of these two: the oldest event, if there is one.
  bool PopQueued(Event* event) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (events_.empty()) return false;
    *event = events_.Front();
    events_.Pop();
    return true;
  }
  // Every thread in WaitUntil asks again.
  void Wake() { queue_->Wake(); }

  // kInvalidParameter without kSoftwareStream, kQueueFull.
  Error PostSoftware(void* pointer);
  // False ends every wait that has begun with kInvalidState, even if true follows at once.
  void SetWaitable(bool waitable);
  // kInvalidState when more is queued, or waited for.
  Error Resize(uint32_t length);
  // Only an enabled one triggers its notifier.
  void SetEnabled(bool enabled);
  // Null: none. When it has returned, the old one is not triggered any more. While the new one is
  // being freed kInvalidHandle, and the old one stays.
  Error SetNotifier(Notifier* notifier);

  // kInvalidState while a stream feeds it or a thread waits on it. Then the handle is dead, and
  // connection requests that nobody has dequeued are refused.
  Error Free();

  // ---- what it shows
  InterfaceAdapter& adapter() const { return *adapter_; }
  uint32_t length() const;
  uint32_t streams() const { return streams_; }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  bool waitable() const;
  Ref<Notifier> notifier() const;
  // Of the streams that feed it; the most particular one.
  CompletionMode mode() const;
  // Events that a Dequeue could take now: for tests.
  uint32_t Queued();
  // By KeepRoom, and not given up: for tests.
  uint32_t kept_room() const;
  Counts<DispatcherCount>& counts() { return counts_; }

  // ---- the engine's calls

  // Keeps room for so many connection events: they need no memory when they come. Throws
  // std::bad_alloc, with nothing changed.
  void KeepRoom(uint32_t events);
  // So many of them do not come.
  void GiveUpRoom(uint32_t events);
  // Queues an event behind all completions the device has. kConnectionRequest events are refused
  // with kQueueFull when the queue is full (the backlog), or when nobody can dequeue any more;
  // everything else fits, but for want of memory (kInsufficientResources). `kept`: so much of the
  // room that was kept is given up, this event's among it.
  Error Post(const Event& event, uint32_t kept = 0);
  // Takes what the device has into the queue; observers run. An overflow that this shows is
  // reported, since a dequeue from the queue looks for none.
  void Harvest() { Look(/*all=*/true, /*polled=*/true); }
  UseCount& uses() { return uses_; }  // by who feeds it: endpoints, service points, adapters
  void AddStream(CompletionMode mode);
  // Of a stream whose queue pair is gone: when it returned, no thread is inside a harvest that took
  // a completion of it, so its owner and its observer may go.
  void DropStream(CompletionMode mode);
  // Takes what the device has, as when it reports news; the notifier is told. Not inside an
  // EpochGuard.
  void Look() { Look(takes_all(), /*polled=*/true); }
  // The notifier is told at once of what is there, and of what comes next. Not inside an
  // EpochGuard.
  void Arm();
  // Completions are taken from the device as soon as it reports them, and for ever.
  void TakeAll();
  // Receives of that subject that are queued, or that the device has.
  enum class Receives : uint8_t { kMessages, kAll };  // kMessages: successful ones
  uint32_t QueuedReceives(Handle subject, Receives which);
  // Forgets the queued events of an object that is being freed.
  void Forget(Handle subject);
  // Takes one queued completion out of turn: the oldest of that subject and cookie.
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
  // `all`: more than fits, too. `polled`: the device's next news may come late even if it had none
  // now.
  void Look(bool all, bool polled);
  // The notifier, which is new, is told of what is queued.
  void TellQueued();
  bool takes_all() const { return takes_all_.load(std::memory_order_relaxed); }
  void PushLocked(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Completions that were taken from the device become events, or their observers keep them.
  void QueueLocked(const verbs::Completion* completions, int n)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // The same, but the first event goes to `event`; false: there is none.
  bool DealLocked(const verbs::Completion* completions, int n, Event* event)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // These three say whether something came from the device: then WakeWaiters, when the lock is
  // free.
  bool HarvestLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // The same until one more than fits is queued: the rest keeps its place in the work queues.
  bool HarvestSomeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // The oldest event, or one straight from the device. `overflows` is set if that showed that more
  // is there than fits.
  bool TakeLocked(Event* event, bool* taken, bool* overflows)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Behind a look at the device that may have left something there. `taken`: and of which the
  // consumer gets one event.
  bool FindOverflowLocked(bool taken) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  // Wakes the threads that wait, of which `self` (0 or 1) is the caller.
  void WakeWaiters(uint32_t self) {
    if (waiters_.load(std::memory_order_relaxed) > self) queue_->Wake();
  }
  // `self`: for WakeWaiters.
  template <typename Take>
  ABSL_ATTRIBUTE_ALWAYS_INLINE bool TakeKeptFor(uint32_t self, const Take& take) {
    bool came, taken, news;
    {
      const verbs::PassLockHolder lock(&queue_->lock());
      if (take()) return true;
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
  // What came after a waiter's last look (there were `seen` notices) was kept from the notifier
  // because of that waiter, which does not know of it.
  void PassOn(uint64_t seen);
  // The exclusive waiter's, of a wait for several events; 0 at its end. False: never so many.
  bool WaitsFor(uint32_t threshold);
  struct WaitProgress;
  bool Take(const WaitOptions& options, Event* event, uint32_t* more, WaitProgress* progress);
  // `refusals`: as many as there were when the wait began.
  Error WaitCounted(verbs::Deadline deadline, bool interruptible, uint32_t refusals,
                    absl::FunctionRef<bool()> look);
  // True once when more is queued than fits; one that was `taken` just now counts.
  bool OverflowsLocked(bool taken = false) ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock());
  void ReportOverflow();
  // Nothing is queued, and the device has nothing for it. Who polls in a loop for connections does
  // not hold the lock then, and keeps nobody from queueing one.
  bool IsPlainlyEmpty() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return (streams_ & kDeviceStreams) == 0 && events_.empty();
  }
  bool watched() const { return watchers_.load(std::memory_order_relaxed) != 0; }
  // Something that notifies was queued since notices_ was `before`, and nobody owns the dispatcher:
  // an owner looks at its end for what came after its last look.
  bool NewsLocked(uint64_t before) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(queue_->lock()) {
    return notices_ != before && !owned_.load(std::memory_order_relaxed);
  }
  // Nobody will hear of the connection requests that are queued here. They are taken one by one:
  // the end of a dispatcher needs no memory.
  void EndUntoldRequests();
  Handle TakeUntoldRequest();  // null: there is none
  // Triggers the notifier, unless disabled; `polled`: and its next news may come late.
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
  // What makes the paths below look further: the notifier, streams with quiet completions.
  std::atomic<uint32_t> watchers_{0};
  std::atomic<Notifier*> notifier_{nullptr};  // followed inside an EpochGuard; owns a reference
  std::atomic<bool> unarmed_{false};          // the notifier knows
  std::atomic<uint32_t> modes_[4] = {};       // streams of each CompletionMode
  uint32_t length_ ABSL_GUARDED_BY(queue_->lock());
  uint32_t waited_for_ ABSL_GUARDED_BY(queue_->lock()) = 0;  // WaitsFor
  int batch_ ABSL_GUARDED_BY(queue_->lock());  // completions that a dequeue takes at once
  EventRing events_ ABSL_GUARDED_BY(queue_->lock());
  uint64_t notices_ ABSL_GUARDED_BY(queue_->lock()) =
      0;  // events that notify, queued since the beginning
  bool overflowed_ ABSL_GUARDED_BY(queue_->lock()) = false;
  Counts<DispatcherCount> counts_;
  // Last: until it is gone its sink may be at work with the others.
  std::unique_ptr<verbs::CompletionQueue> queue_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_EVENT_DISPATCHER_H_
