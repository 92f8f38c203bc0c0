// One end of an iWARP connection, from the attempt to the last byte.
//
// Files: link.cc (life), link_outbound.cc (what is sent), link_inbound.cc (what is received).
//
// Locks. Poll runs under the pair's inbound lock, Pump under its send lock; both use the sending
// half under transmit_lock_, which is taken after either of them. The link's life (Open, OnEvent,
// End, timers) runs on the loop's thread, where the pair may be used until Disconnect has cleared
// pair_.
//
// The socket is watched one-shot: after each event, and whenever the wanted events change, Arm()
// sets them anew. So an event that nobody can serve yet (a held message, input of a hot link, whose
// pollers read it themselves) never makes the loop spin.
#ifndef VIADUCT_VERBS_SOFT_IWARP_LINK_H_
#define VIADUCT_VERBS_SOFT_IWARP_LINK_H_

#include <sys/types.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "verbs/base/errand.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/soft/iwarp/connector.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/ending.h"
#include "verbs/soft/iwarp/fpdu_reader.h"
#include "verbs/soft/iwarp/inbound_sequence.h"
#include "verbs/soft/iwarp/link_options.h"
#include "verbs/soft/iwarp/mpa.h"
#include "verbs/soft/iwarp/mpa_negotiation.h"
#include "verbs/soft/iwarp/parked_messages.h"
#include "verbs/soft/iwarp/receive_buffers.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/transmit_stream.h"
#include "verbs/soft/iwarp/unsent_links.h"
#include "verbs/soft/iwarp/wire_error.h"
#include "verbs/soft/link.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs::iwarp {

// Whether the peer is a soft device as well, which the consumers above have found out.
inline bool ToSoftDevice(const SoftQueuePair& pair) {
  return pair.immediate_form() == ImmediateForm::kNative;
}

// What the links of a context share; lives as long as the last of them.
struct LinkShared {
  LinkShared(EventLoop& event_loop, const LinkOptions& link_options)
      : loop(event_loop), options(link_options) {}

  EventLoop& loop;
  const LinkOptions options;
  ReceiveBuffers buffers;
};

