// What a link sends.
#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "verbs/base/byte_order.h"
#include "verbs/base/uncancelled.h"
#include "verbs/frame_format.h"
#include "verbs/soft/iwarp/fpdu_writer.h"
#include "verbs/soft/iwarp/link.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/terminate.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr size_t kBatchFpdus = 16;
constexpr size_t kBatchBytes = 64 * 1024;
// Batches of answers per Transmit: a peer that takes them as fast as they are made, and asks for
// more, must not keep the thread busy.
constexpr size_t kMostAnswers = 16;
// Batches of requests per Transmit: a fence may hold thousands back, and the locks are held.
constexpr size_t kMostRequests = 64;
// Toward another Viaduct: 64 KiB with header and CRC.
constexpr size_t kOwnSegmentSize = 65536;
// The room that a last segment must leave if a confirming read is to go along with it: for headers,
// immediate data and the read.
constexpr size_t kConfirmationRoom = 128;

// Room for a copy of the bytes that a batch sends. Their CRC must match what is sent, and the
// program, or one of its peers, may write to its memory meanwhile.
class CopyRoom {
 public:
  // For `size` bytes, at most ReceiveBuffers::kSize; none is needed without a CRC.
  CopyRoom(ReceiveBuffers& buffers, bool crc, size_t size) : buffers_(buffers) {
    if (!crc) return;
    if (size > short_.size()) long_ = buffers.TryTake();
    bytes_ = size > short_.size() ? long_.get() : short_.data();
  }
  ~CopyRoom() {
    if (long_ != nullptr) buffers_.Give(std::move(long_));
  }
  CopyRoom(const CopyRoom&) = delete;
  CopyRoom& operator=(const CopyRoom&) = delete;

  // Null: the bytes are sent from where they lie, also if there is no memory.
  uint8_t* bytes() { return bytes_; }

 private:
  ReceiveBuffers& buffers_;
  std::array<uint8_t, 1024> short_;
  std::unique_ptr<uint8_t[]> long_;
  uint8_t* bytes_ = nullptr;
};

// Several FPDUs for one system call. The heads and tails must stay where they are.
class Batch {
 public:
  // Copies all payloads to `copy`, unless it is null.
  explicit Batch(uint8_t* copy) : copy_(copy) {}

  // The caller then adds the payload's parts, and passes the result to Finish().
  size_t PayloadBegin() {
    parts_.push_back({});  // the head
    return parts_.size();
  }
  void AddPayload(const void* bytes, size_t size) {
    if (copy_ != nullptr) {
      bytes = std::memcpy(copy_, bytes, size);
      copy_ += size;
    }
    parts_.push_back({const_cast<void*>(bytes), size});
  }
  void Finish(const DdpHeader& header, std::span<const uint8_t> fixed, size_t payload_begin,
              bool crc) {
    FpduFrame& frame = frames_[count_++];
    FrameFpdu(header, fixed, std::span<const iovec>(parts_).subspan(payload_begin), crc, &frame);
    parts_[payload_begin - 1] = {frame.head.data(), frame.head_size};
    parts_.push_back({frame.tail.data(), frame.tail_size});
  }
  bool Full() const { return count_ == kBatchFpdus; }
  std::span<const iovec> parts() const { return parts_; }

 private:
  std::array<FpduFrame, kBatchFpdus + 2> frames_;  // two for what follows a full batch
  size_t count_ = 0;
  uint8_t* copy_;
  absl::InlinedVector<iovec, 3 * kBatchFpdus> parts_;
};

// The frame in front of a framed send, or after a write with immediate data.
Frame FrameOf(const SendEntry& entry) {
  if (entry.opcode == Opcode::kWrite) return {FrameKind::kWrite, entry.immediate, entry.length};
  if ((entry.flags & kImmediate) == 0 || entry.opcode != Opcode::kSend) return {};
  return {FrameKind::kSendWithImmediate, entry.immediate};
}

