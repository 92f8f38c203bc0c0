// The life of a link, hot or cold. Its data paths are in link_send.cc, link_receive.cc and
// link_replies.cc.
#include "verbs/soft/shm/link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {

void ShmLink::Hold(SoftQueuePair& pair) {
  held_ = shared_from_this();
  pair_.store(&pair, std::memory_order_release);
}

void ShmLink::LetGo() {
  {
    SpinLockHolder holder(&pair_lock_);
    pair_.store(nullptr, std::memory_order_release);
  }
  held_.reset();
}

bool ShmLink::FailAttempt(ConnectOutcome outcome, absl::Span<const uint8_t> private_data) {
  SoftQueuePair* const attempting = pair();
  if (attempting == nullptr || !attempting->ConnectFailed(*this, outcome, private_data))
    return false;
  LetGo();
  return true;
}

bool ShmLink::NotHere() {
  SoftQueuePair* const attempting = pair();
  if (attempting == nullptr || !attempting->NotHere(*this)) return false;
  LetGo();
  return true;
}

void ShmLink::MarkArrived() {
  SpinLockHolder holder(&pair_lock_);
  if (SoftQueuePair* pair = pair_.load(std::memory_order_relaxed)) pair->MarkArrived();
}

void ShmLink::Bind(std::shared_ptr<Peer> to, uint32_t number) {
  peer = std::move(to);
  id = number;
  route_ = peer.get();
  const int side = peer->side();
  ConnectionBlock& block = peer->arena().connection(id);
  tx_ = block.data[1 - side];
  rx_ = block.data[side];
  reply_tx_ = block.reply[1 - side];
  reply_rx_ = block.reply[side];
  peer_line_ = &block.credit[1 - side];
  my_line_ = &block.credit[side];
}

void ShmLink::Disconnect(Status verdict) {
  std::shared_ptr<ShmLink> self = std::move(held_);
  {
    SpinLockHolder holder(&pair_lock_);
    pair_.store(nullptr, std::memory_order_release);
  }
  close_verdict_ = verdict;
  close_errand_.Post(loop_, std::move(self));
}

void ShmLink::Close() {
  if (peer == nullptr) {
    cancelled = true;  // the attempt has not got that far
  } else {
    peer->CloseLink(shared_from_this(), close_verdict_);
  }
}

void ShmLink::GiveAnswer(Answer answer) {
  answer_ = std::move(answer);
  answer_errand_.Post(loop_, shared_from_this());
}

void ShmLink::SendAnswer() {
  const Answer answer = std::move(answer_);
  if (answer.type == MessageType::kAccept) {
    peer->Accept(shared_from_this(), answer.terms, answer.private_data);
  } else {
    peer->TurnDown(shared_from_this(), answer.type, answer.private_data);
  }
}

// -------------------------------------------------------------------------------------- heat

void ShmLink::Start() {
  my_line_->armed.store(1, std::memory_order_relaxed);
  GlobalFence();  // the check that follows sees what a peer sent before it saw `armed`
}

void ShmLink::Heat() {
  if (descent_.inherited()) return;
  cold_.store(false, std::memory_order_relaxed);
  my_line_->armed.store(0, std::memory_order_relaxed);
  my_line_->starving.store(0, std::memory_order_relaxed);
}

bool ShmLink::Cool() {
  if (descent_.inherited()) return false;
  const SoftQueuePair& pair = *pair_.load(std::memory_order_relaxed);
  const bool waits = pair.SendsWait() || reads_in_count_.load(std::memory_order_relaxed) != 0;
  // Makes Arrived report confirmations that came, without a mark, while the link was hot: the
  // peer's head is never below tx_head_, so it differs from this seen_head_.
  seen_head_.store(tx_head_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  cold_.store(true, std::memory_order_relaxed);
  my_line_->armed.store(1, std::memory_order_relaxed);
  my_line_->starving.store(waits ? 1 : 0, std::memory_order_relaxed);
  return true;
}

// --------------------------------------------------------------------------------------- end

// At most one lap of the ring away: a hostile peer would go on writing.
void ShmLink::EndAt(uint64_t position) {
  rx_end_.store(std::min(position, rx_position_.load(std::memory_order_relaxed) + kSlots),
                std::memory_order_relaxed);
}

bool ShmLink::AllTaken() const {
  if (descent_.inherited()) return false;
  const uint64_t position = rx_position_.load(std::memory_order_relaxed);
  return position >= rx_end_.load(std::memory_order_relaxed) ||
         !Arrives<kSlots>(rx_[position % kSlots].word.load(std::memory_order_acquire), position);
}

void ShmLink::DiscardInbound(uint64_t data_end, uint64_t reply_end) {
  uint64_t position = rx_position_.load(std::memory_order_relaxed);
  // If a Poll broke off, it consumed some chunks and did not hand them back.
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
    if (!Arrives<kSlots>(raw, position)) break;
    add(slot, Word::Unpack(raw));
    position++;  // continuations are skipped one by one
  }
  position = reply_rx_position_.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < kReplySlots && position < reply_end; i++, position++) {
    const Slot& slot = reply_rx_[position % kReplySlots];
    const uint64_t raw = slot.word.load(std::memory_order_acquire);
    if (!Arrives<kReplySlots>(raw, position)) break;
    add(slot, Word::Unpack(raw));
  }
  if (chunks != 0) route_->ReturnChunks(chunks);
}

}  // namespace viaduct::verbs::shm
