// What the device completes, and what becomes of it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "verbs/base/epoch.h"
#include "verbs/base/log.h"
#include "verbs/frame_format.h"
#include "verbs/rdma/connection.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/shared_receive_queue.h"

namespace viaduct::verbs::rdma {
namespace {

// The peer has ended the connection, or an error has.
bool IsOver(ibv_qp_state state) { return state != IBV_QPS_RTS && state != IBV_QPS_UNKNOWN; }

// A receive that fails has neither length nor immediate data, but for the value of a write.
void ForgetWhatCame(WorkRecord* record) {
  record->length = 0;
  if (record->opcode != Opcode::kReceiveWrite) record->has_immediate = record->solicited = false;
}

}  // namespace

void Connection::Complete(Direction direction, const ibv_wc& completion) {
  WorkQueue* const queue = queues_[direction];
  CountSeen(direction);
  if (queue == nullptr) return;  // released: once all are seen, this may be deleted at any moment
  // Requests that a failed attempt flushes stay posted.
  if (completion.status == IBV_WC_WR_FLUSH_ERR && !established_) return;
  if (completion.status != IBV_WC_SUCCESS) NoteFailure(completion);
  if (direction == kReceives && may_frame() && framing() == Framing::kUnknown) {
    early_.push_back(completion);
    return;
  }
  Take(direction, *queue, completion);
}

void Connection::SetFramed(bool framed) {
  if (!may_frame()) return;
  framing_.store(framed ? Framing::kFramed : Framing::kUnframed, std::memory_order_relaxed);
  for (const ibv_wc& completion : std::exchange(early_, {})) {
    if (queues_[kReceives] != nullptr) Take(kReceives, *queues_[kReceives], completion);
  }
}

void Connection::Take(Direction direction, WorkQueue& queue, const ibv_wc& completion) {
  if (direction == kReceives && bouncing()) {
    ReceiveBounced(queue, completion);
    return;
  }
  const bool read = WorkId::IsRead(completion.wr_id);
  WorkRecord* const record = queue.OldestAtDevice(read);
  if (record == nullptr) return;
  if (read) record->flags &= static_cast<uint16_t>(~WorkRecord::kReadOwed);
  Status status = direction == kReceives ? ReceiveStatus(completion.status)
                                         : CompletionStatus(completion.status);
  if (status == Status::kTransport && cut_) status = Status::kFlushed;
  if (status == Status::kFlushed && AnswerIsMissing(*record)) {
    status = Status::kTransport;
    set_failed();
  }
  if (status == Status::kSuccess && queue.Has(WorkQueue::kOver)) status = Status::kFlushed;
  if (direction == kReceives && status != Status::kSuccess && status != Status::kFlushed) {
    status = ReceiveError(queue, *record, status);
    queue.Set(WorkQueue::kOver);
  }
  if (record->status == Status::kSuccess) record->status = status;
  if (direction == kReceives && status == Status::kSuccess) {
    Receive(*record, completion);
    if (record->rest == WorkRecord::Rest::kFrame) {
      record->status = framing() == Framing::kFramed
                           ? ReceiveBehindFrame(queue, *record, completion.byte_len)
                           : ReceiveUnframed(queue, *record, completion.byte_len);
    } else if (record->bounce.memory != nullptr && record->opcode != Opcode::kReceiveWrite) {
      record->status =
          Scatter(*record, queue.SegmentsOf(*record), record->bounce.memory, completion.byte_len);
    }
    record->status = record->VerdictOr(record->status);  // an empty message meets no memory
    if (record->status != Status::kSuccess) {
      ForgetWhatCame(record);
      queue.Set(WorkQueue::kOver);
      Break();
    }
  }
  if (record->opcode == Opcode::kBind) memory_->BindDone(pair());
  if (--record->parts == 0) Finish(direction, queue, *record);
}

// For failures that the device did not see: a request that it refused, a message without a frame.
void Connection::Break() {
  set_failed();
  if (ended_ != nullptr) *ended_ = true;
  Signal(ConnectionOwner::kFailed);
}

bool Connection::TakeFrame(std::span<const uint8_t, kFrameBytes> frame, uint32_t bytes,
                           WorkRecord* record) {
  const std::optional<Frame> parsed =
      bytes >= kFrameBytes ? ParseFrame(frame, bytes - kFrameBytes) : std::nullopt;
  record->length = 0;
  if (!parsed.has_value()) return false;
  const bool write = parsed->kind == FrameKind::kWrite;
  if (write) record->opcode = Opcode::kReceiveWrite;
  record->length = write ? parsed->length : bytes - static_cast<uint32_t>(kFrameBytes);
  record->has_immediate = parsed->has_immediate();
  if (record->has_immediate) record->immediate = parsed->immediate;
  return true;
}

Status Connection::ReceiveBehindFrame(WorkQueue& queue, WorkRecord& record, uint32_t bytes) {
  if (!TakeFrame(frames_[kReceives].At(queue.SlotOf(record)), bytes, &record)) {
    return Status::kTransport;
  }
  if (record.bounce.memory == nullptr || bytes == kFrameBytes) return Status::kSuccess;
  return Scatter(record, queue.SegmentsOf(record), record.bounce.memory, record.length);
}

// The message has no frame: its beginning lies where one would be, and the rest too near the front
// of its memory. So the few receives posted before the answer came are copied twice.
Status Connection::ReceiveUnframed(WorkQueue& queue, WorkRecord& record, uint32_t bytes) {
  const std::span<const uint8_t> lead =
      std::span<const uint8_t>(frames_[kReceives].At(queue.SlotOf(record)))
          .first(std::min<size_t>(bytes, kFrameBytes));
  const Segment* const segments = queue.SegmentsOf(record);
  const std::unique_ptr<unsigned char[]> whole(new (std::nothrow) unsigned char[bytes + 1]);
  Status status = whole != nullptr ? Status::kSuccess : Status::kLocalLength;
  if (status == Status::kSuccess) {
    std::copy(lead.begin(), lead.end(), whole.get());
    unsigned char* const rest = whole.get() + lead.size();
    const auto left = static_cast<uint32_t>(bytes - lead.size());
    if (record.bounce.memory != nullptr) {
      std::memcpy(rest, record.bounce.memory, left);
    } else {
      status = Gather(record, segments, rest, left);
    }
  }
  return status == Status::kSuccess ? Scatter(record, segments, whole.get(), bytes) : status;
}

void Connection::NoteFailure(const ibv_wc& completion) {
  Log(LogLevel::kDebug, device_.name(), ": ", ibv_wc_status_str(completion.status));
  // A message that no receive could take has come before the event that there is a connection.
  if (!established_) {
    if (completion.status != IBV_WC_WR_FLUSH_ERR) set_failed();
    return;
  }
  // An InfiniBand device flushes by itself only after an error; on iWARP every connection ends with
  // a flush, and the connection manager tells how it ended.
  if (!stopping_ && ended_ != nullptr) *ended_ = true;
  if (completion.status == IBV_WC_WR_FLUSH_ERR && device_.iwarp()) return;
  set_failed();
  Signal(ConnectionOwner::kFailed);
}

// iWARP flushes everything however the connection ended. A read that the peer has not answered, or
// a request that it has not confirmed, was cut off by that end.
bool Connection::AnswerIsMissing(const WorkRecord& record) const {
  return device_.iwarp() && !stopping_ && !failed() &&
         (record.opcode == Opcode::kRead || (record.flags & kConfirm) != 0);
}

bool Connection::NeedsBounce(const WorkRecord& record, const Segment* segments) const {
  uint32_t count = may_frame() ? 1 : 0;
  for (uint16_t i = 0; i < record.segments; ++i) count += segments[i].length != 0 ? 1 : 0;
  return count > max_segments(kReceives);
}

// A receive itself fails either by its memory or by its length. Drivers do not agree on the status,
// so a check of the memory tells which, unless the device speaks of the length: then the message
// was longer than a receive that may reach past its region. libcxgb4 says the same of a message
// that reaches past the region.
Status Connection::ReceiveError(WorkQueue& queue, const WorkRecord& record, Status status) const {
  if (record.verdict() != Status::kSuccess) return record.verdict();
  const Segment* const segments = queue.SegmentsOf(record);
  if (record.bounce.memory == nullptr && NeedsBounce(record, segments)) {
    return Status::kLocalProtection;  // as for a send for which there is no memory
  }
  const bool too_long = status == Status::kLocalLength && device_.manager() != Manager::kIwarp;
  for (uint16_t i = 0; i < record.segments; ++i) {
    const uint32_t length = too_long ? 1 : segments[i].length;
    if (segments[i].length != 0 &&
        memory_->Resolve(*options().domain, segments[i].key, segments[i].address, length,
                         kLocalWrite) == nullptr) {
      return Status::kLocalProtection;
    }
  }
  return status == Status::kTransport ? status : Status::kLocalLength;
}

// The caller holds the lock of the completion queue, which clang cannot name by the direction.
void Connection::Finish(Direction direction, WorkQueue& queue,
                        WorkRecord& record) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  options().domain->bounces().GiveBack(record.bounce);
  queue.Done(record, record.status);
  if (record.status != Status::kSuccess) queue.FlushDoneBehind(record);
  if (queue.HasNews()) options().queues[direction]->List(direction, queue);
  if (direction == kSends) CheckTurn(queue);
}

