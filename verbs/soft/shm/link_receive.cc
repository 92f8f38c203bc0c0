// Consumes the data ring; the inbound lock is held. Every word is copied once, and the copy is
// validated.
#include <cstring>

#include "verbs/soft/shm/copy.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/link_inline.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {
namespace {

constexpr uint64_t kCreditEvery = 16;  // slots, unless the sender waits for a confirmation

// One Poll handles at most one lap of the ring, however fast the peer fills it.
constexpr uint32_t kMostPieces = kSlots;

}  // namespace

ShmLink::Step ShmLink::Nonsense() {
  pair_.load(std::memory_order_relaxed)->Fail(Status::kTransport);
  return Step::kBroken;
}

bool ShmLink::Arrived() const {
  if (descent_.inherited()) return false;
  const uint64_t position = rx_position_.load(std::memory_order_relaxed);
  const uint64_t word = rx_[position % kSlots].word.load(std::memory_order_acquire);
  const SoftQueuePair* pair = pair_.load(std::memory_order_relaxed);
  if (pair == nullptr) return false;
  if (Arrives<kSlots>(word, position) && !pair->holding()) return true;
  if (pair->ReadsOutstanding() && ReplyWaits()) return true;
  if (reads_in_count_.load(std::memory_order_relaxed) != 0 &&
      peer_line_->reply_head.load(std::memory_order_acquire) !=
          reply_head_.load(std::memory_order_relaxed)) {
    return true;
  }
  const bool confirms = confirms_.load(std::memory_order_relaxed) != 0;
  const bool unemitted = pair->SendsUnemitted();
  if (!confirms && !unemitted) return false;
  const uint64_t head = peer_line_->head.load(std::memory_order_acquire);
  if (confirms && head != seen_head_.load(std::memory_order_relaxed)) return true;
  // A hot link need not be notified of room: whoever polls it also pumps.
  return unemitted && cold_.load(std::memory_order_relaxed) &&
         head != tx_head_.load(std::memory_order_relaxed);
}

bool ShmLink::Poll(int budget) {
  if (descent_.inherited()) [[unlikely]]
    return false;
  bool moved = PollData(budget);
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  if (pair.ReadsOutstanding()) moved |= PollReplies();
  if (reads_in_count_.load(std::memory_order_relaxed) != 0) moved |= ServeReads();
  if (confirms_.load(std::memory_order_relaxed) != 0) moved |= ConfirmSends();
  return moved;
}

// The fast path, for most messages. False: nothing has happened, and the general path is needed.
inline bool ShmLink::ReceiveShort(uint64_t raw, const Slot& slot) {
  if (in_message_ != InMessage::kNone) return false;
  const Word word = Word::Unpack(raw);
  const bool taken =
      pair_.load(std::memory_order_relaxed)
          ->ReceiveWhole(word.bytes, (word.flags & kWithSolicited) != 0,
                         [&](unsigned char* to) { CopySmall(to, slot.body, word.bytes); });
  if (taken) ConsumeSlot();
  return taken;
}

