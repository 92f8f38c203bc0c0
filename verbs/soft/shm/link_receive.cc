// Consumption: the inbound lock is held. Every word is copied once, and the copy is validated.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/numeric/bits.h"
#include "verbs/base/asymmetric_fence.h"
#include "verbs/soft/shm/copy.h"
#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {
namespace {

constexpr uint64_t kCreditEvery = 16;  // slots, if nobody waits for the confirmation
constexpr int kBackBatch = 4;          // chunks: `returned` is contended while a sender waits

// What one Poll looks at, however fast the peer adds to it: one lap of each ring.
constexpr uint32_t kMostPieces = kSlots;
constexpr uint32_t kMostReplies = kReplySlots;

constexpr bool Valid(uint64_t word, uint64_t position) {
  return (word & 1) == Parity<kSlots>(position);
}

}  // namespace

ShmLink::Step ShmLink::Nonsense() {
  pair_.load(std::memory_order_relaxed)->Fail(Status::kTransport);
  return Step::kBroken;
}

bool ShmLink::Arrived() const {
  if (InForkChild()) return false;
  const uint64_t position = rx_position_.load(std::memory_order_relaxed);
  const uint64_t word = rx_[position % kSlots].word.load(std::memory_order_acquire);
  const SoftQueuePair* pair = pair_.load(std::memory_order_relaxed);
  if (pair == nullptr) return false;
  if (Valid(word, position) && !pair->holding()) return true;
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
  // Of room a hot link need not be told: whoever polls it pumps.
  return unemitted && cold_.load(std::memory_order_relaxed) &&
         head != tx_head_.load(std::memory_order_relaxed);
}

bool ShmLink::ReplyWaits() const {
  const uint64_t position = reply_rx_position_.load(std::memory_order_relaxed);
  const uint64_t raw = reply_rx_[position % kReplySlots].word.load(std::memory_order_seq_cst);
  return (raw & 1) == Parity<kReplySlots>(position);
}

bool ShmLink::Poll(int budget) {
  if (InForkChild()) [[unlikely]]
    return false;
  bool moved = PollData(budget);
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  if (pair.ReadsOutstanding()) moved |= PollReplies();
  if (reads_in_count_.load(std::memory_order_relaxed) != 0) moved |= ServeReads();
  if (confirms_.load(std::memory_order_relaxed) != 0) moved |= ConfirmSends();
  return moved;
}

// --------------------------------------------------------------------------------- data ring

// Most messages. False: nothing has happened, there is more to it than meets the eye.
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
  // What is left then has arrived as much as what comes next: Arrived tells of it.
  for (uint32_t pieces = kMostPieces; budget > 0 && pieces != 0; pieces--) {
    const uint64_t position = rx_position_.load(std::memory_order_relaxed);
    const Slot& slot = rx_[position % kSlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if (!Valid(raw, position)) break;
    if (Word::IsShortSend(raw) && ReceiveShort(raw, slot)) [[likely]] {
      budget--;
      continue;
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

inline bool ShmLink::ChunkIsValid(const Word& word, const ChunkLead& lead) const {
  return word.slots == 1 && lead.chunk < kChunks && word.bytes <= kChunkBytes;
}

// Of the message that is coming in: a piece that brings it no further must be its end.
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
      // The sender waits for it, and if it is cold nobody looks there.
      AfterPublish();
    } else {
      TellStarving();
    }
  }
}

// Of a message that nobody waits for the confirmation of.
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

inline void ShmLink::TellStarving() {
  if (route_->needs_fence()) [[unlikely]]
    FullFence();
  std::atomic_signal_fence(std::memory_order_seq_cst);  // the look stays behind the store
  if (peer_line_->starving.load(std::memory_order_relaxed) != 0) [[unlikely]]
    route_->MarkPeer(id);
}

