// The requests of one direction of a queue pair, from posting until their completion is polled: a
// ring in posting order, in addition to the device's own queue.
//
// The device completes reads in their order and all other requests in theirs, but siw (Linux 6.1)
// lets requests behind a read complete before it. So a completion always belongs to the oldest
// request of its kind for which the device still owes one. Requests that never reached the device
// (flushed, refused here) are done at once. A request that is done before an older one waits for
// its turn. Posting happens under the pair's lock of this direction, everything else under the lock
// of the completion queue.
#ifndef VIADUCT_VERBS_RDMA_WORK_QUEUE_H_
#define VIADUCT_VERBS_RDMA_WORK_QUEUE_H_

#include <atomic>
#include <cstdint>

#include "verbs/device.h"
#include "verbs/rdma/bounce_pool.h"

namespace viaduct::verbs::rdma {

// What the program gets to see of a request, except the context, and what is known only here.
struct WorkRecord : Completion {
  // What is left to do when the device has completed it.
  enum class Rest : uint8_t {
    kSome,   // something, or this is not known
    kNone,   // nothing, if its only completion is a success
    kFrame,  // the message's first bytes went to its frame's slot
  };

  // In `flags`, in addition to RequestFlag: the device owes the completion of the confirming read.
  static constexpr uint16_t kReadOwed = 0x8000;

  uint16_t flags;  // RequestFlag and kReadOwed bits; of a receive its verdict
  uint16_t
      parts;  // completions that the device still owes; 0: it never got the request, or is done
  uint16_t segments;
  bool done;
  Rest rest;      // not kNone any more when it is done
  Bounce bounce;  // where its bytes are meanwhile

  // Of a receive: the status with which it was posted to fail, whatever the device reports.
  void SetVerdict(Status verdict) {
    flags = static_cast<uint16_t>(static_cast<uint16_t>(verdict) << kVerdictShift);
  }
  Status verdict() const { return static_cast<Status>(flags >> kVerdictShift); }
  // The verdict, or without one the status that a message has led to.
  Status VerdictOr(Status status) const {
    return verdict() != Status::kSuccess ? verdict() : status;
  }

  // The device owes a completion of it: that of a read, or that of anything else.
  bool Owes(bool read) const {
    if (done) return false;
    if (opcode == Opcode::kRead) return read && parts != 0;
    const int reads = (flags & kReadOwed) != 0 ? 1 : 0;
    return read ? reads != 0 : parts > reads;
  }

 private:
  static constexpr int kVerdictShift = 9;  // above the flags of requests, below kReadOwed
};

class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Makes room for `limit` requests, each with `max_segments` segments; never shrinks. Both locks
  // held. False: no memory.
  bool Resize(uint32_t limit, uint32_t max_segments);

