// The life of a link; its data paths are link_send.cc and link_receive.cc.
#include "verbs/soft/shm/link.h"

#include <utility>

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

}  // namespace viaduct::verbs::shm
