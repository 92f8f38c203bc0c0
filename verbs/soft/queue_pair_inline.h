// The inline half of queue_pair.h, which includes it: code that runs once per message or piece.
#ifndef VIADUCT_VERBS_SOFT_QUEUE_PAIR_INLINE_H_
#define VIADUCT_VERBS_SOFT_QUEUE_PAIR_INLINE_H_

#include <cstring>

#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {

// ---------------------------------------------------------------------------------- emission

inline SendEntry* SoftQueuePair::NextToEmit() {
  const uint64_t n = sends_.done.load(std::memory_order_relaxed);
  if (n == sends_.posted.load(std::memory_order_relaxed)) return nullptr;
  SendEntry& entry = sends_.at(n);
  if ((entry.flags & (kFence | kFailsInOrder)) == 0 && entry.opcode <= Opcode::kWrite &&
      entry.status == kPending && no_receive_ != NoReceive::kDrop &&
      !failing_.load(std::memory_order_relaxed)) [[likely]] {
    return &entry;
  }
  return NextToEmitSlow();
}

inline void SoftQueuePair::Emitted(Completes when) {
  const uint64_t n = sends_.done.load(std::memory_order_relaxed);
  SendEntry& entry = sends_.at(n);
  if (entry.opcode > Opcode::kWrite && IsFetch(entry.opcode)) [[unlikely]] {
    reads_out_.fetch_add(1, std::memory_order_seq_cst);
    incomplete_.fetch_add(1, std::memory_order_relaxed);
  } else if (when == Completes::kLater) {
    incomplete_.fetch_add(1, std::memory_order_relaxed);
  } else {
    SetStatus(entry, Status::kSuccess);
  }
  sends_.done.store(n + 1, std::memory_order_release);
}

template <typename Copy>
[[gnu::noinline]] bool SoftQueuePair::Walk(absl::Span<const Segment> segments, uint64_t offset,
                                           uint32_t n, uint32_t access, Copy&& copy) const {
  uint64_t at = 0;
  for (const Segment& segment : segments) {
    if (n == 0) return true;
    if (offset >= segment.length) {
      offset -= segment.length;
      continue;
    }
    const uint64_t room = segment.length - offset;
    const uint32_t piece = room < n ? static_cast<uint32_t>(room) : n;
    auto* memory = reinterpret_cast<unsigned char*>(segment.address + offset);
    if (!Check(segment, offset, piece, access)) [[unlikely]] {
      memory = Resolve(segment.key, segment.address + offset, piece, access);
      if (memory == nullptr) return false;
    }
    copy(memory, at, piece);
    at += piece;
    n -= piece;
    offset = 0;
  }
  return n == 0;
}

inline const unsigned char* SoftQueuePair::WholeSegment(const SendEntry& entry) const {
  if (entry.segment_count != 1 || !Check(entry.first, 0, entry.length, kLocalRead)) return nullptr;
  return reinterpret_cast<const unsigned char*>(entry.first.address);
}

template <typename Copy>
bool SoftQueuePair::Gather(const SendEntry& entry, uint32_t offset, uint32_t n, Copy&& copy) {
  if (n == 0) return true;
  const uint64_t position = emit_position();
  if (entry.segment_count == 1 && Check(entry.first, offset, n, kLocalRead)) [[likely]] {
    copy(reinterpret_cast<const unsigned char*>(entry.first.address + offset), uint64_t{0}, n);
    return true;
  }
  if (Walk(sends_.segments(position), offset, n, kLocalRead, copy)) {
    return true;
  }
  FailInOrder(sends_.at(position), Status::kLocalProtection);
  // The program may not be polling: carry out the failure now.
  static_cast<void>(NextToEmitSlow());
  return false;
}

// ----------------------------------------------------------------------------------- inbound

inline Inbound SoftQueuePair::StartReceive() {
  if (receives_.done.load(std::memory_order_relaxed) ==
      receives_.posted.load(std::memory_order_acquire)) [[unlikely]] {
    return NoReceiveHere();
  }
  if (held_.load(std::memory_order_relaxed)) held_.store(false, std::memory_order_relaxed);
  message_ = opening_;
  return Inbound::kOk;
}

template <typename Copy>
Inbound SoftQueuePair::PlaceReceive(uint64_t offset, uint32_t n, Copy&& copy) {
  if (message_ == Message::kDiscarding) [[unlikely]]
    return Inbound::kDropped;
  // No receive is open: at `done` there may be no receive, or one for another message.
  if (message_ == Message::kNone) [[unlikely]]
    return Break(Status::kTransport);
  const uint64_t position = receives_.done.load(std::memory_order_relaxed);
  ReceiveEntry& entry = receives_.at(position);
  if (offset + n > entry.capacity) [[unlikely]]
    return RefuseReceive(Status::kLocalLength);
  if (n == 0) return HasVerdict(entry) ? RefuseReceive(entry.status) : Inbound::kOk;
  if (entry.segment_count == 1 && Check(entry.first, offset, n, kLocalWrite)) [[likely]] {
    copy(reinterpret_cast<unsigned char*>(entry.first.address + offset), uint64_t{0}, n);
    return Inbound::kOk;
  }
  if (Walk(receives_.segments(position), offset, n, kLocalWrite, copy)) {
    return Inbound::kOk;
  }
  return RefuseReceive(HasVerdict(entry) ? entry.status : Status::kLocalProtection);
}

