// Emission; the queue pair's send lock is held.
#include <algorithm>
#include <cstring>

#include "absl/numeric/bits.h"
#include "verbs/soft/shm/copy.h"
#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/link_inline.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {
namespace {

// Larger messages go through chunks: measured for 256 B to 4 KiB, up to five slots win.
constexpr uint32_t kMaxInline = 5 * kBodyBytes;
// What a connection that finds no chunk sends through its own ring at a time.
constexpr uint32_t kPiece = 4 * kBodyBytes;

constexpr uint64_t DataParity(uint64_t position) { return Parity<kSlots>(position); }

// The flags of one piece of a message. Every piece of a write says whether there is immediate data,
// since the receiver acts on the first one.
uint8_t FlagsOf(const SendEntry& entry, bool last) {
  if (!last) {
    const bool tells = entry.opcode == Opcode::kWrite && (entry.flags & kImmediate) != 0;
    return tells ? kWithImmediate : 0;
  }
  uint8_t flags = kLast;
  if ((entry.flags & kConfirm) != 0) flags |= kAcknowledge;
  if ((entry.flags & kSolicited) != 0) flags |= kWithSolicited;
  if ((entry.flags & kImmediate) != 0) flags |= kWithImmediate;
  return flags;
}

}  // namespace

// The fast path, for most messages (Word::IsShortSend). False: nothing has happened, and Emit is
// needed.
inline bool ShmLink::EmitShort(const SendEntry& entry) {
  if (entry.opcode != Opcode::kSend || (entry.flags & (kConfirm | kImmediate)) != 0 ||
      entry.length > kBodyBytes || entry.offset != 0 ||
      tx_position_ - tx_head_.load(std::memory_order_relaxed) >= kSlots) {
    return false;
  }
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const unsigned char* const from = pair.WholeSegment(entry);
  if (from == nullptr) return false;
  CopySmall(tx_[tx_position_ % kSlots].body, from, entry.length);
  const uint8_t flags = (entry.flags & kSolicited) != 0 ? kLast | kWithSolicited : kLast;
  Publish(Word::Pack(Op::kSend, flags, 1, entry.length, DataParity(tx_position_)), 1);
  return true;
}

void ShmLink::Pump() {
  if (descent_.inherited()) [[unlikely]]
    return;
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  while (SendEntry* entry = pair.NextToEmit()) {
    if (EmitShort(*entry)) [[likely]] {
      pair.Emitted(SoftQueuePair::Completes::kNow);
      continue;
    }
    if (!Emit(*entry)) {
      // No room, or the pair broke. Nobody polls for room if the link is cold: ask for a mark.
      if (!cold_.load(std::memory_order_relaxed) || !Starve()) return;
      // ServeReads may have checked for room before this fence, yet relies on `starving`.
      if (reads_in_count_.load(std::memory_order_seq_cst) != 0) pair.MarkArrived();
      if (Reclaim()) continue;
      return;
    }
    if ((entry->flags & kConfirm) != 0 && !IsFetch(entry->opcode)) [[unlikely]] {
      entry->cookie = tx_position_;
      pair.Emitted(SoftQueuePair::Completes::kLater);
      confirms_.fetch_add(1, std::memory_order_seq_cst);
      if (cold_.load(std::memory_order_relaxed)) LookForConfirmation();
    } else if (IsFetch(entry->opcode)) [[unlikely]] {
      pair.Emitted(SoftQueuePair::Completes::kLater);
      if (cold_.load(std::memory_order_relaxed)) LookForReply();
    } else {
      pair.Emitted(SoftQueuePair::Completes::kNow);
    }
  }
  if (cold_.load(std::memory_order_relaxed)) {
    StopStarving();
    // The rest waits for something other than room: note the room, so that Arrived ignores it.
    if (pair.SendsUnemitted()) Reclaim();
  }
}

// The request that ends at tx_position_ was emitted a moment ago. A Poll since then may have seen
// its confirmation but not yet the request, and nobody would report the confirmation again.
void ShmLink::LookForConfirmation() {
  const uint64_t head = peer_line_->head.load(std::memory_order_seq_cst);
  if (static_cast<int64_t>(head - tx_position_) >= 0) {
    pair_.load(std::memory_order_relaxed)->MarkArrived();
  }
}

// The same for a read or an atomic: a Poll may have seen the answer and found no request for it.
void ShmLink::LookForReply() {
  if (ReplyWaits()) pair_.load(std::memory_order_relaxed)->MarkArrived();
}