void Connection::CheckTurn(WorkQueue& sends) {
  if (sends.open() != 0) return;
  if (sends.Take(WorkQueue::kDrainAwaited)) Signal(ConnectionOwner::kDrained);
  if (!sends.Take(WorkQueue::kBreakAwaited)) return;
  if (ended_ != nullptr) *ended_ = true;
  Signal(ConnectionOwner::kFailed);
}

void Connection::BreakInTurn(WorkQueue& sends) {
  set_failed();
  sends.Set(WorkQueue::kBreakAwaited);
  CheckTurn(sends);
}

// After a failure libbnxt_re and libocrdma take no more requests. libcxgb4 takes none either when
// the peer has hung up, as a peer does in good order, too.
bool Connection::NoteRefusal() {
  const bool over =
      established_ && (failed() || (device_.manager() == Manager::kIwarp && IsOver(PairState())));
  if (!over) {
    Break();
  } else if (!stopping_ && ended_ != nullptr) {
    *ended_ = true;
  }
  return over;
}

void Connection::Refused(Direction direction, WorkQueue& queue, WorkRecord& record,
                         uint32_t count) {
  record.parts = static_cast<uint16_t>(record.parts - count);
  record.flags &= static_cast<uint16_t>(~WorkRecord::kReadOwed);  // that is the last part
  const bool over = NoteRefusal();
  if (!established_) {
    record.rest = WorkRecord::Rest::kSome;  // stays posted, as after any failed attempt
    return;
  }
  if (record.status == Status::kSuccess) {
    record.status = over ? Status::kFlushed : Status::kTransport;
  }
  if (record.parts == 0) Finish(direction, queue, record);
}