  // ---------------------------------------------------------------- under the direction's lock
  bool full() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) + kept_ >=
           limit_;
  }
  // Keeps a place, which must be free, for a request that is posted later; the lock is released
  // meanwhile.
  void KeepPlace() { ++kept_; }
  void FreePlace() { --kept_; }
  uint32_t kept_places() const { return kept_; }
  // The next record, still with the contents of an older request. Nobody sees it until Publish.
  WorkRecord& Next() { return records_[tail_.load(std::memory_order_relaxed) & mask_]; }
  // The next record, set up as one request of the device and nothing special. The caller fills in
  // what differs from request to request (id, length, opcode, quiet, flags, segments).
  WorkRecord& NextPlain() {
    WorkRecord& record = Next();
    record.status = Status::kSuccess;
    record.has_immediate = false;
    record.solicited = false;
    record.parts = 1;
    record.done = false;
    record.rest = WorkRecord::Rest::kNone;
    record.bounce.memory = nullptr;
    return record;
  }
  uint32_t next_slot() const { return tail_.load(std::memory_order_relaxed) & mask_; }
  // Where the next record keeps its segments, if it says that it has `count`.
  Segment* NextSegments(size_t count) {
    return SegmentsAt(tail_.load(std::memory_order_relaxed), count);
  }
  void Publish() {
    tail_.store(tail_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // --------------------------------------------------------------- under the queue's lock
  uint32_t head() const { return head_.load(std::memory_order_relaxed); }
  uint32_t tail() const { return tail_.load(std::memory_order_acquire); }
  WorkRecord& At(uint32_t index) { return records_[index & mask_]; }
  // Null if it has none.
  Segment* SegmentsOf(const WorkRecord& record) {
    return SegmentsAt(SlotOf(record), record.segments);
  }
  // Its place in the ring, which has slots() places.
  uint32_t SlotOf(const WorkRecord& record) const {
    return static_cast<uint32_t>(&record - records_);
  }
  uint32_t slots() const { return mask_ + 1; }
  // The oldest one that is not done; null if all are.
  WorkRecord* OldestOpen() {
    for (const uint32_t end = tail(); next_ != end; ++next_) {
      if (!At(next_).done) return &At(next_);
    }
    return nullptr;
  }
  // The oldest one of which the device owes a completion of that kind; null if it owes none.
  WorkRecord* OldestAtDevice(bool read) {
    return OldestThat([read](const WorkRecord& record) { return record.Owes(read); });
  }
  // A request is open for which a fence waits: a read or an atomic.
  bool HasOpenRead() {
    return OldestThat([](const WorkRecord& record) {
             return !record.done &&
                    (record.opcode == Opcode::kRead || record.opcode == Opcode::kCompareAndSwap ||
                     record.opcode == Opcode::kFetchAndAdd);
           }) != nullptr;
  }
  // `record` has failed: requests behind it that are done and not reported yet become flushed,
  // except binds, which have taken effect. This ends at the next request that is not done: it fails
  // as well, and those behind it become flushed then.
  void FlushDoneBehind(const WorkRecord& record) {
    const uint32_t place = (SlotOf(record) - head()) & mask_;
    for (uint32_t i = head() + place + 1, end = tail(); i != end && At(i).done; ++i) {
      WorkRecord& behind = At(i);
      if (behind.status == Status::kSuccess && behind.opcode != Opcode::kBind) {
        behind.status = Status::kFlushed;
      }
    }
  }
  // The oldest request of all, if the device owes just one completion of it, which nothing
  // overtakes, and nothing else has to be done for it; otherwise null.
  WorkRecord* HeadAtDevice() {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail()) return nullptr;
    WorkRecord& record = At(head);
    return record.rest == WorkRecord::Rest::kNone ? &record : nullptr;
  }
  // Marks HeadAtDevice() as done and polled at once.
  void TakeHead() {
    const uint32_t head = head_.load(std::memory_order_relaxed) + 1;
    next_ = head;
    CountDone();
    head_.store(head, std::memory_order_release);
  }
  void Done(WorkRecord& record, Status status) {
    record.status = status;
    record.done = true;
    record.rest = WorkRecord::Rest::kSome;
    CountDone();
    if (&record != &At(head())) Set(kDoneBehind);
  }
  // The program may poll the head.
  bool HasNews() {
    return head() != tail() && At(head()).done && !(Has(kGated) && head() == gate_);
  }
  // From now on requests that are not done yet, and those behind them, are not polled until kGated
  // is cleared.
  void Gate() {
    OldestOpen();
    gate_ = next_;
    Set(kGated);
  }
  // The connection that was awaited never came about. Receives are posted as before, whatever
  // messages have done to them; those from a shared queue, which they have left, are flushed.
  void EndGate() {
    if (!Take(kGated)) return;
    for (uint32_t i = gate_, end = tail(); i != end; ++i) {
      WorkRecord& record = At(i);
      if (!record.done) continue;
      record.status = outstanding != nullptr ? Status::kFlushed : Status::kSuccess;
      if (outstanding != nullptr) continue;
      record.opcode = Opcode::kReceive;
      record.length = 0;
      record.has_immediate = record.solicited = false;
      record.done = false;
      done_.store(done_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }
    if (outstanding == nullptr) next_ = gate_;
  }
  // The program gets to see the completion.
  static bool Shows(const WorkRecord& record) {
    return (record.flags & kSuppress) == 0 || record.status != Status::kSuccess;
  }
  void Show(const WorkRecord& record, Completion* out) const {
    *out = record;
    out->context = context;
  }
  void PopHead() {
    const uint32_t head = head_.load(std::memory_order_relaxed) + 1;
    if (static_cast<int32_t>(next_ - head) < 0) next_ = head;
    head_.store(head, std::memory_order_release);
  }

  // ------------------------------------------------------------------------------ any thread
  // Posted and not done.
  uint32_t open() const {
    const uint32_t done = done_.load(std::memory_order_acquire);
    return tail_.load(std::memory_order_acquire) - done;
  }

  void* context = nullptr;  // shown in completions
  // Of a shared receive queue: decremented for each receive that is polled.
  std::atomic<uint32_t>* outstanding = nullptr;
  // Why completions of the device do not go straight to the poller. Under the queue's lock.
  enum Detour : uint8_t {  // bit set
    kGated = 1,            // those of a connection wait for OnConnected: see Gate
    kListed = 2,           // it is in the list of work queues with completions
    kDoneBehind = 4,       // a done request is not the head: its turn may come after any other
    // Set by the connection that uses the queue: messages land in its bounces; somebody waits until
    // no send is open; the connection ends when no send is open.
    kBounced = 8,
    kDrainAwaited = 16,
    kBreakAwaited = 32,
    // A receive has failed, but the device goes on: it saw no failure, or it is siw (Linux 6.1),
    // which fails a message that is to end memory. What it completes later is flushed.
    kOver = 64,
  };
  bool straight() const { return detours_ == 0; }
  bool Has(Detour detour) const { return (detours_ & detour) != 0; }
  void Set(Detour detour) { detours_ |= detour; }
  void Clear(Detour detour) { detours_ &= static_cast<uint8_t>(~detour); }
  // Clears it. False: it was not set.
  bool Take(Detour detour) {
    const bool had = Has(detour);
    Clear(detour);
    return had;
  }
  void ClearOfConnection() { detours_ &= kListed | kDoneBehind; }
  // Clears kDoneBehind, unless a request that is done still waits for its turn.
  void ClearDoneBehind() {
    if (done_.load(std::memory_order_relaxed) == head()) Clear(kDoneBehind);
  }
  WorkQueue* next_listed = nullptr;

 private:
  // Searches the requests from the oldest that is not done.
  template <typename Predicate>
  WorkRecord* OldestThat(Predicate predicate) {
    if (OldestOpen() == nullptr) return nullptr;
    for (uint32_t i = next_, end = tail(); i != end; ++i) {
      if (predicate(At(i))) return &At(i);
    }
    return nullptr;
  }
  void CountDone() {
    done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  // Most requests have one segment. These segments lie side by side before all others, so that a
  // queue whose requests may have hundreds does not touch a page for each request.
  static size_t SegmentPlace(size_t slot, size_t slots, size_t max_segments, size_t count) {
    return count == 1 ? slot : slots + slot * max_segments;
  }
  static size_t SegmentBytes(size_t slots, size_t max_segments) {
    return max_segments == 0 ? 0 : slots * (1 + max_segments) * sizeof(Segment);
  }
  Segment* SegmentsAt(uint32_t index, size_t count) {
    if (count == 0) return nullptr;
    return segments_ + SegmentPlace(index & mask_, size_t{mask_} + 1, max_segments_, count);
  }

  uint8_t detours_ = 0;
  WorkRecord* records_ = nullptr;
  Segment* segments_ = nullptr;  // one for each slot, then max_segments_ for each
  uint32_t limit_ = 0;
  uint32_t kept_ = 0;  // places that KeepPlace keeps
  uint32_t max_segments_ = 0;
  uint32_t mask_ = 0;
  std::atomic<uint32_t> tail_{0};
  uint32_t next_ = 0;  // those before it are done
  uint32_t gate_ = 0;  // while kGated: the first one that waits
  std::atomic<uint32_t> head_{0};
  std::atomic<uint32_t> done_{0};  // how many were ever done; written under the queue's lock
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_WORK_QUEUE_H_
