// The two work queues of a soft queue pair: rings of entries that hold copies of what was posted.
//
// Positions count requests and never wrap; entry n lives at n modulo the capacity. The order is
// always reaped <= done <= posted:
//   posted   by the poster, under the queue's lock (send lock, receive lock)
//   done     send queue: emitted by the wire, under the send lock;
//            receive queue: filled, under the inbound lock
//   reaped   taken by a poll, under the lock of the completion queue
// A send entry is complete when its status says so (reads and confirmed requests may complete later
// than younger sends, which are reported only in their turn); a receive entry when `done` has
// passed it.
#ifndef VIADUCT_VERBS_SOFT_WORK_QUEUE_H_
#define VIADUCT_VERBS_SOFT_WORK_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "verbs/device.h"

namespace viaduct::verbs {

inline constexpr uint8_t kPending = 0xff;  // no Status yet

struct alignas(64) SendEntry {
  uint64_t id;
  uint64_t remote_address;
  // For the wire's own use (ring position, stream offset, number of an atomic). Exceptions: the
  // Status of a request that fails in order (SoftQueuePair::kFailsInOrder), and the WindowScope of
  // a bind, see below.
  uint64_t cookie;
  uint32_t length;  // sum of the segments
  Key remote_key;
  uint32_t immediate;
  uint16_t flags;  // RequestFlag
  Opcode opcode;
  uint8_t status;   // kPending or a Status; atomic access, see SetStatus
  uint32_t offset;  // the wire's own progress, 0 at first: bytes emitted, or read so far
  uint32_t segment_count;
  Segment first;  // the segment, if there is only one
};
static_assert(sizeof(SendEntry) == 64);

struct alignas(64) ReceiveEntry {
  uint64_t id;
  uint32_t capacity;  // sum of the segments
  uint32_t length;    // of the message, when done
  uint32_t immediate;
  uint32_t segment_count;
  Opcode opcode;  // kReceive, kReceiveWrite, kReceiveInvalidate
  Status status;  // when done; until then, if HasVerdict, the verdict
  bool has_immediate;
  bool solicited;
  bool quiet;
  Segment first;
};
static_assert(sizeof(ReceiveEntry) == 64);

// A bind gives some fields of its entry another meaning: remote_key is the fresh key,
// remote_address the length, immediate the rights, first.address and first.key what is bound,
// first.length the AddressBase, cookie 1 for WindowScope::kQueuePair.

// What an atomic stores in addition to its entry.
struct Operands {
  uint64_t compare_add;
  uint64_t swap;
};
static_assert(sizeof(Operands) == sizeof(Segment));

// Requests that complete when the peer's answer arrives.
constexpr bool IsFetch(Opcode opcode) {
  return opcode == Opcode::kRead || opcode == Opcode::kCompareAndSwap ||
         opcode == Opcode::kFetchAndAdd;
}

// A receive with a verdict has a capacity although it has no segments, unlike any other receive. So
// a message of any length passes the check of the capacity, and is refused when it is placed.
inline void SetVerdict(ReceiveEntry& entry, Status verdict) {
  entry.capacity = UINT32_MAX;
  entry.status = verdict;
}
inline bool HasVerdict(const ReceiveEntry& entry) {
  return entry.segment_count == 0 && entry.capacity != 0;
}

inline void SetFlushed(ReceiveEntry& entry) {
  entry.length = 0;
  entry.has_immediate = entry.solicited = false;
  entry.opcode = Opcode::kReceive;
  entry.status = Status::kFlushed;
}

inline void SetStatus(SendEntry& entry, Status status) {
  __atomic_store_n(&entry.status, static_cast<uint8_t>(status), __ATOMIC_RELEASE);
}
inline uint8_t LoadStatus(const SendEntry& entry) {
  return __atomic_load_n(&entry.status, __ATOMIC_ACQUIRE);
}
// Atomic, since a search for pending entries may read a slot that is being filled anew.
inline void SetOpcode(SendEntry& entry, Opcode opcode) {
  __atomic_store(&entry.opcode, &opcode, __ATOMIC_RELAXED);
}
inline Opcode LoadOpcode(const SendEntry& entry) {
  Opcode opcode;
  __atomic_load(&entry.opcode, &opcode, __ATOMIC_RELAXED);
  return opcode;
}

// A queue takes memory for the most requests that were ever posted at once, not for the most that
// are allowed: the ring doubles when it is full, and room for more than one segment per request is
// made at the first request that needs it. So a queue also stays in few cache lines.
template <typename Entry>
class WorkQueue {
 public:
  WorkQueue() = default;
  ~WorkQueue() { Release(); }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // ---- nobody else may use the queue meanwhile