// How a message is sent: what all its segments have in common.
struct Form {
  Form(const SoftQueuePair& pair, const SendEntry& entry)
      : write(entry.opcode == Opcode::kWrite),
        own_peer(ToSoftDevice(pair)),
        framed(pair.immediate_form() == ImmediateForm::kFramed),
        solicited((entry.flags & kSolicited) != 0),
        invalidate(entry.opcode == Opcode::kSendInvalidate),
        immediate((entry.flags & kImmediate) != 0 && !invalidate) {}

  RdmapOpcode opcode() const {
    if (write) return RdmapOpcode::kWrite;
    if (!invalidate) return solicited ? RdmapOpcode::kSendSolicited : RdmapOpcode::kSend;
    return solicited ? RdmapOpcode::kSendSolicitedInvalidate : RdmapOpcode::kSendInvalidate;
  }
  // Bytes that precede those of the message.
  uint32_t lead() const { return framed && !write ? kFrameBytes : 0; }

  bool write;
  bool own_peer;
  bool framed;
  bool solicited;
  bool invalidate;
  bool immediate;
};

// Adds the immediate data in front of the message, as a Viaduct expects it. Returns whether it did.
bool AddValueAhead(const Form& form, const SendEntry& entry, uint32_t sequence, bool crc,
                   Batch* batch) {
  if (!form.immediate || !form.own_peer) return false;
  std::array<uint8_t, kImmediateSize> fixed;
  StoreBig32(fixed.data(), form.write ? kImmediateForWrite : kImmediateForSend);
  StoreBig32(fixed.data() + 4, entry.immediate);
  const RdmapOpcode kind =
      form.write && form.solicited ? RdmapOpcode::kImmediateSolicited : RdmapOpcode::kImmediate;
  batch->Finish(UntaggedHeader(kind, sequence, 0, /*last=*/true), fixed, batch->PayloadBegin(),
                crc);
  return true;
}

// Adds a write's immediate data after the write, as all other peers expect it: in a frame, or as
// RFC 7306 says. Returns whether it did.
bool AddValueBehind(const Form& form, const SendEntry& entry, uint32_t sequence, bool crc,
                    Batch* batch) {
  if (!form.write || !form.immediate || form.own_peer) return false;
  std::array<uint8_t, kFrameBytes> frame;
  std::array<uint8_t, kImmediateSize> plain;
  RdmapOpcode kind;
  std::span<const uint8_t> fixed;
  if (form.framed) {
    kind = form.solicited ? RdmapOpcode::kSendSolicited : RdmapOpcode::kSend;
    EncodeFrame(FrameOf(entry), frame);
    fixed = frame;
  } else {
    kind = form.solicited ? RdmapOpcode::kImmediateSolicited : RdmapOpcode::kImmediate;
    StoreBig32(plain.data(), entry.immediate);
    StoreBig32(plain.data() + 4, entry.length);
    fixed = plain;
  }
  batch->Finish(UntaggedHeader(kind, sequence, 0, /*last=*/true), fixed, batch->PayloadBegin(),
                crc);
  return true;
}

std::array<uint8_t, kReadRequestSize> SilentRead(const std::optional<ConfirmationWord>& word) {
  ReadRequest request{.sink_stag = kNoMemoryStag, .source_stag = kNoMemoryStag};
  if (word.has_value()) {
    request.size = ConfirmationWord::kBytes;
    request.source_stag = word->key;
    request.source_offset = word->address;
  }
  std::array<uint8_t, kReadRequestSize> fixed;
  EncodeReadRequest(request, fixed);
  return fixed;
}

// Payload bytes of a message's next segment, when `left` remain: the segment has at most `limit`
// bytes, and the payload is a multiple of four unless it is the last.
uint32_t SegmentBytes(size_t limit, bool tagged, uint32_t left) {
  const size_t header = tagged ? kDdpTaggedSize : kDdpUntaggedSize;
  if (left <= limit - header) return left;
  return static_cast<uint32_t>(PayloadLimit(limit, tagged));
}

}  // namespace

void IwarpLink::Pump() { Transmit(/*requests=*/true); }

