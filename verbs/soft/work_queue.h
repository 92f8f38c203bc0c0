// The two work queues of a soft queue pair: rings of entries that hold copies of what was posted.
//
// Positions count requests for ever; entry n lives at n modulo the capacity. The order is always
// reaped <= done <= posted:
//   posted   by the poster, under the queue's lock (send lock, receive lock)
//   done     send queue: emitted by the wire, under the send lock;
//            receive queue: filled, under the inbound lock
//   reaped   taken by a poll, under the lock of the completion queue
// A send entry is complete when its status says so (reads and confirmed requests complete later
// than younger sends, and wait for their turn); a receive entry when `done` has passed it.
#ifndef VIADUCT_VERBS_SOFT_WORK_QUEUE_H_
#define VIADUCT_VERBS_SOFT_WORK_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "verbs/device.h"

namespace viaduct::verbs {

inline constexpr uint8_t kPending = 0xff;  // no Status yet

struct alignas(64) SendEntry {
  uint64_t id;
  uint64_t remote_address;
  uint64_t cookie;  // the wire's own (ring position, stream offset)
  uint32_t length;  // sum of the segments
  Key remote_key;
  uint32_t immediate;
  uint16_t flags;   // RequestFlag
  Opcode opcode;    // kSend, kWrite, kRead
  uint8_t status;   // kPending or a Status; atomic access, see SetStatus
  uint32_t offset;  // the wire's own progress, 0 at first: bytes emitted, or read so far
  uint32_t segment_count;
  Segment first;  // the segment, if there is one only
};
static_assert(sizeof(SendEntry) == 64);

struct alignas(64) ReceiveEntry {
  uint64_t id;
  uint32_t capacity;  // sum of the segments
  uint32_t length;    // of the message, when done
  uint32_t immediate;
  uint32_t segment_count;
  Opcode opcode;  // kReceive, kReceiveWrite
  Status status;
  bool has_immediate;
  bool solicited;
  bool quiet;
  Segment first;
};
static_assert(sizeof(ReceiveEntry) == 64);

inline void SetStatus(SendEntry& entry, Status status) {
  __atomic_store_n(&entry.status, static_cast<uint8_t>(status), __ATOMIC_RELEASE);
}
inline uint8_t LoadStatus(const SendEntry& entry) {
  return __atomic_load_n(&entry.status, __ATOMIC_ACQUIRE);
}

// Entries and the segments beyond the first, in untouched address space: a deep queue with many
// segments costs what is used of it.
template <typename Entry>
class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue() { Release(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // Makes room for `requests` posted and not reaped of up to `segments` each, and moves what is
  // posted. Never shrinks. False without memory. Nobody else may use the queue meanwhile.
  bool Reserve(uint32_t requests, uint32_t segments);

  Entry& at(uint64_t n) { return entries_[n & mask_]; }
  const Entry& at(uint64_t n) const { return entries_[n & mask_]; }
  uint32_t max_requests() const { return max_requests_; }
  uint32_t max_segments() const { return max_segments_; }

  absl::Span<const Segment> segments(uint64_t n) const {
    const Entry& entry = at(n);
    if (entry.segment_count <= 1) return {&entry.first, entry.segment_count};
    return {spill_ + (n & mask_) * max_segments_, entry.segment_count};
  }
  // Copies `from`, at most max_segments() of them, into entry n; returns their total length.
  uint64_t CopySegments(uint64_t n, absl::Span<const Segment> from) {
    Entry& entry = at(n);
    entry.segment_count = static_cast<uint32_t>(from.size());
    if (from.size() == 1) {
      entry.first = from[0];
      return from[0].length;
    }
    Segment* to = spill_ + (n & mask_) * max_segments_;
    uint64_t total = 0;
    for (const Segment& segment : from) {
      *to++ = segment;
      total += segment.length;
    }
    return total;
  }

  bool Full() const {
    return posted.load(std::memory_order_relaxed) - reaped.load(std::memory_order_acquire) >=
           max_requests_;
  }

  alignas(64) std::atomic<uint64_t> posted{0};
  alignas(64) std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> reaped{0};

 private:
  void Release();

  Entry* entries_ = nullptr;
  Segment* spill_ = nullptr;
  size_t bytes_ = 0;  // of both
  uint64_t mask_ = 0;
  uint32_t max_requests_ = 0;
  uint32_t max_segments_ = 0;
};

extern template class WorkQueue<SendEntry>;
extern template class WorkQueue<ReceiveEntry>;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_WORK_QUEUE_H_