// Asks the peer to report when it has made room. True: it was not asked before, so check again.
bool ShmLink::Starve() {
  if (my_line_->starving.exchange(1, std::memory_order_seq_cst) != 0) return false;
  GlobalFence();
  return true;
}

void ShmLink::StopStarving() {
  if (my_line_->starving.load(std::memory_order_relaxed) != 0 &&
      !pair_.load(std::memory_order_relaxed)->SendsWait() &&
      reads_in_count_.load(std::memory_order_relaxed) == 0) {
    my_line_->starving.exchange(0, std::memory_order_seq_cst);
    // A read that came meanwhile may rely on the flag that was cleared here.
    if (reads_in_count_.load(std::memory_order_seq_cst) != 0) {
      pair_.load(std::memory_order_relaxed)->MarkArrived();
    }
  }
}

bool ShmLink::Emit(SendEntry& entry) {
  if (entry.opcode > Opcode::kWrite) [[unlikely]] {
    if (entry.opcode == Opcode::kRead) return EmitRead(entry);
    if (IsFetch(entry.opcode)) return EmitAtomic(entry);
    if (!EmitInvalidate(entry)) return false;
  }
  const uint32_t lead = entry.opcode == Opcode::kWrite
                            ? sizeof(Target)
                            : ((entry.flags & kImmediate) != 0 ? uint32_t{sizeof(SendLead)} : 0);
  if (entry.offset != 0 || entry.length > kMaxInline - lead) return EmitChunks(entry);
  const uint32_t bytes = lead + entry.length;
  return HasRoom(bytes <= kBodyBytes ? 1 : (bytes + kBodyBytes - 1) / kBodyBytes) &&
         EmitSlots(entry, entry.length);
}

inline bool ShmLink::HasRoom(uint32_t slots) {
  const uint64_t head = tx_head_.load(std::memory_order_relaxed);
  if (tx_position_ + slots - head <= kSlots) [[likely]]
    return true;
  return Reclaim() && tx_position_ + slots - tx_head_.load(std::memory_order_relaxed) <= kSlots;
}

// True if the peer has consumed something since.
bool ShmLink::Reclaim() {
  const uint64_t head = peer_line_->head.load(std::memory_order_acquire);
  const uint64_t known = tx_head_.load(std::memory_order_relaxed);
  if (head == known) return false;
  if (head - known > tx_position_ - known) {  // backwards, or beyond what was sent
    Nonsense();
    return false;
  }
  if (chunk_slots_ != 0) {
    // The slots from `known` to `head` are free again.
    for (uint64_t position = known; position != head; position++) {
      chunk_slots_ &= ~(uint64_t{1} << (position % kSlots));
    }
  }
  tx_head_.store(head, std::memory_order_relaxed);
  return true;
}

// Copies to byte `at` of the body of the message that begins at tx_position_.
inline void ShmLink::WriteBody(uint32_t at, const unsigned char* from, uint32_t n) {
  uint64_t position = tx_position_ + at / kBodyBytes;
  uint32_t within = at % kBodyBytes;
  while (n > kBodyBytes - within) {
    const uint32_t part = kBodyBytes - within;
    CopySmall(tx_[position % kSlots].body + within, from, part);
    from += part;
    n -= part;
    within = 0;
    position++;
  }
  CopySmall(tx_[position % kSlots].body + within, from, n);
}

inline void ShmLink::Publish(uint64_t word, uint32_t slots) {
  tx_[tx_position_ % kSlots].word.store(word, std::memory_order_release);
  tx_position_ += slots;
  AfterPublish();
  pair_.load(std::memory_order_relaxed)->ExpectStoreTo(&tx_[tx_position_ % kSlots]);
}