template <typename Copy>
inline bool SoftQueuePair::ReceiveWhole(uint32_t length, bool solicited, Copy&& copy) {
  const uint64_t position = receives_.done.load(std::memory_order_relaxed);
  if (position == receives_.posted.load(std::memory_order_acquire) ||
      held_.load(std::memory_order_relaxed) || message_ != Message::kNone ||
      opening_ != Message::kOpen) [[unlikely]] {
    return false;
  }
  ReceiveEntry& entry = receives_.at(position);
  if (length > entry.capacity || entry.segment_count != 1 ||
      !Check(entry.first, 0, length, kLocalWrite)) [[unlikely]] {
    return false;
  }
  copy(reinterpret_cast<unsigned char*>(entry.first.address));
  CompleteReceive(position, Opcode::kReceive, Status::kSuccess, length,
                  Trailer{.solicited = solicited});
  return true;
}

inline void SoftQueuePair::CompleteReceive(uint64_t position, Opcode opcode, Status status,
                                           uint32_t length, const Trailer& trailer) {
  ReceiveEntry& entry = receives_.at(position);
  entry.length = length;
  entry.immediate = trailer.immediate;
  entry.has_immediate = trailer.has_immediate;
  entry.solicited = trailer.solicited;
  entry.opcode = opcode;
  entry.status = status;
  receives_.done.store(position + 1, std::memory_order_release);
}

inline Inbound SoftQueuePair::FinishReceive(uint32_t length, const Trailer& trailer) {
  const Message message = message_;
  message_ = Message::kNone;
  if (message != Message::kOpen) [[unlikely]]
    return FinishSpecial(message, length, trailer);
  CompleteReceive(receives_.done.load(std::memory_order_relaxed), Opcode::kReceive,
                  Status::kSuccess, length, trailer);
  return Inbound::kOk;
}

// The size of the largest flag at the end of a write that a program spins on.
inline constexpr uint32_t kFlagBytes = 8;

// The widest word that can begin at `begin` and has no more than `n` bytes.
inline uint32_t WordBytes(const unsigned char* begin, uint32_t n) {
  const auto alignment = reinterpret_cast<uintptr_t>(begin);
  for (uint32_t bytes : {8u, 4u, 2u}) {
    if (n >= bytes && (alignment & (bytes - 1)) == 0) return bytes;
  }
  return 1;
}

// Stores `n` bytes at `to` in their order, each word once: some thread may watch it, and reset it
// as soon as it changes, which a second store would undo.
inline void StoreInOrder(unsigned char* to, const unsigned char* from, uint32_t n) {
  const auto store = [&]<typename Word>(Word word) {
    std::memcpy(&word, from, sizeof word);
    __atomic_store_n(reinterpret_cast<Word*>(to), word, __ATOMIC_RELEASE);
  };
  while (n != 0) {
    const uint32_t bytes = WordBytes(to, n);
    switch (bytes) {
      case 8:
        store(uint64_t{0});
        break;
      case 4:
        store(uint32_t{0});
        break;
      case 2:
        store(uint16_t{0});
        break;
      default:
        store(uint8_t{0});
    }
    to += bytes;
    from += bytes;
    n -= bytes;
  }
}

template <typename Copy>
Inbound SoftQueuePair::PlaceWrite(Key key, uint64_t address, uint32_t n, bool has_immediate,
                                  Copy&& copy) {
  if (write_refused_) [[unlikely]]
    return Inbound::kDropped;
  if (n == 0) return Inbound::kOk;
  auto* memory = reinterpret_cast<unsigned char*>(address);
  if ((remote_access_ & kRemoteWrite) == 0 ||
      !regions_.Check(key, address, n, kRemoteWrite, domain_)) [[unlikely]] {
    memory =
        (remote_access_ & kRemoteWrite) != 0 ? Resolve(key, address, n, kRemoteWrite) : nullptr;
    if (memory == nullptr) return RefuseWrite(has_immediate);
  }
  // Programs spin on a flag at the end, of up to 8 bytes and not always aligned, so the last 8
  // bytes become visible last and in their order. A single copy has no such order: libc's copy of
  // some kilobytes stores the beginning last.
  const uint32_t last = n < kFlagBytes ? n : kFlagBytes;
  const uint32_t ahead = n - last;
  if (ahead != 0) copy(memory, uint64_t{0}, ahead);
  unsigned char flag[kFlagBytes];
  copy(flag, uint64_t{ahead}, last);
  StoreInOrder(memory + ahead, flag, last);
  return Inbound::kOk;
}

template <typename Next>
Status SoftQueuePair::UpdateAtomic(Key key, uint64_t address, uint64_t* original, Next&& next) {
  unsigned char* memory = nullptr;
  if ((remote_access_ & kRemoteAtomic) != 0) memory = Resolve(key, address, 8, kRemoteAtomic);
  if (memory == nullptr) {
    ReportLater(kRefusedRead);
    Break(Status::kRemoteAccess);
    return Status::kRemoteAccess;
  }
  if (reinterpret_cast<uintptr_t>(memory) % 8 != 0) {
    Break(Status::kRemoteOperation);
    return Status::kRemoteOperation;
  }
  auto* word = reinterpret_cast<uint64_t*>(memory);
  uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, next(old), /*weak=*/true, __ATOMIC_SEQ_CST,
                                      __ATOMIC_RELAXED)) {
  }
  *original = old;
  return Status::kSuccess;
}

template <typename Copy>
Inbound SoftQueuePair::PlaceRead(const SendEntry& entry, uint32_t offset, uint32_t n, Copy&& copy) {
  if (uint64_t{offset} + n > entry.length) {
    Fail(Status::kTransport);
    return Inbound::kBroken;
  }
  const uint32_t access = (entry.flags & kRemoteSink) != 0 ? kRemoteWrite : kLocalWrite;
  if (Walk(sends_.segments(read_cursor_), offset, n, access, copy)) return Inbound::kOk;
  FailSend(read_cursor_, Status::kLocalProtection);
  return Inbound::kBroken;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_QUEUE_PAIR_INLINE_H_