  // Allows `requests` requests posted and not reaped, of up to `segments` segments each. Never less
  // than before. False without memory.
  bool Allow(uint32_t requests, uint32_t segments);
  // Makes HasRoom(segments) true. False: max_requests() are posted, or there is no memory.
  bool MakeRoom(size_t segments);

  // Makes room for all requests that are allowed.
  bool MakeAllRoom();

  // ---- under the queue's lock
  // Is there room for one more request with `segments` segments?
  bool HasRoom(size_t segments) const {
    return posted.load(std::memory_order_relaxed) - reaped.load(std::memory_order_acquire) <
               room_ &&
           (segments <= 1 || spill_ != nullptr);
  }

  Entry& at(uint64_t n) { return entries_[n & mask_]; }
  const Entry& at(uint64_t n) const { return entries_[n & mask_]; }
  uint32_t max_requests() const { return max_requests_; }
  // Any thread: a poster calls it before it takes the lock.
  uint32_t max_segments() const { return max_segments_.load(std::memory_order_relaxed); }

  absl::Span<const Segment> segments(uint64_t n) const {
    const Entry& entry = at(n);
    if (entry.segment_count <= 1) return {&entry.first, entry.segment_count};
    return {spill_ + (n & mask_) * max_segments(), entry.segment_count};
  }
  // Copies `from` into entry n, for which there was room; returns the total length of the copied
  // segments. The originals are read once: the program, or its peer, may write there meanwhile.
  uint64_t CopySegments(uint64_t n, absl::Span<const Segment> from) {
    Entry& entry = at(n);
    entry.segment_count = static_cast<uint32_t>(from.size());
    if (from.size() == 1) return CopySegment(from[0], &entry.first);
    Segment* to = spill_ + (n & mask_) * max_segments();
    uint64_t total = 0;
    for (const Segment& segment : from) total += CopySegment(segment, to++);
    return total;
  }

  // For a request with at most one segment, for which HasRoom(2) held: the operands lie where other
  // requests have their segments.
  void SetOperands(uint64_t n, const Operands& operands) {
    std::memcpy(&spill_[(n & mask_) * max_segments()], &operands, sizeof operands);
  }
  Operands operands(uint64_t n) const {
    Operands operands;
    std::memcpy(&operands, &spill_[(n & mask_) * max_segments()], sizeof operands);
    return operands;
  }

  alignas(64) std::atomic<uint64_t> posted{0};
  alignas(64) std::atomic<uint64_t> done{0};
  std::atomic<uint64_t> reaped{0};

 private:
  static constexpr uint64_t kFirstSlots = 16;

  static uint32_t CopySegment(const Segment& from, Segment* to) {
    const uint32_t length = __atomic_load_n(&from.length, __ATOMIC_RELAXED);
    *to = {from.address, from.key, length};
    return length;
  }

  // Moves the posted entries into `slots` new slots; `spill`: with room for `segments` each.
  bool Move(uint64_t slots, bool spill, uint32_t segments);
  void Release();

  Entry* entries_ = nullptr;
  Segment* spill_ = nullptr;  // max_segments() for each slot
  uint64_t slots_ = 0;        // 0 or a power of two
  uint64_t mask_ = 0;         // slots_ - 1, or 0
  uint64_t room_ = 0;         // the lesser of slots_ and max_requests_
  uint32_t max_requests_ = 0;
  std::atomic<uint32_t> max_segments_{0};
};

extern template class WorkQueue<SendEntry>;
extern template class WorkQueue<ReceiveEntry>;

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_WORK_QUEUE_H_
