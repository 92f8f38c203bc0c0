// The reply rings: our answers to the peer's reads and atomics, and the peer's answers to ours. The
// inbound lock is held. Every word is copied once, and the copy is validated.
#include <algorithm>
#include <cstring>

#include "absl/numeric/bits.h"
#include "verbs/soft/shm/copy.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/link_inline.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {
namespace {

// One Poll handles at most one lap of a ring, however fast the peer fills or empties it.
constexpr uint32_t kMostReplies = kReplySlots;

}  // namespace

bool ShmLink::ReplyWaits() const {
  const uint64_t position = reply_rx_position_.load(std::memory_order_relaxed);
  const uint64_t raw = reply_rx_[position % kReplySlots].word.load(std::memory_order_seq_cst);
  return Arrives<kReplySlots>(raw, position);
}

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
  bool moved = false;
  uint32_t left = kMostReplies;
  for (uint32_t count; (count = reads_in_count_.load(std::memory_order_relaxed)) != 0; left--) {
    if (left == 0) {
      // There may still be room, which nobody would report.
      pair_.load(std::memory_order_relaxed)->MarkArrived();
      break;
    }
    ReadIn& read = reads_in_[reads_in_first_];
    const Step step = read.atomic != 0 ? AnswerAtomic(read) : AnswerRead(read);
    if (step == Step::kStop && cold_.load(std::memory_order_relaxed) && Starve()) continue;
    if (step != Step::kConsumed) break;
    moved = true;
    if (read.offset != read.length) continue;
    reads_in_first_ = (reads_in_first_ + 1) % reads_in_limit_;
    reads_in_count_.store(count - 1, std::memory_order_relaxed);
  }
  return moved;
}

// Answers the next piece. kStop: there is no room.
ShmLink::Step ShmLink::AnswerRead(ReadIn& read) {
  if (!ReplyRoom()) return Step::kStop;
  ChunkPool& pool = route_->pool();
  uint32_t bytes = read.length - read.offset;
  int chunk = -1;
  if (bytes > kBodyBytes) {
    ReclaimReplies();
    chunk = pool.Take(static_cast<uint32_t>(absl::popcount(uint32_t{reply_chunk_slots_})));
    // Without a chunk, small pieces keep the read moving (link_send.cc).
    if (chunk < 0 && reply_chunk_slots_ != 0) return Step::kStop;
    bytes = std::min(bytes, chunk < 0 ? kBodyBytes : kChunkBytes);
  }
  const unsigned char* from;
  if (pair_.load(std::memory_order_relaxed)
          ->CheckRead(read.key, read.address + read.offset, bytes, &from) != Inbound::kOk) {
    if (chunk >= 0) pool.PutBack(static_cast<uint32_t>(chunk));
    return Step::kBroken;
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
  PublishReply(chunk >= 0 ? Op::kReplyChunk : Op::kReply, read.offset == read.length, bytes);
  return Step::kConsumed;
}

// kStop: there is no room.
ShmLink::Step ShmLink::AnswerAtomic(ReadIn& request) {
  if (!ReplyRoom()) return Step::kStop;
  const bool swap = request.atomic == kAtomicCompareAndSwap;
  uint64_t original = 0;
  const Status done =
      pair_.load(std::memory_order_relaxed)
          ->UpdateAtomic(request.key, request.address, &original, [&](uint64_t old) -> uint64_t {
            if (!swap) return old + request.compare_add;
            return old == request.compare_add ? request.swap : old;
          });
  if (done != Status::kSuccess) return Step::kBroken;
  std::memcpy(reply_tx_[reply_tx_position_ % kReplySlots].body, &original, sizeof original);
  request.offset = request.length;
  PublishReply(Op::kReply, /*last=*/true, sizeof original);
  return Step::kConsumed;
}

// The slot's body is filled.
void ShmLink::PublishReply(Op op, bool last, uint32_t bytes) {
  reply_tx_[reply_tx_position_ % kReplySlots].word.store(
      Word::Pack(op, last ? kLast : 0, 1, bytes, Parity<kReplySlots>(reply_tx_position_)),
      std::memory_order_release);
  reply_tx_position_++;
  AfterPublish();
}

// The answers to our reads and atomics.
bool ShmLink::PollReplies() {
  SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  bool moved = false;
  for (uint32_t left = kMostReplies; left != 0; left--, moved = true) {
    const uint64_t position = reply_rx_position_.load(std::memory_order_relaxed);
    const Slot& slot = reply_rx_[position % kReplySlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if (!Arrives<kReplySlots>(raw, position)) break;
    const Word word = Word::Unpack(raw);
    SendEntry* entry = pair.OldestRead();
    if (entry == nullptr) {
      // The answer may have overtaken the poster, which publishes a request before it marks the
      // request as sent, and then checks for an answer itself.
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

}  // namespace viaduct::verbs::shm
