// The requests of one direction of a queue pair, from their post until their completion is polled:
// a ring in posting order beside the device's own queue.
//
// The device completes reads in their order, and the other requests that it got in theirs: siw
// (Linux 6.1) lets what is behind a read complete before it. So a completion is always that of the
// oldest one of its kind that the device still owes. Those that never reached it (flushed, refused
// here) are done at once, and whatever is done before an older one waits for its turn. Posting
// happens under the pair's lock of this direction, everything else under the lock of the completion
// queue.
#ifndef VIADUCT_VERBS_RDMA_WORK_QUEUE_H_
#define VIADUCT_VERBS_RDMA_WORK_QUEUE_H_

#include <atomic>
#include <cstdint>

#include "verbs/device.h"
#include "verbs/rdma/bounce_pool.h"

namespace viaduct::verbs::rdma {

// What the program gets to see of it, but for the context, and what is known here besides.
struct WorkRecord : Completion {
  // What its completion by the device is followed by.
  enum class Rest : uint8_t {
    kSome,   // or nothing is known of it
    kNone,   // it is the only one, and when it is a success nothing else is to be done
    kFrame,  // its first bytes went to its frame's slot
  };

  // In `flags`, beside RequestFlag: the device owes the read that confirms it.
  static constexpr uint16_t kReadOwed = 0x8000;

  uint16_t flags;  // RequestFlag, or kReadOwed; of a receive its verdict
  uint16_t
      parts;  // completions that the device still owes; 0: it never got the request, or is done
  uint16_t segments;
  bool done;
  Rest rest;      // kNone is no longer so when it is done
  Bounce bounce;  // where its bytes are meanwhile

  // Of a receive: what it was posted to fail with, whatever the device makes of it.
  void SetVerdict(Status verdict) {
    flags = static_cast<uint16_t>(static_cast<uint16_t>(verdict) << kVerdictShift);
  }
  Status verdict() const { return static_cast<Status>(flags >> kVerdictShift); }
  // That, or without one what a message has made of it.
  Status VerdictOr(Status status) const {
    return verdict() != Status::kSuccess ? verdict() : status;
  }

  // The device owes a completion of it, of a read or of anything else.
  bool Owes(bool read) const {
    if (done) return false;
    if (opcode == Opcode::kRead) return read && parts != 0;
    const int reads = (flags & kReadOwed) != 0 ? 1 : 0;
    return read ? reads != 0 : parts > reads;
  }

 private:
  static constexpr int kVerdictShift = 9;  // behind the flags of requests, before kReadOwed
};

class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Room for `limit` requests, with `max_segments` kept of each; never shrinks. Both locks held.
  // False: no memory.
  bool Resize(uint32_t limit, uint32_t max_segments);

  // ---------------------------------------------------------------- under the direction's lock
  bool full() const {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire) + kept_ >=
           limit_;
  }
  // A place, which there is, is kept for a request that is posted later. Between the two the lock
  // is not held.
  void KeepPlace() { ++kept_; }
  void FreePlace() { --kept_; }
  uint32_t kept_places() const { return kept_; }
  // The next record, with whatever an older request has left there, which nobody sees until
  // Publish.
  WorkRecord& Next() { return records_[tail_.load(std::memory_order_relaxed) & mask_]; }
  // The next one, said to be one request at the device and nothing special: what differs from
  // request to request (id, length, opcode, quiet, flags, segments) is to be said.
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
  // Where it keeps so many segments, which its record says then, too.
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
  // Its place in the ring, of which there are `slots`.
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
  // One that a fence waits for: a read, or an atomic.
  bool HasOpenRead() {
    return OldestThat([](const WorkRecord& record) {
             return !record.done &&
                    (record.opcode == Opcode::kRead || record.opcode == Opcode::kCompareAndSwap ||
                     record.opcode == Opcode::kFetchAndAdd);
           }) != nullptr;
  }
  // `record` has failed: what was done behind it, and was told to nobody, is flushed, but for a
  // bind, which has been done. As far as the next one that is not done, which fails as well and has
  // its own behind it.
  void FlushDoneBehind(const WorkRecord& record) {
    const uint32_t place = (SlotOf(record) - head()) & mask_;
    for (uint32_t i = head() + place + 1, end = tail(); i != end && At(i).done; ++i) {
      WorkRecord& behind = At(i);
      if (behind.status == Status::kSuccess && behind.opcode != Opcode::kBind) {
        behind.status = Status::kFlushed;
      }
    }
  }
  // The oldest one of all, if the device owes just one completion of it, which nothing overtakes,
  // and nothing else is to be done; null otherwise.
  WorkRecord* HeadAtDevice() {
    const uint32_t head = head_.load(std::memory_order_relaxed);
    if (head == tail()) return nullptr;
    WorkRecord& record = At(head);
    return record.rest == WorkRecord::Rest::kNone ? &record : nullptr;
  }
  // HeadAtDevice is done and polled at once.
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
  // The program may get the head.
  bool HasNews() {
    return head() != tail() && At(head()).done && !(Has(kGated) && head() == gate_);
  }
  // From now on what is not done yet is no news, and nothing behind it, until kGated is cleared.
  void Gate() {
    OldestOpen();
    gate_ = next_;
    Set(kGated);
  }
  // The connection that was waited for never was. Receives are posted as before, whatever messages
  // have done to them; those that come from a shared queue are no longer there.
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
  // The program gets to see that it is done.
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
  // Of a shared receive queue: counts down with each one that is polled.
  std::atomic<uint32_t>* outstanding = nullptr;
  // Under the queue's lock: why completions of the device do not go straight to who polls.
  enum Detour : uint8_t {  // bit set
    kGated = 1,            // those of a connection wait behind OnConnected: see Gate
    kListed = 2,           // in the queue's list of those with news
    kDoneBehind = 4,       // one that is done is not the head: its turn may come behind any other
    // Of the connection that has the queue: messages land in memory of its own; somebody waits
    // until no send is open.
    kBounced = 8,
    kDrainAwaited = 16,
    kBreakAwaited = 32,
    // A receive has failed, and the device goes on: it was none to it, or it is siw (Linux 6.1),
    // which fails a message that is to end memory. What it completes behind that is flushed.
    kOver = 64,
  };
  bool straight() const { return detours_ == 0; }
  bool Has(Detour detour) const { return (detours_ & detour) != 0; }
  void Set(Detour detour) { detours_ |= detour; }
  void Clear(Detour detour) { detours_ &= static_cast<uint8_t>(~detour); }
  // False: it was not set.
  bool Take(Detour detour) {
    const bool had = Has(detour);
    Clear(detour);
    return had;
  }
  void ClearOfConnection() { detours_ &= kListed | kDoneBehind; }
  // Unless one still waits for its turn.
  void ClearDoneBehind() {
    if (done_.load(std::memory_order_relaxed) == head()) Clear(kDoneBehind);
  }
  WorkQueue* next_listed = nullptr;

 private:
  // Among those that are not done, and what is behind them.
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
  // Most requests have one segment. Those lie side by side before the others, so that a queue of
  // requests that may have hundreds does not touch a page for each.
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
  uint32_t kept_ = 0;  // places
  uint32_t max_segments_ = 0;
  uint32_t mask_ = 0;
  std::atomic<uint32_t> tail_{0};
  uint32_t next_ = 0;  // those before it are done
  uint32_t gate_ = 0;  // while kGated: the first one that waits
  std::atomic<uint32_t> head_{0};
  std::atomic<uint32_t> done_{0};  // how many there were ever, written under the queue's lock
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_WORK_QUEUE_H_