// Emits `bytes` from entry.offset on in slots, for which there is room.
bool ShmLink::EmitSlots(SendEntry& entry, uint32_t bytes) {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const bool last = entry.offset + bytes == entry.length;
  const uint8_t flags = FlagsOf(entry, last);
  unsigned char* body = tx_[tx_position_ % kSlots].body;
  uint32_t lead = 0;
  Op op = Op::kSend;
  if (entry.opcode == Opcode::kWrite) {
    const Target target = {entry.remote_address + entry.offset, entry.remote_key, entry.immediate};
    std::memcpy(body, &target, sizeof target);
    lead = sizeof target;
    op = Op::kWrite;
  } else if ((flags & kWithImmediate) != 0) {
    const SendLead with = {entry.immediate, 0};
    std::memcpy(body, &with, sizeof with);
    lead = sizeof with;
  }
  if (!pair.Gather(entry, entry.offset, bytes,
                   [this, lead](const unsigned char* from, uint64_t at, uint32_t n) {
                     WriteBody(lead + static_cast<uint32_t>(at), from, n);
                   })) {
    return false;
  }
  const uint32_t total = lead + bytes;
  const uint32_t slots = total <= kBodyBytes ? 1 : (total + kBodyBytes - 1) / kBodyBytes;
  for (uint32_t i = 1; i < slots; i++) {
    // Continuations need their parity too, or they are wrong one lap later.
    const uint64_t position = tx_position_ + i;
    tx_[position % kSlots].word.store(Word::Pack(Op::kContinue, 0, 0, 0, DataParity(position)),
                                      std::memory_order_relaxed);
  }
  entry.offset += bytes;
  Publish(Word::Pack(op, flags, slots, bytes, DataParity(tx_position_)), slots);
  return true;
}

// Emits pieces in chunks of the pool; after a lack of room, goes on at entry.offset.
bool ShmLink::EmitChunks(SendEntry& entry) {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  ChunkPool& pool = route_->pool();
  do {
    if (!HasRoom(5)) return false;
    const int chunk = pool.Take(static_cast<uint32_t>(absl::popcount(chunk_slots_)));
    if (chunk < 0) {
      // Other connections hold the pool, perhaps for ever. The chunks that this ring carries will
      // come back; if it carries none, small pieces in its own slots keep the message moving.
      Reclaim();
      if (chunk_slots_ != 0) return false;
      if (!EmitSlots(entry, std::min(entry.length - entry.offset, kPiece))) return false;
      continue;
    }
    const uint32_t bytes = std::min(entry.length - entry.offset, kChunkBytes);
    unsigned char* to = pool.data(static_cast<uint32_t>(chunk));
    if (!pair.Gather(entry, entry.offset, bytes,
                     [to](const unsigned char* from, uint64_t at, uint32_t n) {
                       CopyLarge(to + at, from, n);
                     })) {
      pool.PutBack(static_cast<uint32_t>(chunk));
      return false;
    }
    const bool write = entry.opcode == Opcode::kWrite;
    const ChunkLead lead = {{write ? entry.remote_address + entry.offset : 0,
                             write ? entry.remote_key : 0, entry.immediate},
                            static_cast<uint32_t>(chunk),
                            0};
    std::memcpy(tx_[tx_position_ % kSlots].body, &lead, sizeof lead);
    const uint8_t flags = FlagsOf(entry, entry.offset + bytes == entry.length);
    entry.offset += bytes;
    chunk_slots_ |= uint64_t{1} << (tx_position_ % kSlots);
    Publish(Word::Pack(write ? Op::kWriteChunk : Op::kSendChunk, flags, 1, bytes,
                       DataParity(tx_position_)),
            1);
  } while (entry.offset != entry.length);
  return true;
}

// Emits a message of one slot that consists of `lead`, and has its length.
template <typename Lead>
void ShmLink::EmitLead(Op op, uint8_t flags, const Lead& lead) {
  std::memcpy(tx_[tx_position_ % kSlots].body, &lead, sizeof lead);
  Publish(Word::Pack(op, flags, 1, sizeof lead, DataParity(tx_position_)), 1);
}

bool ShmLink::EmitRead(const SendEntry& entry) {
  if (!HasRoom(1)) return false;
  const ReadLead lead = {entry.remote_address, entry.remote_key, entry.length};
  EmitLead(Op::kRead, kLast, lead);
  return true;
}

bool ShmLink::EmitAtomic(const SendEntry& entry) {
  if (!HasRoom(1)) return false;
  const Operands operands = pair_.load(std::memory_order_relaxed)->operands();
  const AtomicLead lead = {
      entry.remote_address, entry.remote_key,
      entry.opcode == Opcode::kCompareAndSwap ? kAtomicCompareAndSwap : kAtomicFetchAndAdd,
      operands.compare_add, operands.swap};
  EmitLead(Op::kAtomic, kLast, lead);
  return true;
}

// The key goes first, in a message of its own; what remains is an ordinary send.
bool ShmLink::EmitInvalidate(SendEntry& entry) {
  if (!HasRoom(1)) return false;
  const InvalidateLead lead = {entry.remote_key, 0};
  EmitLead(Op::kInvalidate, 0, lead);
  SetOpcode(entry, Opcode::kSend);
  entry.flags &= static_cast<uint16_t>(~kImmediate);
  return true;
}

}  // namespace viaduct::verbs::shm