bool IwarpLink::Transmit(bool requests, bool last) {
  SoftQueuePair* const pair = pair_.load(std::memory_order_relaxed);
  if (pair == nullptr || socket_.inherited()) return false;
  bool completed = false;
  bool turned = false;  // from blocked to not blocked, or back
  bool first = false;   // blocked for the first time
  bool more = false;    // answers or requests are left, and there is room for them
  {
    SpinLockHolder hold(&transmit_lock_);
    if (!may_send_) return false;
    bool moved = true;
    size_t answers = 0;
    size_t issued = 0;
    // The last call sends more: enough for each short answer to leave.
    const size_t most = kMostAnswers + (last ? answers_.size() : 0);
    while (moved && !lost_.load(std::memory_order_relaxed) &&
           !left_.load(std::memory_order_relaxed)) {
      if (!stream_->Flush()) {
        NoteSendError();
        break;
      }
      if (stream_->blocked()) break;
      if (copied_.has_value()) {
        pair->Complete(*std::exchange(copied_, std::nullopt), Status::kSuccess);
        completed = true;
      }
      if (ProcessExits()) break;  // the FIN would cut off what begins now
      // Answers and requests take turns by whole messages, so that neither starves the other.
      // Outside Pump one answer is enough if requests wait, since Pump follows.
      moved = requests && issued < kMostRequests && EmitRequest(*pair);
      if (moved) ++issued;
      const bool wait = !requests && !last && answers > 0 && pair->SendsUnemitted();
      if (answers < most && (answer_open() || !wait) && !stream_->blocked() && EmitAnswer(*pair)) {
        ++answers;
        moved = true;
      }
      EmitConfirmation(*pair);  // an open message may have held it back
    }
    more = !stream_->blocked() && ((issued == kMostRequests && pair->SendsUnemitted()) ||
                                   (answers == most && !answers_.empty()));
    turned = want_room_.exchange(stream_->blocked()) != stream_->blocked();
    if (stream_->blocked()) first = !std::exchange(remembered_, true);
  }
  if (first) [[unlikely]]
    RememberUnsent(*this);
  if (lost_.load(std::memory_order_acquire)) {
    // What came before the error is read first; whoever reads to the end fails the pair.
    hung_up_.load() ? pair->MarkArrived() : Lost(pair);
  } else if (turned) {
    Arm();
  }
  if (more) pair->MarkArrived();
  return completed;
}

bool IwarpLink::Flush() {
  if (!transmit_lock_.TryLock()) return true;  // held by a poller, or by the thread that exits
  bool waits = false;
  if (socket_.valid()) {
    const bool sent = stream_->Flush();
    if (!sent) NoteSendError();
    waits = sent && stream_->blocked();
  }
  transmit_lock_.Unlock();
  return waits;
}

void IwarpLink::PrepareTerminate(const WireError& error, std::span<const uint8_t> ulpdu) {
  if (terminate_size_ == 0) terminate_size_ = EncodeTerminate(error, ulpdu, terminate_);
}

// EPIPE is a reset after a FIN: the peer has disconnected and then closed, which whoever reads next
// notices, or has noticed already. With any other error the connection is lost; what came before a
// reset is still in the socket.
void IwarpLink::NoteSendError() {
  if (lost_.load()) return;
  if (ended_.load() || errno == EPIPE) {
    left_.store(true);
    return;
  }
  pollfd look = {socket_.get(), 0, 0};
  if (uncancelled::Poll(&look) > 0 && (look.revents & POLLHUP) != 0) hung_up_.store(true);
  lost_.store(true);
}

bool IwarpLink::SendParts(std::span<const iovec> parts) {
  if (!stream_->Send(parts)) {
    NoteSendError();
    return false;
  }
  NoteSent();
  return true;
}

bool IwarpLink::SendControl(const DdpHeader& header, std::span<const uint8_t> fixed) {
  FpduFrame frame;
  FrameFpdu(header, fixed, {}, agreement_.crc, &frame);
  const iovec parts[] = {{frame.head.data(), frame.head_size},
                         {frame.tail.data(), frame.tail_size}};
  return SendParts(parts);
}

// ---------------------------------------------------------------------------------- requests

