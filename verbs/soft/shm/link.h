// One end of a connection over shared memory.
//
// Data: link_send.cc (under the queue pair's send lock), link_receive.cc and link_replies.cc
// (inbound lock). The peer manages the life of a connection (peer_connections.cc, executor).
#ifndef VIADUCT_VERBS_SOFT_SHM_LINK_H_
#define VIADUCT_VERBS_SOFT_SHM_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "verbs/base/block.h"
#include "verbs/base/errand.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/lock.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shm/arena_format.h"
#include "verbs/soft/shm/descriptor.h"
#include "verbs/soft/shm/message_format.h"

namespace viaduct::verbs::shm {

class Peer;

class ShmLink final : public Link, public OnBlocks, public std::enable_shared_from_this<ShmLink> {
 public:
  static std::shared_ptr<ShmLink> Make(EventLoop& loop) {
    return std::shared_ptr<ShmLink>(new ShmLink(loop));  // make_shared would not be on blocks
  }
  ~ShmLink() override = default;

  // ------------------------------------------------------------------------------ Link
  void Pump() override;
  bool Poll(int budget) override;
  bool Arrived() const override;
  void Start() override;
  void Heat() override;
  bool Cool() override;
  void Disconnect(Status verdict) override;
  bool AllTaken() const override;
  OpenWrite open_write() const override;
  void TakeConfirmed() override;

  // ------------------------------------------------------------- the connection's life
  // From here on the queue pair keeps the link alive, until it disconnects or until LetGo.
  void Hold(SoftQueuePair& pair);
  void LetGo();
  // Call SoftQueuePair::ConnectFailed and NotHere if the link still belongs to a queue pair, which
  // then lets go of it. False: the queue pair has disconnected, or is about to. Executor.
  bool FailAttempt(ConnectOutcome outcome, absl::Span<const uint8_t> private_data = {});
  bool NotHere();
  // Null after it has disconnected. On the executor it stays valid while the caller runs.
  SoftQueuePair* pair() const { return pair_.load(std::memory_order_acquire); }

  // Calls SoftQueuePair::MarkArrived if the link still belongs to a queue pair. Any thread.
  void MarkArrived();

  // Before any data moves. `reads_in`: how many reads the peer may have outstanding.
  void Bind(std::shared_ptr<Peer> peer, uint32_t id);
  void SetReadsIn(uint32_t reads_in) { reads_in_limit_ = reads_in; }

  // Tells the requester of this link what has become of its request. Once. Any thread; needs no
  // memory.
  struct Answer {
    MessageType type = MessageType::kRefuse;
    AcceptBody terms = {};  // of kAccept
    std::vector<uint8_t> private_data;
  };
  void GiveAnswer(Answer answer);

  // After the end: hands back the chunks of messages that were never consumed, up to the peer's
  // last positions, which are not trusted.
  void DiscardInbound(uint64_t data_end, uint64_t reply_end);
  // The peer has said that it sends nothing from this position on. Executor.
  void EndAt(uint64_t position);
  uint64_t data_end() const { return tx_position_; }
  uint64_t reply_end() const { return reply_tx_position_; }

  // Executor only.
  enum class Phase : uint8_t { kNew, kConnecting, kRequested, kAccepting, kConnected, kClosed };
  Phase phase = Phase::kNew;
  bool local_closed = false;            // kClose was sent
  bool peer_closed = false;             // kClose was received
  bool cancelled = false;               // the requester gave up before it was answered
  Executor::TimerId silence_timer = 0;  // in kAccepting
  CloseBody peer_close = {};
  // What the requester asked for, until there is an answer: another process may have to be asked.
  struct Wanted {
    RequestBody body;
    std::vector<uint8_t> private_data;
    int redirections = 0;
  };
  std::unique_ptr<Wanted> wanted;
  uint32_t id = 0;
  std::shared_ptr<Peer> peer;

 private:
  explicit ShmLink(EventLoop& loop) : loop_(loop) {}
  struct ReadIn {
    uint64_t address;
    uint32_t key;
    uint32_t length;
    uint32_t offset;
    uint32_t atomic;  // AtomicKind, or 0: a read
    uint64_t compare_add;
    uint64_t swap;
  };
  enum class InMessage : uint8_t { kNone, kSend, kWrite, kWriteWithImmediate };

  void MarkPeerIf(const std::atomic<uint32_t>& flag);
  void AfterPublish();
  void TellStarving();