bool ShmLink::PollData(int budget) {
  const uint64_t first = rx_position_.load(std::memory_order_relaxed);
  // What this leaves in the ring is an arrival like any other: Arrived reports it.
  for (uint32_t pieces = kMostPieces; budget > 0 && pieces != 0; pieces--) {
    const uint64_t position = rx_position_.load(std::memory_order_relaxed);
    const Slot& slot = rx_[position % kSlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if (!Arrives<kSlots>(raw, position)) {
      if (held_word_ != 0) [[unlikely]]
        Nonsense();
      break;
    }
    if (Word::IsShortSend(raw) && ReceiveShort(raw, slot)) [[likely]] {
      budget--;
      continue;
    }
    // The next receive of a shared queue is kept for a message that is held: a peer that could take
    // the message back, or change it into one that needs none, would hold up the other connections.
    // ReceiveShort takes nothing in its place.
    if (held_word_ != 0) [[unlikely]] {
      if (raw != held_word_) {
        Nonsense();
        break;
      }
      held_word_ = 0;
    }
    const Word word = Word::Unpack(raw);
    Step step;
    switch (word.op) {
      case Op::kSend:
      case Op::kSendChunk:
        step = ReceiveSend(word, slot);
        break;
      case Op::kWrite:
      case Op::kWriteChunk:
        step = ReceiveWrite(word, slot);
        break;
      case Op::kRead:
      case Op::kAtomic:
        step = ReceiveRead(word, slot);
        break;
      case Op::kInvalidate:
        step = ReceiveInvalidate(word, slot);
        break;
      default:
        step = Nonsense();
    }
    if (step == Step::kStop) held_word_ = raw;
    if (step != Step::kConsumed) break;
    if ((word.flags & kLast) != 0) budget--;
  }
  if (back_mask_ != 0) FlushBack();
  return rx_position_.load(std::memory_order_relaxed) != first;
}

inline bool ShmLink::SlotsAreValid(const Word& word, uint32_t lead) const {
  return word.slots != 0 && word.slots <= kSlots &&
         uint64_t{word.bytes} + lead <= uint64_t{word.slots} * kBodyBytes;
}

// A piece of the incoming message that has no bytes must be its last.
inline bool ShmLink::PieceIsValid(const Word& word) const {
  return message_bytes_ + word.bytes <= UINT32_MAX &&
         (word.bytes != 0 || (word.flags & kLast) != 0);
}

// Copies from byte `at` of the body of the message that begins at `position`.
inline void ShmLink::ReadBody(uint64_t position, uint32_t at, unsigned char* to, uint32_t n) const {
  position += at / kBodyBytes;
  uint32_t within = at % kBodyBytes;
  while (n > kBodyBytes - within) {
    const uint32_t part = kBodyBytes - within;
    CopySmall(to, rx_[position % kSlots].body + within, part);
    to += part;
    n -= part;
    within = 0;
    position++;
  }
  CopySmall(to, rx_[position % kSlots].body + within, n);
}

ShmLink::Step ShmLink::ReceiveSend(const Word& word, const Slot& slot) {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const bool chunk = word.op == Op::kSendChunk;
  Trailer trailer;
  trailer.has_immediate = (word.flags & kWithImmediate) != 0;
  trailer.solicited = (word.flags & kWithSolicited) != 0;
  uint32_t lead = 0;
  ChunkLead from = {};
  if (chunk) {
    std::memcpy(&from, slot.body, sizeof from);
    if (!ChunkIsValid(word, from)) return Nonsense();
    trailer.immediate = from.target.immediate;
  } else {
    if (trailer.has_immediate) {
      SendLead with;
      std::memcpy(&with, slot.body, sizeof with);
      trailer.immediate = with.immediate;
      lead = sizeof with;
    }
    if (!SlotsAreValid(word, lead)) return Nonsense();
  }
  if (in_message_ != InMessage::kSend) {
    if (in_message_ != InMessage::kNone) return Nonsense();
    const Inbound start = pair.StartReceive();
    if (start == Inbound::kHeld) return Step::kStop;
    if (start == Inbound::kBroken) return Step::kBroken;
    in_message_ = InMessage::kSend;
    message_bytes_ = 0;
  }
  if (!PieceIsValid(word)) return Nonsense();
  Inbound placed;
  if (chunk) {
    const unsigned char* data = route_->inbound_chunk(from.chunk);
    placed = pair.PlaceReceive(
        message_bytes_, word.bytes,
        [data](unsigned char* to, uint64_t at, uint32_t n) { CopyLarge(to, data + at, n); });
  } else {
    const uint64_t position = rx_position_.load(std::memory_order_relaxed);
    placed = pair.PlaceReceive(message_bytes_, word.bytes,
                               [this, position, lead](unsigned char* to, uint64_t at, uint32_t n) {
                                 ReadBody(position, lead + static_cast<uint32_t>(at), to, n);
                               });
  }
  if (placed == Inbound::kBroken) return Step::kBroken;
  message_bytes_ += word.bytes;
  if ((word.flags & kLast) != 0) {
    pair.FinishReceive(static_cast<uint32_t>(message_bytes_), trailer);
    in_message_ = InMessage::kNone;
  }
  if (chunk) HandBack(from.chunk);
  Consume(word, chunk);
  return Step::kConsumed;
}

ShmLink::Step ShmLink::ReceiveWrite(const Word& word, const Slot& slot) {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const bool chunk = word.op == Op::kWriteChunk;
  ChunkLead from = {};
  if (chunk) {
    std::memcpy(&from, slot.body, sizeof from);
    if (!ChunkIsValid(word, from)) return Nonsense();
  } else {
    std::memcpy(&from.target, slot.body, sizeof from.target);
    if (!SlotsAreValid(word, sizeof from.target)) return Nonsense();
  }
  const bool has_immediate = (word.flags & kWithImmediate) != 0;
  if (in_message_ == InMessage::kSend) return Nonsense();
  if (in_message_ == InMessage::kNone) {
    in_message_ = has_immediate ? InMessage::kWriteWithImmediate : InMessage::kWrite;
    message_bytes_ = 0;
  }
  if (!write_placed_) {
    if (!PieceIsValid(word)) return Nonsense();
    Inbound placed;
    if (chunk) {
      const unsigned char* data = route_->inbound_chunk(from.chunk);
      placed = pair.PlaceWrite(
          from.target.key, from.target.address, word.bytes, has_immediate,
          [data](unsigned char* to, uint64_t at, uint32_t n) { CopyLarge(to, data + at, n); });
    } else {
      const uint64_t position = rx_position_.load(std::memory_order_relaxed);
      placed =
          pair.PlaceWrite(from.target.key, from.target.address, word.bytes, has_immediate,
                          [this, position](unsigned char* to, uint64_t at, uint32_t n) {
                            ReadBody(position, sizeof(Target) + static_cast<uint32_t>(at), to, n);
                          });
    }
    if (placed == Inbound::kBroken) return Step::kBroken;
    message_bytes_ += word.bytes;
  }
  if ((word.flags & kLast) != 0) {
    Trailer trailer;
    trailer.has_immediate = has_immediate;
    trailer.immediate = from.target.immediate;
    trailer.solicited = (word.flags & kWithSolicited) != 0;
    const Inbound finished = pair.FinishWrite(static_cast<uint32_t>(message_bytes_), trailer);
    if (finished == Inbound::kBroken) return Step::kBroken;
    write_placed_ = finished == Inbound::kHeld;
    if (write_placed_) return Step::kStop;
    in_message_ = InMessage::kNone;
  }
  if (chunk) HandBack(from.chunk);
  Consume(word, chunk);
  return Step::kConsumed;
}

OpenWrite ShmLink::open_write() const {
  if (in_message_ == InMessage::kWrite) return OpenWrite::kPlain;
  const bool open = in_message_ == InMessage::kWriteWithImmediate && !write_placed_;
  return open ? OpenWrite::kWithImmediate : OpenWrite::kNone;
}

ShmLink::Step ShmLink::ReceiveRead(const Word& word, const Slot& slot) {
  const uint32_t count = reads_in_count_.load(std::memory_order_relaxed);
  if (in_message_ != InMessage::kNone || word.slots != 1 || count >= reads_in_limit_) {
    return Nonsense();  // a peer keeps to the number it was told
  }
  if (reads_in_.empty()) reads_in_.resize(reads_in_limit_);
  ReadIn& read = reads_in_[(reads_in_first_ + count) % reads_in_limit_];
  read = {};
  if (word.op == Op::kAtomic) {
    AtomicLead lead;
    std::memcpy(&lead, slot.body, sizeof lead);
    if (lead.kind != kAtomicCompareAndSwap && lead.kind != kAtomicFetchAndAdd) return Nonsense();
    read.address = lead.address;
    read.key = lead.key;
    read.length = sizeof(uint64_t);
    read.atomic = lead.kind;
    read.compare_add = lead.compare_add;
    read.swap = lead.swap;
  } else {
    ReadLead lead;
    std::memcpy(&lead, slot.body, sizeof lead);
    read.address = lead.address;
    read.key = lead.key;
    read.length = lead.length;
  }
  reads_in_count_.store(count + 1, std::memory_order_relaxed);
  Consume(word, false);
  return Step::kConsumed;
}

ShmLink::Step ShmLink::ReceiveInvalidate(const Word& word, const Slot& slot) {
  if (in_message_ != InMessage::kNone || word.slots != 1) return Nonsense();
  InvalidateLead lead;
  std::memcpy(&lead, slot.body, sizeof lead);
  if (pair_.load(std::memory_order_relaxed)->Invalidate(lead.key) == Inbound::kBroken) {
    return Step::kBroken;
  }
  Consume(word, false);
  return Step::kConsumed;
}

inline void ShmLink::Consume(const Word& word, bool chunk) {
  const uint64_t position = rx_position_.load(std::memory_order_relaxed) + word.slots;
  rx_position_.store(position, std::memory_order_relaxed);
  if (chunk || (word.flags & kAcknowledge) != 0 || position - rx_published_ >= kCreditEvery) {
    ReturnCredit(position);
    if ((word.flags & kAcknowledge) != 0) {
      // The sender waits for this confirmation, and if it is cold nobody polls for it there.
      AfterPublish();
    } else {
      TellStarving();
    }
  }
}

// Consumes a message of one slot whose confirmation nobody waits for.
inline void ShmLink::ConsumeSlot() {
  const uint64_t position = rx_position_.load(std::memory_order_relaxed) + 1;
  rx_position_.store(position, std::memory_order_relaxed);
  if (position - rx_published_ < kCreditEvery) return;
  ReturnCredit(position);
  TellStarving();
}

inline void ShmLink::ReturnCredit(uint64_t position) {
  rx_published_ = position;
  my_line_->head.store(position, std::memory_order_release);
}

void ShmLink::FlushBack() {
  route_->ReturnChunks(back_mask_);
  back_mask_ = 0;
}

bool ShmLink::ConfirmSends() {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const uint64_t head = peer_line_->head.load(std::memory_order_acquire);
  seen_head_.store(head, std::memory_order_relaxed);
  bool moved = false;
  while (SendEntry* entry = pair.NextIncomplete(&confirm_cursor_)) {
    if (static_cast<int64_t>(head - entry->cookie) < 0) break;
    pair.Complete(confirm_cursor_, Status::kSuccess);
    confirms_.fetch_sub(1, std::memory_order_relaxed);
    moved = true;
  }
  return moved;
}

// A request is counted after its emission (Pump), so the peer may have taken it, and ended the
// connection, before a Poll has checked for its confirmation.
void ShmLink::TakeConfirmed() {
  if (descent_.inherited()) return;
  if (confirms_.load(std::memory_order_relaxed) != 0) ConfirmSends();
}

}  // namespace viaduct::verbs::shm