// Returns whether something was sent.
bool IwarpLink::EmitRequest(SoftQueuePair& pair) {
  if (answer_open()) return false;
  SendEntry* const entry = pair.NextToEmit();
  if (entry == nullptr) return false;
  requested_ = true;
  if (entry->opcode <= Opcode::kWrite) return EmitMessage(pair, *entry);
  if (entry->opcode == Opcode::kRead) return EmitRead(pair, *entry);
  return IsFetch(entry->opcode) ? EmitAtomic(pair, *entry) : EmitMessage(pair, *entry);
}

bool IwarpLink::SendOnReadQueue(RdmapOpcode opcode, std::span<const uint8_t> fixed,
                                const OutboundRead& read) {
  if (!SendControl(UntaggedHeader(opcode, read_sequence_, 0, /*last=*/true), fixed)) return false;
  NoteRead(read);
  return true;
}

void IwarpLink::NoteRead(const OutboundRead& read) {
  ++read_sequence_;
  reads_.push_back(read);
}

bool IwarpLink::EmitRead(SoftQueuePair& pair, SendEntry& entry) {
  if (reads_.size() >= agreement_.ord) return false;
  ReadRequest request;
  request.sink_stag = sink_stag_;
  // Each read has a zero-based sink of its own.
  request.sink_offset = entry.cookie = uint64_t{reads_sent_++} << 32;
  request.size = entry.length;
  request.source_stag = entry.remote_key != 0 ? entry.remote_key : kNoMemoryStag;
  request.source_offset = entry.remote_address;
  std::array<uint8_t, kReadRequestSize> fixed;
  EncodeReadRequest(request, fixed);
  if (!SendOnReadQueue(RdmapOpcode::kReadRequest, fixed, {.user = true})) return false;
  pair.Emitted(SoftQueuePair::Completes::kLater);
  return true;
}

// The atomic's number is the identifier that the answer brings back.
bool IwarpLink::EmitAtomic(SoftQueuePair& pair, SendEntry& entry) {
  if (reads_.size() >= agreement_.ord) return false;
  const Operands operands = pair.operands();
  AtomicRequest request;
  request.id = reads_sent_++;
  entry.cookie = request.id;
  request.stag = entry.remote_key;
  request.address = entry.remote_address;
  if (entry.opcode == Opcode::kCompareAndSwap) {
    request.operation = kAtomicCompareSwap;
    request.data = operands.swap;
    request.data_mask = ~uint64_t{0};
    request.compare = operands.compare_add;
  } else {
    request.operation = kAtomicFetchAdd;
    request.data = operands.compare_add;
  }
  std::array<uint8_t, kAtomicRequestSize> fixed;
  EncodeAtomicRequest(request, fixed);
  if (!SendOnReadQueue(RdmapOpcode::kAtomicRequest, fixed, {.user = true})) return false;
  pair.Emitted(SoftQueuePair::Completes::kLater);
  return true;
}

// An empty write touches no memory, whatever its STag.
void IwarpLink::EmitEmptyWrite() {
  SendControl(TaggedHeader(RdmapOpcode::kWrite, kNoMemoryStag, 0, /*last=*/true), {});
}

// The first FPDU, or a request to confirm what was sent before it. The bytes of its answer are
// discarded.
bool IwarpLink::EmitSilentRead(uint32_t confirms, const std::optional<ConfirmationWord>& word) {
  return SendOnReadQueue(RdmapOpcode::kReadRequest, SilentRead(word), {.confirms = confirms});
}

// One read confirms all requests that have none yet: if few reads are allowed, requests share them.
void IwarpLink::EmitConfirmation(const SoftQueuePair& pair) {
  if (unasked_ == 0 || reads_.size() >= agreement_.ord || request_open_ || answer_open()) return;
  if (EmitSilentRead(unasked_, pair.confirm_by())) unasked_ = 0;
}

