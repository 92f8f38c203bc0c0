// What a link receives. Runs inside Poll, except where link.h says otherwise.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "verbs/base/byte_order.h"
#include "verbs/base/log.h"
#include "verbs/base/uncancelled.h"
#include "verbs/frame_format.h"
#include "verbs/soft/iwarp/link.h"
#include "verbs/soft/iwarp/terminate.h"

namespace viaduct::verbs::iwarp {
namespace {

// The status that a Terminate means for our oldest unconfirmed request.
Status VerdictOf(const Terminate& terminate) {
  const WireError& error = terminate.error;
  // The peer's own trouble. RFC 5040 gives this type no code; siw sends 0xff.
  if (error.layer == 0 && error.type == 0) return Status::kFlushed;
  // Or it is about an answer of ours, whose sink has gone there.
  if (terminate.segment.has_value() &&
      (terminate.segment->opcode == RdmapOpcode::kReadResponse ||
       terminate.segment->opcode == RdmapOpcode::kAtomicResponse)) {
    return Status::kFlushed;
  }
  if (error == kNoBuffer) return Status::kReceiverNotReady;
  if (error.layer == 1 && error.type == 1) return Status::kRemoteAccess;
  if (error == kMessageTooLong) return Status::kRemoteOperation;
  if (error.layer == 0 && error.type == 1) return Status::kRemoteAccess;
  if (error.layer == 0 && error.type == 2) return Status::kRemoteOperation;
  return Status::kTransport;
}

// The number of the message that a Terminate refuses although it came in its turn. Other errors are
// about the order itself, and the place of a refused write among the messages is unknown.
std::optional<uint32_t> RefusedMessage(const Terminate& terminate) {
  const WireError& error = terminate.error;
  if (error != kNoBuffer && error != kMessageTooLong && error != kCannotInvalidate) {
    return std::nullopt;
  }
  const std::optional<DdpHeader>& segment = terminate.segment;
  if (!segment.has_value() || segment->tagged || segment->queue != kQueueSend) return std::nullopt;
  return segment->sequence;
}

// DDP has no code for a missing right: it is reported as an unknown STag, as by Linux siw.
WireError RefusedWrite(Refusal why) {
  switch (why) {
    case Refusal::kDomain:
      return kTaggedNotAssociated;
    case Refusal::kBounds:
      return kTaggedBounds;
    case Refusal::kKey:
    case Refusal::kRights:
      break;
  }
  return kTaggedInvalidStag;
}

// The error when a write's immediate data end the connection: they found no receive, or theirs has
// failed.
WireError ReceiveError(const SoftQueuePair& pair) {
  return pair.peer_verdict() == Status::kRemoteOperation ? kMessageTooLong : kNoBuffer;
}

// The frame in a message's first segment.
std::optional<Frame> FrameOf(std::span<const uint8_t> payload, bool last) {
  if (payload.size() < kFrameBytes) return std::nullopt;
  return ParseFrame(payload.first<kFrameBytes>(), payload.size() - kFrameBytes + (last ? 0 : 1));
}

ReadRequest ReadRequestOf(const DdpHeader& header, std::span<const uint8_t> ulpdu) {
  return DecodeReadRequest(ulpdu.subspan(header.size()).first<kReadRequestSize>());
}

// For a queue pair's Place functions: copies what has come into the program's memory.
auto CopyFrom(std::span<const uint8_t> from) {
  return [from](unsigned char* to, uint64_t at, size_t n) { std::memcpy(to, from.data() + at, n); };
}

}  // namespace

bool IwarpLink::Poll(int budget) {
  SoftQueuePair* const pair = pair_.load(std::memory_order_relaxed);
  if (pair == nullptr || broken_ || socket_.inherited()) return false;
  bool moved = false;
  bool received = false;  // at most once in a Poll: a second call would usually find nothing
  bool more = parked_.empty() || Replay(*pair);
  // Read Requests are taken beyond the budget: they need no receive, and most of them ask whether
  // the message before them was taken. The answer must leave before the program, which sees that
  // message, can end the connection.
  while (more && (budget > 0 || ReadRequestFollows())) {
    std::span<const uint8_t> ulpdu;
    switch (reader_.Next(&input_, &ulpdu)) {
      case FpduReader::Result::kFpdu:
        --budget;
        moved = true;
        taken_ = false;
        more = Take(*pair, ulpdu);
        taken_ = true;
        break;
      case FpduReader::Result::kError:
        NoteFpdu();
        if (*reader_.error() == kCrcMismatch) pair->SetCorrupt();
        more = Break(*pair, *reader_.error(), {});
        break;
      case FpduReader::Result::kNeedMore:
        // Beyond the budget the rest is left in the socket, which reports it: nobody would report
        // an FPDU that is complete in reader_.
        more = budget > 0 && !received && Receive(*pair);
        received = true;
        moved |= more;
        break;
    }
  }
  if (input_.empty() || broken_) ReleaseInput();
  unread_.store(!input_.empty(), std::memory_order_relaxed);
  if (broken_) {
    // What came before the error is still answered, so that the peer knows which request failed.
    if (!peer_terminated_ && !ended_.load()) Transmit(/*requests=*/false, /*last=*/true);
    return true;
  }
  const bool stalled = Full();
  if (stalled_.exchange(stalled) != stalled) Arm();
  moved |= Transmit(/*requests=*/false);
  // The loop reports bytes in the socket, but not bytes that were taken out of it.
  if (!input_.empty() && !stalled && !hot_.load(std::memory_order_relaxed)) pair->MarkArrived();
  return moved;
}

ssize_t IwarpLink::ReceiveSome() {
  if (buffer_ == nullptr) buffer_ = shared_->buffers.Take();
  const std::span<uint8_t> missing = reader_.Missing();
  iovec parts[] = {{missing.data(), missing.size()}, {buffer_.get(), ReceiveBuffers::kSize}};
  msghdr message = {};
  message.msg_iov = missing.empty() ? parts + 1 : parts;
  message.msg_iovlen = missing.empty() ? 1 : 2;
  ssize_t n;
  do {
    n = uncancelled::ReceiveMessage(socket_.get(), &message, MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return n;
  const auto size = static_cast<size_t>(n);
  const size_t filled = std::min(size, missing.size());
  if (filled > 0) reader_.Filled(filled);
  input_ = {buffer_.get(), size - filled};
  return n;
}

// False: nothing came.
bool IwarpLink::Receive(SoftQueuePair& pair) {
  if (ended_.load(std::memory_order_relaxed)) return false;
  const ssize_t n = ReceiveSome();
  // If nothing can be sent any more, there is nothing to wait for.
  if (n < 0 && errno == EAGAIN && !lost_.load()) return false;
  if (n <= 0) {
    AtEnd(pair, /*fin=*/n == 0 && NoteFin());
    return false;
  }
  return true;
}

bool IwarpLink::ReadRequestFollows() const {
  constexpr size_t kOpcodeOffset = kFpduLengthSize + 1;
  return input_.size() > kOpcodeOffset && (input_[kOpcodeOffset] & kRdmapOpcodeMask) ==
                                              static_cast<uint8_t>(RdmapOpcode::kReadRequest);
}

// Everything that came before was taken, which is what an empty read asks about, so it may be
// answered. Nothing else is taken any more: the first segment of another kind ends this.
void IwarpLink::TakeEmptyReads() {
  if (terminate_size_ > 0 || !taken_ || !parked_.empty()) return;
  bool received = false;
  while (answers_.size() < MostAnswers()) {
    std::span<const uint8_t> ulpdu;
    const FpduReader::Result result = reader_.Next(&input_, &ulpdu);
    if (result == FpduReader::Result::kError) return;
    if (result == FpduReader::Result::kNeedMore) {
      if (std::exchange(received, true) || ReceiveSome() <= 0) return;
      continue;
    }
    DdpHeader header;
    if (ParseDdpHeader(ulpdu, &header).has_value() || header.opcode != RdmapOpcode::kReadRequest ||
        sequence_.Accept(header, ulpdu.size() - header.size()).has_value()) {
      return;
    }
    const ReadRequest request = ReadRequestOf(header, ulpdu);
    if (request.size != 0) return;
    AnswerLater({.request = request, .sequence = header.sequence, .atomic = {}});
  }
}

// The socket reports the end of the stream, as it also does after a send has consumed the error of
// a reset.
bool IwarpLink::NoteFin() {
  SpinLockHolder hold(&transmit_lock_);
  if (lost_.load()) return false;
  ended_.store(true);
  return true;
}

// Everything that came has been consumed or parked.
void IwarpLink::AtEnd(SoftQueuePair& pair, bool fin) {
  // A peer that leaves in order does not owe us the answer to a read. It may owe confirmations: a
  // message that it holds is never confirmed.
  if (!fin || pair.ReadsOutstanding() || !reader_.at_boundary()) {
    broken_ = true;
    return Lost(&pair);
  }
  left_errand_.Post(shared_->loop, shared_from_this());
}

void IwarpLink::TellLeft() {
  if (SoftQueuePair* const pair = pair_.load()) pair->PeerLeft(*this);
}

void IwarpLink::Lost(SoftQueuePair* pair) {
  lost_.store(true);
  if (pair != nullptr) pair->Fail(Status::kTransport);
}

bool IwarpLink::Break(SoftQueuePair& pair, const WireError& error, std::span<const uint8_t> ulpdu) {
  Log(LogLevel::kInfo, "iwarp: the peer broke a rule: ", Describe(error));
  pair.Fail(Status::kFlushed);
  return StopWith(error, ulpdu);
}

bool IwarpLink::StopWith(const WireError& error, std::span<const uint8_t> ulpdu) {
  SpinLockHolder hold(&transmit_lock_);
  PrepareTerminate(error, ulpdu);
  broken_ = true;
  return false;
}

void IwarpLink::ReleaseInput() {
  input_ = {};
  if (buffer_ != nullptr) shared_->buffers.Give(std::move(buffer_));
}

// ------------------------------------------------------------------------------------ segments

// The peer has our reply, whatever its FPDU holds: a Terminate may say what is wrong with it.
void IwarpLink::NoteFpdu() {
  SpinLockHolder hold(&transmit_lock_);
  may_send_ = true;
}

bool IwarpLink::Take(SoftQueuePair& pair, std::span<const uint8_t> ulpdu) {
  if (fpdus_++ == 0) NoteFpdu();
  DdpHeader header;
  std::optional<WireError> error = ParseDdpHeader(ulpdu, &header);
  if (error.has_value()) return Break(pair, *error, ulpdu);
  const std::span<const uint8_t> payload = ulpdu.subspan(header.size());
  error = sequence_.Accept(header, payload.size());
  if (error.has_value()) return Break(pair, *error, ulpdu);
  switch (header.opcode) {
    case RdmapOpcode::kTerminate:
      return TakeTerminate(pair, payload);
    case RdmapOpcode::kReadRequest:
    case RdmapOpcode::kAtomicRequest:
      return TakeReadRequest(pair, header, ulpdu);
    case RdmapOpcode::kAtomicResponse:
      return TakeAtomicResponse(pair, ulpdu);
    case RdmapOpcode::kReadResponse:
      return TakeReadResponse(pair, header, ulpdu);
    case RdmapOpcode::kWrite:
      return TakeWrite(pair, header, ulpdu);
    case RdmapOpcode::kImmediate:
    case RdmapOpcode::kImmediateSolicited:
      return TakeImmediate(pair, header, ulpdu);
    case RdmapOpcode::kSend:
    case RdmapOpcode::kSendSolicited:
    case RdmapOpcode::kSendInvalidate:
    case RdmapOpcode::kSendSolicitedInvalidate:
      return TakeSend(pair, header, ulpdu);
  }
  return false;
}

// ------------------------------------------------------------------------------------- parking

bool IwarpLink::Park(ParkedMessages::Kind kind, std::span<const uint8_t> ulpdu) {
  parked_.Push(kind, ulpdu);
  return !Full();
}

// Delivers what was parked, as far as there are receives for it now.
bool IwarpLink::Replay(SoftQueuePair& pair) {
  using Kind = ParkedMessages::Kind;
  bool held = false;
  while (!parked_.empty()) {
    const ParkedMessages::Item& item = parked_.front();
    const std::span<const uint8_t> ulpdu = item.ulpdu();
    DdpHeader header;  // was checked when it came
    if (item.kind != Kind::kWriteEnd) ParseDdpHeader(ulpdu, &header);
    bool good = true;
    switch (item.kind) {
      case Kind::kSend:
      case Kind::kRefused:
        good = DeliverSend(pair, header, ulpdu, item.kind == Kind::kRefused, &held);
        break;
      case Kind::kReadRequest:
        good = QueueAnswer(pair, header, ulpdu);
        break;
      case Kind::kWriteEnd:
        good = FinishWrite(pair, &held);
        break;
      case Kind::kWrite:
        good = DeliverWrite(pair, header, ulpdu);
        if (good && header.last && header.opcode == RdmapOpcode::kWrite) {
          good = FinishWrite(pair, &held);
          if (held) parked_.TurnFrontIntoWriteEnd();
        }
        break;
    }
    if (!good) return false;
    if (held) break;
    parked_.Pop();
  }
  return !Full();
}

// --------------------------------------------------------------------------------------- sends

bool IwarpLink::TakeSend(SoftQueuePair& pair, const DdpHeader& header,
                         std::span<const uint8_t> ulpdu) {
  using Kind = ParkedMessages::Kind;
  const bool refused = std::exchange(write_refused_, false);
  bool held = !parked_.empty();
  if (!held && !DeliverSend(pair, header, ulpdu, refused, &held)) return false;
  return !held || Park(refused ? Kind::kRefused : Kind::kSend, ulpdu);
}

bool IwarpLink::DeliverSend(SoftQueuePair& pair, const DdpHeader& header,
                            std::span<const uint8_t> ulpdu, bool refused, bool* held) {
  std::span<const uint8_t> payload = ulpdu.subspan(header.size());
  const bool immediate =
      header.opcode == RdmapOpcode::kImmediate || header.opcode == RdmapOpcode::kImmediateSolicited;
  if (immediate && !ToSoftDevice(pair)) {
    return DeliverWrittenValue(pair, header, LoadBig32(&payload[0]), LoadBig32(&payload[4]), ulpdu,
                               refused, held);
  }
  if (immediate) {
    send_immediate_ = LoadBig32(&payload[4]);
    return true;
  }
  uint32_t at = header.message_offset;
  if (pair.immediate_form() == ImmediateForm::kFramed) {
    if (header.message_offset == 0) {
      const std::optional<Frame> frame = FrameOf(payload, header.last);
      if (!frame.has_value()) return Break(pair, kCatastrophicStream, ulpdu);
      if (frame->kind == FrameKind::kWrite) {
        return DeliverWrittenValue(pair, header, frame->immediate, frame->length, ulpdu, refused,
                                   held);
      }
      send_immediate_.reset();
      if (frame->has_immediate()) send_immediate_ = frame->immediate;
      payload = payload.subspan(kFrameBytes);
    } else {
      at -= kFrameBytes;  // the first segment held all of the frame
    }
  }
  if (header.message_offset == 0) {
    const Inbound start = pair.StartReceive();
    if (start == Inbound::kBroken) return StopWith(kNoBuffer, ulpdu);
    if (start == Inbound::kHeld) {
      *held = true;
      return true;
    }
  }
  if (pair.PlaceReceive(at, static_cast<uint32_t>(payload.size()), CopyFrom(payload)) ==
      Inbound::kBroken) {
    return StopWith(kMessageTooLong, ulpdu);
  }
  if (!header.last) return true;
  const Trailer trailer{.immediate = send_immediate_.value_or(0),
                        .has_immediate = send_immediate_.has_value(),
                        .solicited = IsSolicited(header.opcode)};
  send_immediate_.reset();
  if (HasInvalidate(header.opcode) && pair.Invalidate(header.invalidate) == Inbound::kBroken) {
    return StopWith(kCannotInvalidate, ulpdu);
  }
  pair.FinishReceive(at + static_cast<uint32_t>(payload.size()), trailer);
  return true;
}

// The immediate data of the preceding write, as a message that takes a receive of its own.
bool IwarpLink::DeliverWrittenValue(SoftQueuePair& pair, const DdpHeader& header, uint32_t value,
                                    uint32_t length, std::span<const uint8_t> ulpdu, bool refused,
                                    bool* held) {
  const Trailer trailer{
      .immediate = value, .has_immediate = true, .solicited = IsSolicited(header.opcode)};
  const Inbound finish = pair.ReceiveWritten(length, trailer, refused);
  if (finish == Inbound::kBroken) return StopWith(ReceiveError(pair), ulpdu);
  *held = finish == Inbound::kHeld;
  return true;
}

bool IwarpLink::TakeImmediate(SoftQueuePair& pair, const DdpHeader& header,
                              std::span<const uint8_t> ulpdu) {
  using Kind = ParkedMessages::Kind;
  if (!ToSoftDevice(pair)) return TakeSend(pair, header, ulpdu);
  switch (LoadBig32(&ulpdu[header.size()])) {
    case kImmediateForSend:
      if (header.opcode != RdmapOpcode::kImmediate) break;
      return TakeSend(pair, header, ulpdu);
    case kImmediateForWrite:
      if (parked_.HasWrite()) return Park(Kind::kWrite, ulpdu);
      if (write_length_ != 0) break;  // inside a write
      return DeliverWrite(pair, header, ulpdu);
    default:
      break;
  }
  return Break(pair, kCatastrophicStream, ulpdu);
}

// -------------------------------------------------------------------------------------- writes

bool IwarpLink::TakeWrite(SoftQueuePair& pair, const DdpHeader& header,
                          std::span<const uint8_t> ulpdu) {
  using Kind = ParkedMessages::Kind;
  // Inside a Send, a Write with immediate data would take the receive that the Send has opened. A
  // Viaduct puts no Write there; other peers may, and their Writes take no receive.
  if (ToSoftDevice(pair) && sequence_.in_message()) {
    return Break(pair, kCatastrophicStream, ulpdu);
  }
  if (parked_.HasWrite()) return Park(Kind::kWrite, ulpdu);
  if (!DeliverWrite(pair, header, ulpdu)) return false;
  if (!header.last) return true;
  // With immediate data it takes a receive, after the messages that wait for theirs.
  bool held = write_immediate_.has_value() && !parked_.empty();
  if (!held && !FinishWrite(pair, &held)) return false;
  return !held || Park(Kind::kWriteEnd, {});
}

// A segment of a write, or the immediate data before the first segment.
bool IwarpLink::DeliverWrite(SoftQueuePair& pair, const DdpHeader& header,
                             std::span<const uint8_t> ulpdu) {
  const std::span<const uint8_t> payload = ulpdu.subspan(header.size());
  if (header.opcode != RdmapOpcode::kWrite) {
    write_immediate_ = LoadBig32(&payload[4]);
    write_value_sequence_ = header.sequence;
    write_solicited_ = IsSolicited(header.opcode);
    return true;
  }
  const auto size = static_cast<uint32_t>(payload.size());
  if (size > std::numeric_limits<uint32_t>::max() - write_length_) {
    return Break(pair, kTaggedBounds, ulpdu);
  }
  if (pair.PlaceWrite(header.stag, header.offset, size, write_immediate_.has_value(),
                      CopyFrom(payload)) == Inbound::kBroken) {
    const bool wraps = header.offset + size < header.offset;
    return StopWith(wraps ? kTaggedWrap : RefusedWrite(pair.WhyRefused(header.stag, kRemoteWrite)),
                    ulpdu);
  }
  write_length_ += size;
  return true;
}

// Everything parked, a write's end included, takes the next receives before an open write can take
// its own.
OpenWrite IwarpLink::open_write() const {
  if (write_length_ == 0) return OpenWrite::kNone;
  if (!write_immediate_.has_value()) return OpenWrite::kPlain;
  return parked_.empty() ? OpenWrite::kWithImmediate : OpenWrite::kNone;
}

bool IwarpLink::FinishWrite(SoftQueuePair& pair, bool* held) {
  const Trailer trailer{.immediate = write_immediate_.value_or(0),
                        .has_immediate = write_immediate_.has_value(),
                        .solicited = write_solicited_};
  const Inbound finish = pair.FinishWrite(write_length_, trailer);
  if (finish == Inbound::kBroken) {
    // The message that finds no receive, or fails its receive, is that of the immediate data.
    const RdmapOpcode opcode =
        write_solicited_ ? RdmapOpcode::kImmediateSolicited : RdmapOpcode::kImmediate;
    std::array<uint8_t, kDdpUntaggedSize + kImmediateSize> ulpdu = {};
    EncodeDdpHeader(UntaggedHeader(opcode, write_value_sequence_, 0, /*last=*/true), ulpdu);
    return StopWith(ReceiveError(pair), ulpdu);
  }
  if (finish == Inbound::kHeld) {
    *held = true;
    return true;
  }
  write_refused_ = finish == Inbound::kDropped;
  write_immediate_.reset();
  write_solicited_ = false;
  write_length_ = 0;
  return true;
}

// --------------------------------------------------------------------------------------- reads

WireError IwarpLink::RefusedRead(Refusal why) {
  switch (why) {
    case Refusal::kDomain:
      return kReadNotAssociated;
    case Refusal::kBounds:
      return kReadBounds;
    case Refusal::kRights:
      return kReadAccess;
    case Refusal::kKey:
      break;
  }
  return kReadInvalidStag;
}

bool IwarpLink::TakeReadRequest(SoftQueuePair& pair, const DdpHeader& header,
                                std::span<const uint8_t> ulpdu) {
  using Kind = ParkedMessages::Kind;
  size_t unanswered = parked_.count(Kind::kReadRequest);
  {
    SpinLockHolder hold(&transmit_lock_);
    unanswered += answers_.size();
  }
  // An empty read asks whether what came before it was received; answers keep the order of their
  // requests, and show what was written before them (RFC 5040 5.5). Other reads do not wait for
  // receives.
  const bool empty =
      header.opcode == RdmapOpcode::kReadRequest && ReadRequestOf(header, ulpdu).size == 0;
  if (unanswered >= MostAnswers() || (!empty && agreement_.ird == 0)) {
    return Break(pair, kCatastrophicStream, ulpdu);
  }
  if (!parked_.empty() &&
      (empty || parked_.count(Kind::kReadRequest) > 0 || parked_.count(Kind::kWrite) > 0)) {
    return Park(Kind::kReadRequest, ulpdu);
  }
  return QueueAnswer(pair, header, ulpdu);
}

bool IwarpLink::QueueAnswer(SoftQueuePair& pair, const DdpHeader& header,
                            std::span<const uint8_t> ulpdu) {
  if (header.opcode == RdmapOpcode::kAtomicRequest) {
    const AtomicRequest atomic =
        DecodeAtomicRequest(ulpdu.subspan(header.size()).first<kAtomicRequestSize>());
    if (atomic.operation != kAtomicFetchAdd && atomic.operation != kAtomicCompareSwap) {
      return Break(pair, kUnexpectedOpcode, ulpdu);
    }
    SpinLockHolder hold(&transmit_lock_);
    AnswerLater({.request = {}, .sequence = header.sequence, .atomic = atomic});
    return true;
  }
  const ReadRequest request = ReadRequestOf(header, ulpdu);
  const unsigned char* memory;
  if (pair.CheckRead(request.source_stag, request.source_offset, request.size, &memory) ==
      Inbound::kBroken) {
    const bool wraps = request.source_offset + request.size < request.source_offset;
    return StopWith(
        wraps ? kReadWrap : RefusedRead(pair.WhyRefused(request.source_stag, kRemoteRead)), ulpdu);
  }
  SpinLockHolder hold(&transmit_lock_);
  AnswerLater({.request = request, .sequence = header.sequence, .atomic = {}});
  return true;
}

void IwarpLink::AnswerLater(const InboundRead& read) {
  if (terminate_size_ == 0) answers_.push_back(read);
}

// The bytes that answer an empty read are discarded: siw (Linux 6.1) answers an empty read that had
// to wait for one of siw's own sends with the bytes of that send.
bool IwarpLink::TakeReadResponse(SoftQueuePair& pair, const DdpHeader& header,
                                 std::span<const uint8_t> ulpdu) {
  std::span<const uint8_t> payload = ulpdu.subspan(header.size());
  std::optional<OutboundRead> oldest;
  {
    SpinLockHolder hold(&transmit_lock_);
    if (!reads_.empty()) oldest = reads_.front();
  }
  if (!oldest.has_value()) return Break(pair, kTaggedInvalidStag, ulpdu);
  if (!oldest->user) {
    if (!header.last) return true;
    SpinLockHolder hold(&transmit_lock_);
    reads_.erase(reads_.begin());
    for (uint32_t i = 0; i < oldest->confirms; ++i) CompleteOldestConfirm(pair);
    EmitConfirmation(pair);
    return true;
  }
  SendEntry* const entry = pair.OldestRead();
  if (entry == nullptr || entry->opcode != Opcode::kRead) {
    return Break(pair, kTaggedInvalidStag, ulpdu);
  }
  if (entry->length == 0) payload = {};
  const auto size = static_cast<uint32_t>(payload.size());
  if (size > entry->length - entry->offset) return Break(pair, kTaggedBounds, ulpdu);
  if (size > 0 && header.stag != sink_stag_) return Break(pair, kTaggedInvalidStag, ulpdu);
  if (size > 0 && header.offset != entry->cookie + entry->offset) {
    return Break(pair, kTaggedBounds, ulpdu);
  }
  if (pair.PlaceRead(*entry, entry->offset, size, CopyFrom(payload)) == Inbound::kBroken) {
    return StopWith(kRdmapLocalCatastrophic, {});
  }
  entry->offset += size;
  if (!header.last) return true;
  if (entry->offset != entry->length) return Break(pair, kTaggedBounds, ulpdu);
  FinishOldestRead(pair);
  return true;
}

void IwarpLink::CompleteOldestConfirm(SoftQueuePair& pair) {
  pair.Complete(confirms_.front().position, Status::kSuccess);
  confirms_.pop_front();
}

// Whatever number the peer names, it confirms no more than was sent.
void IwarpLink::CompleteBefore(SoftQueuePair& pair, uint32_t sequence) {
  SpinLockHolder hold(&transmit_lock_);
  while (!confirms_.empty() && static_cast<int32_t>(sequence - confirms_.front().next) >= 0) {
    CompleteOldestConfirm(pair);
  }
}

void IwarpLink::FinishOldestRead(SoftQueuePair& pair) {
  {
    SpinLockHolder hold(&transmit_lock_);
    reads_.erase(reads_.begin());
    EmitConfirmation(pair);
  }
  pair.FinishRead();
}

bool IwarpLink::TakeAtomicResponse(SoftQueuePair& pair, std::span<const uint8_t> ulpdu) {
  const std::span<const uint8_t> payload = ulpdu.subspan(kDdpUntaggedSize);
  bool user = false;
  {
    SpinLockHolder hold(&transmit_lock_);
    user = !reads_.empty() && reads_.front().user;
  }
  SendEntry* const entry = user ? pair.OldestRead() : nullptr;
  if (entry == nullptr || entry->opcode == Opcode::kRead ||
      LoadBig32(&payload[0]) != static_cast<uint32_t>(entry->cookie)) {
    return Break(pair, kCatastrophicStream, ulpdu);
  }
  const uint64_t original = LoadBig64(&payload[kAtomicResponseValueOffset]);
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(&original),
                                       sizeof original);
  if (pair.PlaceRead(*entry, 0, sizeof original, CopyFrom(bytes)) == Inbound::kBroken) {
    return StopWith(kRdmapLocalCatastrophic, {});
  }
  FinishOldestRead(pair);
  return true;
}

// ----------------------------------------------------------------------------------- terminate

bool IwarpLink::TakeTerminate(SoftQueuePair& pair, std::span<const uint8_t> payload) {
  bool started = fpdus_ > 1;
  {
    SpinLockHolder hold(&transmit_lock_);
    started |= requested_;
  }
  const Terminate terminate =
      DecodeTerminate(payload, started).value_or(Terminate{kRdmapLocalCatastrophic, std::nullopt});
  Log(LogLevel::kInfo, "iwarp: the peer terminated: ", Describe(terminate.error));
  peer_terminated_ = true;
  broken_ = true;
  // Several requests may share a confirming read, which will not be answered any more.
  const std::optional<uint32_t> refused = RefusedMessage(terminate);
  if (refused.has_value()) CompleteBefore(pair, *refused);
  pair.Fail(VerdictOf(terminate));
  return false;
}

}  // namespace viaduct::verbs::iwarp