void Connection::AwaitDrain(WorkQueue& sends) {
  sends.Set(WorkQueue::kDrainAwaited);
  CheckTurn(sends);
}

// Calls copy(memory, at, bytes) for the pieces of the receive's first `length` bytes.
template <typename Copy>
Status Connection::Walk(const WorkRecord& record, const Segment* segments, uint32_t length,
                        Copy&& copy) {
  const EpochGuard guard;  // a region that ends meanwhile waits for the copy
  uint32_t at = 0;
  for (uint16_t i = 0; i < record.segments && at != length; ++i) {
    const uint32_t piece = std::min(length - at, segments[i].length);
    if (piece == 0) continue;
    unsigned char* const memory = memory_->Resolve(*options().domain, segments[i].key,
                                                   segments[i].address, piece, kLocalWrite);
    if (memory == nullptr) return Status::kLocalProtection;
    copy(memory, at, piece);
    at += piece;
  }
  return at == length ? Status::kSuccess : Status::kLocalLength;
}

Status Connection::Scatter(const WorkRecord& record, const Segment* segments,
                           const unsigned char* from, uint32_t length) {
  return Walk(record, segments, length, [from](unsigned char* to, uint32_t at, uint32_t bytes) {
    std::memcpy(to, from + at, bytes);
  });
}