bool IwarpLink::EmitMessage(SoftQueuePair& pair, SendEntry& entry) {
  const Form form(pair, entry);
  if (entry.offset == 0 && entry.length > ulpdu_limit_) {
    ulpdu_limit_ = UlpduLimit(SegmentSize(socket_.get()));  // grows with the window
  }
  const size_t limit = form.own_peer ? UlpduLimit(kOwnSegmentSize) : ulpdu_limit_;

  // A batch ends with the segment that fills it.
  CopyRoom copies(shared_->buffers, agreement_.crc,
                  std::min<size_t>(entry.length - entry.offset, kBatchBytes + limit));
  Batch batch(copies.bytes());
  std::array<uint8_t, kFrameBytes> frame;
  uint32_t sequence = send_sequence_;
  uint32_t offset = entry.offset;
  if (offset == 0 && AddValueAhead(form, entry, sequence, agreement_.crc, &batch)) ++sequence;
  bool last = false;
  bool room = false;  // in the last segment, for the read that confirms the message
  for (size_t bytes = 0; !last && !batch.Full() && bytes < kBatchBytes;) {
    const uint32_t lead = offset == 0 ? form.lead() : 0;
    const uint32_t n = SegmentBytes(limit - lead, form.write, entry.length - offset);
    last = offset + n == entry.length;
    DdpHeader header =
        form.write
            ? TaggedHeader(form.opcode(), entry.remote_key != 0 ? entry.remote_key : kNoMemoryStag,
                           entry.remote_address + offset, last)
            : UntaggedHeader(form.opcode(), sequence, offset == 0 ? 0 : offset + form.lead(), last);
    if (form.invalidate) header.invalidate = entry.remote_key;
    const size_t begin = batch.PayloadBegin();
    if (!pair.Gather(entry, offset, n, [&batch](const unsigned char* from, uint64_t, size_t size) {
          batch.AddPayload(from, size);
        })) {
      request_open_ = false;  // nothing will finish it: the pair is breaking
      return false;
    }
    if (lead != 0) EncodeFrame(FrameOf(entry), frame);
    batch.Finish(header, std::span<const uint8_t>(frame).first(lead), begin, agreement_.crc);
    offset += n;
    bytes += n;
    room = lead + n + kConfirmationRoom <= limit;
  }
  if (last && AddValueBehind(form, entry, sequence, agreement_.crc, &batch)) ++sequence;
  const bool asks = last && room && Confirms(entry) && reads_.size() < agreement_.ord;
  if (asks) {
    batch.Finish(UntaggedHeader(RdmapOpcode::kReadRequest, read_sequence_, 0, /*last=*/true),
                 SilentRead(pair.confirm_by()), batch.PayloadBegin(), agreement_.crc);
  }
  if (!SendParts(batch.parts())) return false;
  entry.offset = offset;
  send_sequence_ = sequence;
  request_open_ = !last;
  if (last) EndMessage(pair, entry);
  if (asks) NoteRead({.confirms = std::exchange(unasked_, 0)});
  return true;
}

bool IwarpLink::Confirms(const SendEntry& entry) const {
  return (entry.flags & kConfirm) != 0 && agreement_.ord != 0;
}

// The whole message is on its way.
void IwarpLink::EndMessage(SoftQueuePair& pair, SendEntry& entry) {
  if (entry.opcode != Opcode::kWrite) ++send_sequence_;
  if (!Confirms(entry)) {
    if (stream_->blocked()) copied_ = pair.emit_position();
    pair.Emitted(copied_.has_value() ? SoftQueuePair::Completes::kLater
                                     : SoftQueuePair::Completes::kNow);
    return;
  }
  confirms_.push_back({.position = pair.emit_position(), .next = send_sequence_});
  ++unasked_;
  pair.Emitted(SoftQueuePair::Completes::kLater);
}

// ----------------------------------------------------------------------------------- answers

// At the end, when the pair's memory cannot be used any more.
void IwarpLink::EmitEmptyAnswers() {
  if (request_open_) return;
  for (const InboundRead& read : answers_) {
    if (read.atomic.has_value() || read.request.size != 0) return;
    SendControl(TaggedHeader(RdmapOpcode::kReadResponse, read.request.sink_stag,
                             read.request.sink_offset, /*last=*/true),
                {});
  }
}