// Owns itself from Dial or Answer until the socket is closed.
class IwarpLink final : public Link,
                        public std::enable_shared_from_this<IwarpLink>,
                        private Unsent,
                        private Ending {
 public:
  // The active side. The outcome is reported to the pair, on the loop.
  static Link* Dial(std::shared_ptr<LinkShared> shared, SoftQueuePair& pair, const Address& from,
                    const ConnectOptions& options);

  // The passive side, with the consumer's answer. Fails as SoftQueuePair::Attach does; then nothing
  // has happened, and *socket stays the caller's.
  static absl::Status Answer(std::shared_ptr<LinkShared> shared, SoftQueuePair& pair,
                             Socket* socket, const MpaFrame& request,
                             absl::Span<const uint8_t> private_data);

  ~IwarpLink();
  IwarpLink(const IwarpLink&) = delete;
  IwarpLink& operator=(const IwarpLink&) = delete;

  void Pump() override;
  bool Poll(int budget) override;
  bool Arrived() const override;
  void Start() override;
  void Heat() override;
  bool Cool() override;
  void Disconnect(Status verdict) override;
  bool AllTaken() const override { return parked_.empty(); }
  OpenWrite open_write() const override;

 private:
  // A read that the peer has not answered.
  struct OutboundRead {
    // True: the program's. False: ours, which confirms `confirms` requests or is the first FPDU.
    bool user = false;
    uint32_t confirms = 0;
  };
  // A read of the peer that has not been answered, or not completely.
  struct InboundRead {
    ReadRequest request;
    uint32_t sequence = 0;                // of its Read Request
    uint32_t offset = 0;                  // bytes answered
    std::optional<AtomicRequest> atomic;  // if set, `request` means nothing
  };
  // A request that the peer has not confirmed.
  struct Unconfirmed {
    uint64_t position;
    uint32_t next;  // sequence number of the message after it
  };
  enum class Life : uint8_t { kDialling, kAwaitingFirst, kUp, kClosing, kEnded };

  IwarpLink(std::shared_ptr<LinkShared> shared, SoftQueuePair& pair);

  // A request that was accepted.
  struct Accepted {
    Socket socket;
    MpaFrame request;
    std::vector<uint8_t> private_data;  // of the answer
  };

  // ---- link.cc: life
  void OnAnswer(Connector::Answer answer);
  void SendAnswer();
  void Open(Socket socket, const MpaAgreement& agreement, bool initiator);
  bool WatchSocket();
  void OnEvent(uint32_t events);
  void OnFirstBytes();
  void OnFirstFpduLate();
  void NudgeAfter(Nanos time, bool again);
  void Nudge();
  void FailAttempt(ConnectOutcome outcome, absl::Span<const uint8_t> private_data);
  void RestartOnNearerWire();  // where somebody listens by now
  void End();
  void ContinueClosing();
  // Releases the link when the peer has taken nothing for as long as it may be silent.
  void AwaitClosing();
  size_t Untaken();
  // What is to be closed: no thread that flushes uses its number any more.
  Socket TakeSocket();
  void Release();
  void GiveWay() override { Release(); }
  void CancelTimer();
  void Arm();
  void NoteSent();
  void WatchForAcks();
  void CheckAcks();

  // ---- link_outbound.cc
  // Sends as far as there is room: what waits, answers to reads and, inside Pump, requests. Returns
  // whether that completed a request that waited for room. `last`: no later call will continue the
  // answers.
  bool Transmit(bool requests, bool last = false) ABSL_LOCKS_EXCLUDED(transmit_lock_);
  // The oldest answer has been sent in part.
  bool answer_open() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_) {
    return !answers_.empty() && answers_.front().offset != 0;
  }
  bool EmitRequest(SoftQueuePair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // Sends the request of a read or an atomic; `read` is kept until it is answered.
  bool SendOnReadQueue(RdmapOpcode opcode, std::span<const uint8_t> fixed, const OutboundRead& read)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  void NoteRead(const OutboundRead& read) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool EmitRead(SoftQueuePair& pair, SendEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool EmitAtomic(SoftQueuePair& pair, SendEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool EmitMessage(SoftQueuePair& pair, SendEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // Whether the request completes only when the peer has confirmed it.
  bool Confirms(const SendEntry& entry) const;
  void EndMessage(SoftQueuePair& pair, SendEntry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool EmitAnswer(SoftQueuePair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool EmitAtomicAnswer(SoftQueuePair& pair, const InboundRead& read)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // How many unanswered reads the peer may have. An empty read as the first FPDU must be answered
  // even if reads are not allowed.
  size_t MostAnswers() const { return std::max<size_t>(agreement_.ird, 1); }
  // The error in the Terminate when a read or an atomic is refused access to its memory.
  static WireError RefusedRead(Refusal why);
  // The pair is breaking because of the oldest answer: drops all answers, and makes the Terminate
  // quote its request. `ulpdu` is that request, with room for the header in front.
  void RefuseOldestAnswer(const WireError& error, RdmapOpcode opcode, std::span<uint8_t> ulpdu)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool Flush() override;
  void EmitEmptyAnswers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  void EmitEmptyWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool EmitSilentRead(uint32_t confirms, const std::optional<ConfirmationWord>& word)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // Asks the peer to confirm the requests for which no read was sent yet, if it allows one more
  // read and no message is open; so this is called wherever a read or a message ends. Usually the
  // message has carried its read along already. If the socket fails, the next Transmit notices.
  void EmitConfirmation(const SoftQueuePair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // Prepares the Terminate to be sent at the end; only the first call counts.
  void PrepareTerminate(const WireError& error, std::span<const uint8_t> ulpdu)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool SendParts(std::span<const iovec> parts) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // The socket took nothing; errno tells why. Whoever reads from it will not see that error, and
  // checks lost_ under this lock instead.
  void NoteSendError() ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool SendControl(const DdpHeader& header, std::span<const uint8_t> fixed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);

  // ---- link_inbound.cc: all inside Poll. A bool result says whether to go on: false if the
  // connection breaks or no more can be parked. *held: no receive was there, nothing was consumed.
  // Receives the next bytes into input_ and reader_; returns what recvmsg does.
  ssize_t ReceiveSome();
  bool Receive(SoftQueuePair& pair);
  // Whether the received bytes that were not parsed yet begin with a Read Request.
  bool ReadRequestFollows() const;
  // At the end, instead of Poll: queues answers to the empty reads that follow what has been taken.
  // The answers tell the peer that it was taken.
  void TakeEmptyReads() ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  void NoteFpdu();
  bool Take(SoftQueuePair& pair, std::span<const uint8_t> ulpdu);
  // Whether nothing more is to be read until a receive has taken something.
  bool Full() const { return parked_.full() && !hung_up_.load(std::memory_order_relaxed); }
  bool Park(ParkedMessages::Kind kind, std::span<const uint8_t> ulpdu);
  bool Replay(SoftQueuePair& pair);
  bool TakeSend(SoftQueuePair& pair, const DdpHeader& header, std::span<const uint8_t> ulpdu);
  // `refused`: the Write directly before it was refused.
  bool DeliverSend(SoftQueuePair& pair, const DdpHeader& header, std::span<const uint8_t> ulpdu,
                   bool refused, bool* held);
  bool DeliverWrittenValue(SoftQueuePair& pair, const DdpHeader& header, uint32_t value,
                           uint32_t length, std::span<const uint8_t> ulpdu, bool refused,
                           bool* held);
  bool TakeImmediate(SoftQueuePair& pair, const DdpHeader& header, std::span<const uint8_t> ulpdu);
  bool TakeWrite(SoftQueuePair& pair, const DdpHeader& header, std::span<const uint8_t> ulpdu);
  bool DeliverWrite(SoftQueuePair& pair, const DdpHeader& header, std::span<const uint8_t> ulpdu);
  bool FinishWrite(SoftQueuePair& pair, bool* held);
  bool TakeReadRequest(SoftQueuePair& pair, const DdpHeader& header,
                       std::span<const uint8_t> ulpdu);
  bool QueueAnswer(SoftQueuePair& pair, const DdpHeader& header, std::span<const uint8_t> ulpdu);
  // Queues an answer, unless an earlier read was refused when its answer was due, which another
  // thread may have done meanwhile: the peer would take this answer for the one to that read.
  void AnswerLater(const InboundRead& read) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  bool TakeReadResponse(SoftQueuePair& pair, const DdpHeader& header,
                        std::span<const uint8_t> ulpdu);
  bool TakeAtomicResponse(SoftQueuePair& pair, std::span<const uint8_t> ulpdu);
  void CompleteOldestConfirm(SoftQueuePair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(transmit_lock_);
  // The peer has refused message `sequence`, and so has received all before it.
  void CompleteBefore(SoftQueuePair& pair, uint32_t sequence);
  // The answer to the program's oldest read or atomic is complete.
  void FinishOldestRead(SoftQueuePair& pair);
  bool TakeTerminate(SoftQueuePair& pair, std::span<const uint8_t> payload);
  bool NoteFin();  // false: it is no FIN, the connection is lost
  void AtEnd(SoftQueuePair& pair, bool fin);
  void TellLeft();  // on the loop
  // The peer broke a rule: fails the pair and prepares the Terminate that says which.
  bool Break(SoftQueuePair& pair, const WireError& error, std::span<const uint8_t> ulpdu);
  // The pair is failing already: prepares the Terminate that says why.
  bool StopWith(const WireError& error, std::span<const uint8_t> ulpdu);
  // The connection has gone: fails the pair, unless that is null because Disconnect has come first.
  void Lost(SoftQueuePair* pair);
  void ReleaseInput();

  const std::shared_ptr<LinkShared> shared_;
  using Self = std::shared_ptr<IwarpLink>;
  Self self_;                         // loop; null: ended
  std::atomic<SoftQueuePair*> pair_;  // null after Disconnect

  std::unique_ptr<Accepted> accepted_;  // until it is answered
  Status end_verdict_ = Status::kSuccess;
  Errand<&IwarpLink::SendAnswer, Self> answer_errand_;
  Errand<&IwarpLink::WatchForAcks, Self> ack_errand_;
  Errand<&IwarpLink::TellLeft, Self> left_errand_;
  Errand<&IwarpLink::End, Self> end_errand_;

  // Loop.
  Life life_ = Life::kDialling;
  std::shared_ptr<Connector> connector_;
  EventLoop::TimerId timer_ = 0;  // for the wait for a first FPDU, a nudge, or the end
  EventLoop::TimerId ack_timer_ = 0;
  Nanos unanswered_since_ = 0;

  // Set by Open, constant while the pair is attached; then taken under transmit_lock_, since an
  // exit may flush a link that the loop is closing.
  Socket socket_;
  MpaAgreement agreement_;
  size_t ulpdu_limit_ = 0;

  // Any thread.
  std::atomic<bool> hot_{false};
  std::atomic<bool> stalled_{false};  // parked_ is full: the socket is not read
  std::atomic<bool> unread_{false};   // input_ holds something
  std::atomic<bool> ended_{false};    // the peer's FIN was read: the socket is not watched any more
  std::atomic<bool> want_room_{false};
  // Nothing can be sent any more, and the pair fails; if the peer has hung up, only after all that
  // it had sent has been read.
  std::atomic<bool> lost_{false};
  // Nothing can be sent either, but the pair does not fail: the peer's process has gone, and its
  // FIN, which came first, is still to be read.
  std::atomic<bool> left_{false};
  // The peer can send no more: only what is in the socket is to come, and parked_ may hold it all.
  std::atomic<bool> hung_up_{false};
  std::atomic<bool> awaiting_acks_{false};  // CheckAcks will run

  SpinLock arm_lock_;
  bool armed_ ABSL_GUARDED_BY(arm_lock_) = false;
  uint32_t armed_events_ ABSL_GUARDED_BY(arm_lock_) = 0;

  SpinLock transmit_lock_;
  // A responder does not send before the initiator's first FPDU has come (RFC 5044 7.1.3), or is
  // late.
  bool may_send_ ABSL_GUARDED_BY(transmit_lock_) = false;
  std::optional<TransmitStream> stream_ ABSL_GUARDED_BY(transmit_lock_);
  uint32_t send_sequence_ ABSL_GUARDED_BY(transmit_lock_) = kFirstSequence;
  uint32_t read_sequence_ ABSL_GUARDED_BY(transmit_lock_) = kFirstSequence;
  uint32_t atomic_sequence_ ABSL_GUARDED_BY(transmit_lock_) = kFirstSequence;  // of responses
  uint32_t sink_stag_ = kNoMemoryStag;
  uint32_t reads_sent_ ABSL_GUARDED_BY(transmit_lock_) = 0;
  absl::InlinedVector<OutboundRead, 4> reads_ ABSL_GUARDED_BY(transmit_lock_);
  absl::InlinedVector<InboundRead, 2> answers_ ABSL_GUARDED_BY(transmit_lock_);
  // The request that Pump emits has been sent in part: nothing else may be sent before its last
  // segment, as nothing may be sent inside an open answer. A peer may take segments of two messages
  // for one, and Linux siw then ends the connection.
  bool request_open_ ABSL_GUARDED_BY(transmit_lock_) = false;
  bool requested_ ABSL_GUARDED_BY(transmit_lock_) = false;   // the program has sent something
  bool remembered_ ABSL_GUARDED_BY(transmit_lock_) = false;  // by RememberUnsent
  // Position of the request whose end waits in stream_ for room: complete when TCP has it.
  std::optional<uint64_t> copied_ ABSL_GUARDED_BY(transmit_lock_);
  std::deque<Unconfirmed> confirms_ ABSL_GUARDED_BY(transmit_lock_);
  // How many of confirms_, the newest, have no read yet.
  uint32_t unasked_ ABSL_GUARDED_BY(transmit_lock_) = 0;
  // The payload of our Terminate; size 0: none.
  std::array<uint8_t, kMaxTerminateSize> terminate_ ABSL_GUARDED_BY(transmit_lock_);
  size_t terminate_size_ ABSL_GUARDED_BY(transmit_lock_) = 0;

  // Under the inbound lock.
  FpduReader reader_;
  InboundSequence sequence_;
  std::unique_ptr<uint8_t[]> buffer_;
  std::span<const uint8_t> input_;  // unread part of buffer_, or empty
  ParkedMessages parked_;
  uint64_t fpdus_ = 0;
  bool broken_ = false;                     // nothing is consumed any more
  bool taken_ = true;                       // the last FPDU was; false if memory ran out in it
  std::optional<uint32_t> send_immediate_;  // of the current or the next send
  // Of the current or the next write. There is only one: after a parked write, or the parked end of
  // one, all later writes are parked too.
  std::optional<uint32_t> write_immediate_;
  uint32_t write_value_sequence_ = 0;  // of the message that brought write_immediate_
  bool write_solicited_ = false;
  uint32_t write_length_ = 0;
  bool write_refused_ = false;  // the last Write was, and no message has come since
  bool peer_terminated_ = false;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_LINK_H_