inline void ShmLink::HandBack(uint32_t chunk) {
  back_mask_ |= uint64_t{1} << chunk;
  if (absl::popcount(back_mask_) == kBackBatch) FlushBack();
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

// A request is counted behind its emission (Pump), so that the peer may have taken it, and ended,
// before Poll is told to look for it.
void ShmLink::TakeConfirmed() {
  if (InForkChild()) return;
  if (confirms_.load(std::memory_order_relaxed) != 0) ConfirmSends();
}

// -------------------------------------------------------------------------------- reply ring

inline bool ShmLink::ReplyRoom() {
  const uint64_t known = reply_head_.load(std::memory_order_relaxed);
  return reply_tx_position_ + 1 - known <= kReplySlots || ReclaimReplies();
}

// True if the peer has consumed answers since.
bool ShmLink::ReclaimReplies() {
  const uint64_t known = reply_head_.load(std::memory_order_relaxed);
  const uint64_t head = peer_line_->reply_head.load(std::memory_order_acquire);
  if (head == known) return false;
  if (head - known > reply_tx_position_ - known) {
    Nonsense();
    return false;
  }
  for (uint64_t position = known; position != head; position++) {
    reply_chunk_slots_ &= static_cast<uint8_t>(~(1u << (position % kReplySlots)));
  }
  reply_head_.store(head, std::memory_order_relaxed);
  return true;
}

// Answers the peer's reads, in their order, as far as there is room.
bool ShmLink::ServeReads() {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  ChunkPool& pool = route_->pool();
  bool moved = false;
  uint32_t left = kMostReplies;
  for (uint32_t count; (count = reads_in_count_.load(std::memory_order_relaxed)) != 0; left--) {
    if (left == 0) {
      pair.MarkArrived();  // there may be room, of which nobody tells
      break;
    }
    ReadIn& read = reads_in_[reads_in_first_];
    if (!ReplyRoom()) {
      if (cold_.load(std::memory_order_relaxed) && Starve()) continue;
      break;
    }
    if (read.atomic != 0) {
      if (!AnswerAtomic(read)) return moved;
      moved = true;
      reads_in_first_ = (reads_in_first_ + 1) % reads_in_limit_;
      reads_in_count_.store(count - 1, std::memory_order_relaxed);
      continue;
    }
    uint32_t bytes = read.length - read.offset;
    int chunk = -1;
    if (bytes > kBodyBytes) {
      ReclaimReplies();
      chunk = pool.Take(static_cast<uint32_t>(absl::popcount(uint32_t{reply_chunk_slots_})));
      // Without one, small pieces keep it moving (link_send.cc).
      if (chunk < 0 && reply_chunk_slots_ != 0) {
        if (cold_.load(std::memory_order_relaxed) && Starve()) continue;
        break;
      }
      bytes = std::min(bytes, chunk < 0 ? kBodyBytes : kChunkBytes);
    }
    const unsigned char* from;
    if (pair.CheckRead(read.key, read.address + read.offset, bytes, &from) != Inbound::kOk) {
      if (chunk >= 0) pool.PutBack(static_cast<uint32_t>(chunk));
      return moved;
    }
    Slot& slot = reply_tx_[reply_tx_position_ % kReplySlots];
    if (chunk >= 0) {
      CopyLarge(pool.data(static_cast<uint32_t>(chunk)), from, bytes);
      const ChunkLead lead = {{}, static_cast<uint32_t>(chunk), 0};
      std::memcpy(slot.body, &lead, sizeof lead);
      reply_chunk_slots_ |= static_cast<uint8_t>(1u << (reply_tx_position_ % kReplySlots));
    } else {
      CopySmall(slot.body, from, bytes);
    }
    read.offset += bytes;
    const bool last = read.offset == read.length;
    slot.word.store(Word::Pack(chunk >= 0 ? Op::kReplyChunk : Op::kReply, last ? kLast : 0, 1,
                               bytes, Parity<kReplySlots>(reply_tx_position_)),
                    std::memory_order_release);
    reply_tx_position_++;
    AfterPublish();
    moved = true;
    if (last) {
      reads_in_first_ = (reads_in_first_ + 1) % reads_in_limit_;
      reads_in_count_.store(count - 1, std::memory_order_relaxed);
    }
  }
  return moved;
}

// There is room. False: the pair breaks.
bool ShmLink::AnswerAtomic(const ReadIn& request) {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const bool swap = request.atomic == kAtomicCompareAndSwap;
  uint64_t original = 0;
  const Inbound done =
      pair.UpdateAtomic(request.key, request.address, &original, [&](uint64_t old) -> uint64_t {
        if (!swap) return old + request.compare_add;
        return old == request.compare_add ? request.swap : old;
      });
  if (done != Inbound::kOk) return false;
  Slot& slot = reply_tx_[reply_tx_position_ % kReplySlots];
  std::memcpy(slot.body, &original, sizeof original);
  slot.word.store(
      Word::Pack(Op::kReply, kLast, 1, sizeof original, Parity<kReplySlots>(reply_tx_position_)),
      std::memory_order_release);
  reply_tx_position_++;
  AfterPublish();
  return true;
}

// The answers to our reads and atomics.
bool ShmLink::PollReplies() {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  bool moved = false;
  for (uint32_t left = kMostReplies; left != 0; left--, moved = true) {
    const uint64_t position = reply_rx_position_.load(std::memory_order_relaxed);
    const Slot& slot = reply_rx_[position % kReplySlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if ((raw & 1) != Parity<kReplySlots>(position)) break;
    const Word word = Word::Unpack(raw);
    SendEntry* entry = pair.OldestRead();
    if (entry == nullptr) {
      // The answer may have overtaken the poster, who marks a request sent after he has published
      // it, and then looks for an answer himself.
      const bool posting = pair.SendsWait();
      entry = pair.OldestRead();
      if (entry == nullptr && posting) break;
    }
    const unsigned char* from = slot.body;
    const bool chunk = word.op == Op::kReplyChunk;
    ChunkLead lead = {};
    if (chunk) {
      std::memcpy(&lead, slot.body, sizeof lead);
      if (!ChunkIsValid(word, lead)) return Nonsense(), moved;
      from = route_->inbound_chunk(lead.chunk);
    } else if (word.op != Op::kReply || word.bytes > kBodyBytes || word.slots != 1) {
      return Nonsense(), moved;
    }
    if (entry == nullptr) return Nonsense(), moved;
    if (word.bytes == 0 && (word.flags & kLast) == 0) return Nonsense(), moved;
    if (pair.PlaceRead(*entry, entry->offset, word.bytes,
                       [from](unsigned char* to, uint64_t at, uint32_t n) {
                         CopyLarge(to, from + at, n);
                       }) != Inbound::kOk) {
      return moved;
    }
    entry->offset += word.bytes;
    if ((word.flags & kLast) != 0) {
      if (entry->offset != entry->length) return Nonsense(), moved;
      pair.FinishRead();
    }
    if (chunk) HandBack(lead.chunk);
    reply_rx_position_.store(position + 1, std::memory_order_relaxed);
    my_line_->reply_head.store(position + 1, std::memory_order_release);
    TellStarving();
  }
  if (back_mask_ != 0) FlushBack();
  return moved;
}

// -------------------------------------------------------------------------------------- heat

void ShmLink::Start() {
  my_line_->armed.store(1, std::memory_order_relaxed);
  GlobalFence();  // the look that follows sees what a peer sent without seeing that
}

void ShmLink::Heat() {
  if (InForkChild()) return;
  cold_.store(false, std::memory_order_relaxed);
  my_line_->armed.store(0, std::memory_order_relaxed);
  my_line_->starving.store(0, std::memory_order_relaxed);
}

bool ShmLink::Cool() {
  if (InForkChild()) return false;
  const SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const bool waits = pair.SendsWait() || reads_in_count_.load(std::memory_order_relaxed) != 0;
  // What came while nobody needed to be told is looked at once more: below what we know of, the
  // peer's head is no longer.
  seen_head_.store(tx_head_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  cold_.store(true, std::memory_order_relaxed);
  my_line_->armed.store(1, std::memory_order_relaxed);
  my_line_->starving.store(waits ? 1 : 0, std::memory_order_relaxed);
  return true;
}

// --------------------------------------------------------------------------------------- end

// No more than the ring holds: a hostile peer would go on writing.
void ShmLink::EndAt(uint64_t position) {
  rx_end_.store(std::min(position, rx_position_.load(std::memory_order_relaxed) + kSlots),
                std::memory_order_relaxed);
}

bool ShmLink::AllTaken() const {
  if (InForkChild()) return false;
  const uint64_t position = rx_position_.load(std::memory_order_relaxed);
  return position >= rx_end_.load(std::memory_order_relaxed) ||
         !Valid(rx_[position % kSlots].word.load(std::memory_order_acquire), position);
}

void ShmLink::DiscardInbound(uint64_t data_end, uint64_t reply_end) {
  uint64_t position = rx_position_.load(std::memory_order_relaxed);
  // Where a Poll broke off, some were consumed and not yet handed back.
  uint64_t chunks = std::exchange(back_mask_, 0);
  // At most one lap; the peer's positions only bound it from above.
  const auto add = [&chunks](const Slot& slot, const Word& word) {
    if (word.op != Op::kSendChunk && word.op != Op::kWriteChunk && word.op != Op::kReplyChunk) {
      return;
    }
    ChunkLead lead;
    std::memcpy(&lead, slot.body, sizeof lead);
    if (lead.chunk < kChunks) chunks |= uint64_t{1} << lead.chunk;
  };
  for (uint32_t i = 0; i < kSlots && position < data_end; i++) {
    const Slot& slot = rx_[position % kSlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if (!Valid(raw, position)) break;
    add(slot, Word::Unpack(raw));
    position++;  // continuations are passed one by one
  }
  position = reply_rx_position_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kReplySlots && position < reply_end; i++, position++) {
    const Slot& slot = reply_rx_[position % kReplySlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if ((raw & 1) != Parity<kReplySlots>(position)) break;
    add(slot, Word::Unpack(raw));
  }
  if (chunks != 0) route_->ReturnChunks(chunks);
}

}  // namespace viaduct::verbs::shm