void IwarpLink::RefuseOldestAnswer(const WireError& error, RdmapOpcode opcode,
                                   std::span<uint8_t> ulpdu) {
  EncodeDdpHeader(UntaggedHeader(opcode, answers_.front().sequence, 0, /*last=*/true), ulpdu);
  PrepareTerminate(error, ulpdu);
  answers_.clear();
}

// Returns whether something was sent.
bool IwarpLink::EmitAnswer(SoftQueuePair& pair) {
  if (answers_.empty() || request_open_) return false;
  InboundRead& read = answers_.front();
  if (read.atomic.has_value()) return EmitAtomicAnswer(pair, read);
  const ReadRequest& request = read.request;
  const uint32_t left = request.size - read.offset;
  const uint64_t from = request.source_offset + read.offset;
  const size_t limit = ToSoftDevice(pair) ? UlpduLimit(kOwnSegmentSize) : ulpdu_limit_;
  const uint32_t most = static_cast<uint32_t>(
      std::min<uint64_t>(left, std::max<uint64_t>(kBatchBytes, PayloadLimit(limit, true))));
  const unsigned char* memory;
  if (pair.CheckRead(request.source_stag, from, most, &memory) != Inbound::kOk) {
    // The memory was readable when the request came: since then the region was deregistered, or
    // lost the right.
    std::array<uint8_t, kDdpUntaggedSize + kReadRequestSize> ulpdu;
    EncodeReadRequest(request, std::span(ulpdu).subspan<kDdpUntaggedSize, kReadRequestSize>());
    RefuseOldestAnswer(RefusedRead(pair.WhyRefused(request.source_stag, kRemoteRead)),
                       RdmapOpcode::kReadRequest, ulpdu);
    return false;
  }
  CopyRoom copies(shared_->buffers, agreement_.crc, most);
  Batch batch(copies.bytes());
  uint32_t done = 0;
  bool last = false;
  while (!last && !batch.Full()) {
    const uint32_t n = SegmentBytes(limit, /*tagged=*/true, left - done);
    if (done + n > most) break;
    last = done + n == left;
    const size_t begin = batch.PayloadBegin();
    if (n > 0) batch.AddPayload(memory + done, n);
    batch.Finish(TaggedHeader(RdmapOpcode::kReadResponse, request.sink_stag,
                              request.sink_offset + read.offset + done, last),
                 {}, begin, agreement_.crc);
    done += n;
  }
  if (!SendParts(batch.parts())) return false;
  read.offset += done;
  if (last) answers_.erase(answers_.begin());
  return true;
}

bool IwarpLink::EmitAtomicAnswer(SoftQueuePair& pair, const InboundRead& read) {
  const AtomicRequest& request = *read.atomic;
  uint64_t original = 0;
  const Status done = pair.UpdateAtomic(request.stag, request.address, &original,
                                        [&](uint64_t old) { return ApplyAtomic(request, old); });
  if (done != Status::kSuccess) {
    const WireError error = done == Status::kRemoteAccess
                                ? RefusedRead(pair.WhyRefused(request.stag, kRemoteAtomic))
                                : kCatastrophicStream;
    std::array<uint8_t, kDdpUntaggedSize + kAtomicRequestSize> ulpdu;
    EncodeAtomicRequest(request, std::span(ulpdu).subspan<kDdpUntaggedSize, kAtomicRequestSize>());
    RefuseOldestAnswer(error, RdmapOpcode::kAtomicRequest, ulpdu);
    return false;
  }
  std::array<uint8_t, kAtomicResponseSize> fixed;
  StoreBig32(fixed.data(), request.id);
  StoreBig64(fixed.data() + kAtomicResponseValueOffset, original);
  if (!SendControl(UntaggedHeader(RdmapOpcode::kAtomicResponse, atomic_sequence_, 0, /*last=*/true),
                   fixed)) {
    return false;
  }
  ++atomic_sequence_;
  answers_.erase(answers_.begin());
  return true;
}

}  // namespace viaduct::verbs::iwarp