  // ---- sending
  bool EmitShort(const SendEntry& entry);
  bool Emit(SendEntry& entry);
  bool EmitSlots(SendEntry& entry, uint32_t bytes);
  bool EmitChunks(SendEntry& entry);
  template <typename Lead>
  void EmitLead(Op op, uint8_t flags, const Lead& lead);
  bool EmitRead(const SendEntry& entry);
  bool EmitAtomic(const SendEntry& entry);
  bool EmitInvalidate(SendEntry& entry);
  bool HasRoom(uint32_t slots);
  bool Reclaim();
  bool Starve();
  void StopStarving();
  void LookForConfirmation();
  void LookForReply();
  void Publish(uint64_t word, uint32_t slots);
  void WriteBody(uint32_t at, const unsigned char* from, uint32_t n);

  // ---- receiving
  enum class Step : uint8_t { kConsumed, kStop, kBroken };
  bool PollData(int budget);
  bool ReceiveShort(uint64_t raw, const Slot& slot);
  Step ReceiveSend(const Word& word, const Slot& slot);
  Step ReceiveWrite(const Word& word, const Slot& slot);
  Step ReceiveRead(const Word& word, const Slot& slot);
  Step ReceiveInvalidate(const Word& word, const Slot& slot);
  void ReadBody(uint64_t position, uint32_t at, unsigned char* to, uint32_t n) const;
  bool ChunkIsValid(const Word& word, const ChunkLead& lead) const;
  bool SlotsAreValid(const Word& word, uint32_t lead) const;
  bool PieceIsValid(const Word& word) const;
  void Consume(const Word& word, bool chunk);
  void ConsumeSlot();
  void ReturnCredit(uint64_t position);
  void HandBack(uint32_t chunk);
  void FlushBack();
  bool ReplyWaits() const;
  bool PollReplies();
  bool ServeReads();
  Step AnswerRead(ReadIn& read);
  Step AnswerAtomic(ReadIn& request);
  void PublishReply(Op op, bool last, uint32_t bytes);
  bool ReplyRoom();
  bool ReclaimReplies();
  bool ConfirmSends();
  Step Nonsense();

  // ---- life, on the executor
  void SendAnswer();
  void Close();

  EventLoop& loop_;
  Answer answer_;
  Errand<&ShmLink::SendAnswer, std::shared_ptr<ShmLink>> answer_errand_;
  Status close_verdict_ = Status::kSuccess;
  Errand<&ShmLink::Close, std::shared_ptr<ShmLink>> close_errand_;
  SpinLock pair_lock_;  // held while another thread follows pair_, and to clear it
  std::atomic<SoftQueuePair*> pair_{nullptr};
  std::shared_ptr<ShmLink> held_;  // this, while a queue pair holds it

  // Fixed by Bind.
  Slot* tx_ = nullptr;
  Slot* rx_ = nullptr;
  Slot* reply_tx_ = nullptr;
  Slot* reply_rx_ = nullptr;
  CreditLine* peer_line_ = nullptr;  // our credits; whether the peer polls, or starves
  CreditLine* my_line_ = nullptr;
  Peer* route_ = nullptr;  // = peer.get()
  uint32_t reads_in_limit_ = 0;
  Descent descent_;

  alignas(64) uint64_t tx_position_ = 0;  // the send lock guards this group
  std::atomic<uint64_t> tx_head_{0};      // what we know of the peer's progress
  uint64_t chunk_slots_ = 0;              // bit i: slot i of the ring carries a chunk
  // Requests with kConfirm that are not complete. A request is counted after its emission, so the
  // count may be one too low, even below 0, for a moment.
  std::atomic<uint32_t> confirms_{0};
  std::atomic<bool> cold_{true};  // set by Heat and Cool; read by the sender

  alignas(64) std::atomic<uint64_t> rx_position_{0};  // the inbound lock guards this group
  uint64_t rx_published_ = 0;
  uint64_t message_bytes_ = 0;  // of the message that is coming in
  uint64_t held_word_ = 0;      // of the slot at rx_position_, if it waits for a receive, or 0
  InMessage in_message_ = InMessage::kNone;
  bool write_placed_ = false;      // the end of a write is held: do not place it again
  uint8_t reply_chunk_slots_ = 0;  // bit i: slot i of the reply ring carries a chunk
  uint64_t back_mask_ = 0;         // chunks consumed and not yet handed back: at most four
  uint64_t confirm_cursor_ = 0;
  std::atomic<uint64_t> seen_head_{0};        // the peer's head at the last check for confirmations
  std::atomic<uint64_t> rx_end_{UINT64_MAX};  // set by EndAt
  std::atomic<uint64_t> reply_rx_position_{0};
  uint64_t reply_tx_position_ = 0;
  std::atomic<uint64_t> reply_head_{0};
  std::vector<ReadIn> reads_in_;  // a ring of reads_in_limit_; empty until the first read
  uint32_t reads_in_first_ = 0;
  std::atomic<uint32_t> reads_in_count_{0};
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_LINK_H_
