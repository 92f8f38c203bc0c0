// One link of side 0 whose peer is the test itself: it fills the rings and the peer's line by hand.
#ifndef VIADUCT_VERBS_SOFT_SHM_TESTING_BARE_LINK_H_
#define VIADUCT_VERBS_SOFT_SHM_TESTING_BARE_LINK_H_

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/arena.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/peer.h"
#include "verbs/soft/shm/testing_node.h"

namespace viaduct::verbs::shm {

// A connected link. The host takes its peer for dead, so that no message is sent.
class BareLink {
 public:
  explicit BareLink(NoReceive no_receive = NoReceive::kHold)
      : BareLink(OpenForTest(), nullptr, no_receive, nullptr) {}
  // One of several in a context, which share their receives.
  BareLink(Context& context, SharedReceives& shared)
      : BareLink(nullptr, &context, NoReceive::kHold, &shared) {}
  ~BareLink() {
    end_.DestroyPair();
    loop_.Drain();
  }

  TestEnd& end() { return end_; }
  SoftQueuePair& pair() { return static_cast<SoftQueuePair&>(end_.pair()); }
  ShmLink& link() { return *link_; }
  ChunkPool& pool() { return peer_->pool(); }
  // Takes all chunks, as another connection would. Returns how many there were.
  uint32_t TakeChunks() {
    uint32_t taken = 0;
    while (pool().Take(0) >= 0) taken++;
    return taken;
  }
  ConnectionBlock& block() { return arena_->connection(0); }
  CreditLine& peer_line() { return block().credit[1]; }
  CreditLine& line() { return block().credit[0]; }
  // Whether the link has filled the slot at that position.
  bool Has(uint64_t position) {
    return Arrives<kSlots>(block().data[1][position % kSlots].word.load(), position);
  }
  template <typename Lead>
  Lead LeadAt(uint64_t position) {
    Lead lead;
    std::memcpy(&lead, block().data[1][position % kSlots].body, sizeof lead);
    return lead;
  }
  // The same for the reply ring.
  bool HasReply(uint64_t position) {
    return Arrives<kReplySlots>(block().reply[1][position % kReplySlots].word.load(), position);
  }
  // Has the link left a mark for its peer? Takes it.
  bool TakeMark() { return arena_->direction(1).summary.exchange(0) != 0; }
  uint64_t returned() { return arena_->direction(0).returned.load(); }

  // Fill the next slot of the data ring and of the reply ring that the link consumes.
  template <typename Lead>
  void Put(Op op, uint8_t flags, uint32_t bytes, const Lead& lead, uint32_t slots = 1) {
    Fill(block().data[0][position_ % kSlots], lead,
         Word::Pack(op, flags, slots, bytes, Parity<kSlots>(position_)));
    ++position_;
  }
  template <typename Lead>
  void PutReply(Op op, uint8_t flags, uint32_t bytes, const Lead& lead, uint32_t slots = 1) {
    Fill(block().reply[0][reply_position_ % kReplySlots], lead,
         Word::Pack(op, flags, slots, bytes, Parity<kReplySlots>(reply_position_)));
    ++reply_position_;
  }
  // Empties the slot that was filled last.
  void TakeBack() {
    --position_;
    block().data[0][position_ % kSlots].word.fetch_xor(1);
  }
  // Changes the word of the slot that was filled last.
  void Replace(Op op, uint8_t flags, uint32_t bytes) {
    const uint64_t position = position_ - 1;
    block().data[0][position % kSlots].word.store(
        Word::Pack(op, flags, 1, bytes, Parity<kSlots>(position)));
  }
  // Lets the link poll.
  void Attend() {
    loop_.RunAndWait([this] { pair().Attend(); });
  }

 private:
  BareLink(std::unique_ptr<Context> own, Context* context, NoReceive no_receive,
           SharedReceives* shared)
      : context_(std::move(own)),
        end_(context != nullptr ? *context : *context_, 1 << 20, 2 * kSlots, /*one_queue=*/false,
             no_receive, shared),
        arena_(Arena::Create()),
        link_(ShmLink::Make(loop_)) {
    EXPECT_TRUE(arena_->PayConnection(0));
    peer_ = std::make_shared<Peer>(Host::Get(loop_), loop_, 0, Descriptor(), 0, arena_);
    link_->Bind(peer_, 0);
    link_->SetReadsIn(pair().max_reads_in());
    link_->Hold(pair());
    EXPECT_TRUE(pair().Attach(*link_).ok());
    loop_.Post([this] {
      peer_->Die();
      EXPECT_TRUE(pair().Established(*link_, {}));
    });
    loop_.Drain();
    loop_.Drain();  // the check that followed
  }

  template <typename Lead>
  static void Fill(Slot& slot, const Lead& lead, uint64_t word) {
    static_assert(sizeof lead <= kBodyBytes);
    std::memcpy(slot.body, &lead, sizeof lead);
    slot.word.store(word, std::memory_order_release);
  }

  ControlThread& loop_ = **ControlThread::Get();
  const std::unique_ptr<Context> context_;  // null: it is another's
  TestEnd end_;
  const std::shared_ptr<Arena> arena_;
  std::shared_ptr<Peer> peer_;
  const std::shared_ptr<ShmLink> link_;
  uint64_t position_ = 0;
  uint64_t reply_position_ = 0;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_TESTING_BARE_LINK_H_