Status Connection::Gather(const WorkRecord& record, const Segment* segments, unsigned char* to,
                          uint32_t length) {
  return Walk(record, segments, length,
              [to](const unsigned char* from, uint32_t at, uint32_t bytes) {
                std::memcpy(to + at, from, bytes);
              });
}

void Connection::ReceiveBounced(WorkQueue& queue,
                                const ibv_wc& completion) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  const uint32_t slot = next_bounce_++ % static_cast<uint32_t>(bounces_.size());
  if (completion.status != IBV_WC_SUCCESS) return;
  if (WorkRecord* const record = queue.OldestOpen(); record != nullptr) {
    const Status status = record->VerdictOr(CopyBounced(queue, *record, slot, completion));
    if (status != Status::kSuccess) ForgetWhatCame(record);
    queue.Done(*record, status);
    if (queue.HasNews()) options().queues[kReceives]->List(kReceives, queue);
  } else {
    dropped_.fetch_add(1);
    SignalOfPeer(ConnectionOwner::kDropped);
  }
  PostBounce(slot);
}

Status Connection::CopyBounced(WorkQueue& queue, WorkRecord& record, uint32_t slot,
                               const ibv_wc& completion) {
  unsigned char* const message = bounces_[slot].memory.memory;
  uint32_t bytes = completion.byte_len;
  Receive(record, completion);
  if (bounces_[slot].leads) {
    const std::span<const uint8_t, kFrameBytes> frame = frames_[kReceives].At(slot);
    if (framing() == Framing::kUnframed) {
      // It may fill the slot and all of the bounce, which cannot hold that much.
      if (bytes > bounces_[slot].memory.size) return Status::kLocalLength;
      const uint32_t lead = std::min(bytes, static_cast<uint32_t>(kFrameBytes));
      std::memmove(message + lead, message, bytes - lead);
      std::copy_n(frame.data(), lead, message);
    } else if (TakeFrame(frame, bytes, &record)) {
      bytes -= kFrameBytes;
    } else {
      Break();
      return Status::kTransport;
    }
  }
  if (record.opcode == Opcode::kReceiveWrite) return Status::kSuccess;
  const Segment* const segments = queue.SegmentsOf(record);
  uint64_t room = 0;
  for (uint16_t i = 0; i < record.segments; ++i) room += segments[i].length;
  return room < bytes ? Status::kLocalLength : Scatter(record, segments, message, bytes);
}

bool Connection::CompleteShared(const SharedReceive& receive, const ibv_wc& completion) {
  WorkQueue* const queue = queues_[kReceives];
  if (queue == nullptr) return false;
  if (completion.status != IBV_WC_SUCCESS) NoteFailure(completion);
  if (queue->full() && !queue->Resize(2 * (queue->tail() - queue->head()), 0)) {
    Break();  // the message is lost
    return false;
  }
  WorkRecord& record = queue->Next();
  record = WorkRecord();
  record.id = receive.id;
  record.quiet = receive.quiet;
  record.opcode = Opcode::kReceive;
  record.parts = 1;
  queue->Publish();
  Status status = ReceiveStatus(completion.status);
  if (status == Status::kSuccess && queue->Has(WorkQueue::kOver)) status = Status::kFlushed;
  if (status == Status::kSuccess) {
    Receive(record, completion);
  } else if (status != Status::kFlushed) {
    queue->Set(WorkQueue::kOver);
  }
  record.status = status;
  record.parts = 0;
  Finish(kReceives, *queue, record);
  return true;
}

}  // namespace viaduct::verbs::rdma
