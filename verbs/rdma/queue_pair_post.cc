// Posting: requests for the send queue in the device's form.
#include <pthread.h>

#include <algorithm>
#include <optional>

#include "absl/base/attributes.h"
#include "verbs/base/epoch.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/queue_pair.h"

namespace viaduct::verbs::rdma {
namespace {

constexpr uint8_t BitOf(Opcode opcode) {
  return static_cast<uint8_t>(1 << static_cast<uint8_t>(opcode));
}

ibv_wr_opcode VerbsOpcode(Opcode opcode, bool immediate) {
  switch (opcode) {
    case Opcode::kWrite:
      return immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
    case Opcode::kRead:
      return IBV_WR_RDMA_READ;
    case Opcode::kSendInvalidate:
      return IBV_WR_SEND_WITH_INV;
    default:
      return immediate ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
  }
}

}  // namespace

// Posts a request that is done at once and never goes to the device.
PostResult RdmaQueuePair::PostDone(WorkQueue& queue, Direction direction, const WorkRecord& blank,
                                   Status status) {
  WorkRecord& record = queue.Next();
  record = blank;
  record.parts = 0;
  {
    // Published under this lock, too: a flush of the queue, or a wait for its drain, finds it done.
    PassLockHolder guard(&core(direction).lock);
    queue.Publish();
    queue.Done(record, status);
    if (queue.HasNews()) core(direction).List(direction, queue);
  }
  core(direction).Notify();
  return PostResult::kOk;
}

PostResult RdmaQueuePair::RefuseSend(const WorkRecord& blank, Status status) {
  PostDone(sends_, kSends, blank, status);
  if (no_receive_ == NoReceive::kDrop) return PostResult::kOk;
  stopped_ = true;
  SetPlainOpcodes();
  PassLockHolder guard(&core(kSends).lock);
  sending_->BreakInTurn(sends_);
  return PostResult::kOk;
}

void RdmaQueuePair::PreparePlain(Connection& connection) {
  plain_ = {};
  plain_.wr_id = WorkId::Of(&connection, kSends);
  plain_.sg_list = &plain_segment_;
  plain_.num_sge = 1;
  // These need no other request of the device: kSolicited is one bit, and the others change nothing
  // there.
  uint16_t plain_flags = kSolicited | kSuppress | kQuiet;
  if (!device_.iwarp()) plain_flags |= kConfirm;
  special_flags_ = static_cast<uint16_t>(~plain_flags);
  plain_bytes_ = drops() ? kMaxDropBytes : device_.max_message();
  plain_inline_ = connection.max_inline();
  SetPlainOpcodes();
}

void RdmaQueuePair::SetPlainOpcodes() {
  plain_opcodes_ = 0;
  if (sending_ == nullptr || stopped_) return;
  plain_opcodes_ |= BitOf(Opcode::kWrite);
  if (immediate_form_ != ImmediateForm::kFramed) plain_opcodes_ |= BitOf(Opcode::kSend);
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool RdmaQueuePair::PostPlain(const SendRequest& request) {
  if ((plain_opcodes_ & BitOf(request.opcode)) == 0 || request.segments.size() != 1 ||
      (request.flags & special_flags_) != 0 || request.verdict != Status::kSuccess) {
    return false;
  }
  const Segment segment = request.segments[0];
  Connection& connection = *sending_;
  // Neither empty nor too long.
  if (segment.length - 1 >= plain_bytes_ || connection.SendRoom() <= sends_.kept_places() ||
      !memory_.TranslateOwn(*domain_, segment, kLocalRead, send_region_, &plain_segment_)) {
    return false;
  }
  plain_.send_flags = (segment.length <= plain_inline_ ? unsigned{IBV_SEND_INLINE} : 0u) |
                      ((request.flags & kSolicited) != 0 ? unsigned{IBV_SEND_SOLICITED} : 0u);
  if (request.opcode == Opcode::kSend) {
    plain_.opcode = IBV_WR_SEND;
  } else {
    plain_.opcode = IBV_WR_RDMA_WRITE;
    plain_.wr.rdma.remote_addr = request.remote_address;
    plain_.wr.rdma.rkey = request.remote_key;
  }
  WorkRecord& record = sends_.NextPlain();
  record.length = segment.length;
  record.opcode = request.opcode;
  record.quiet = (request.flags & kQuiet) != 0;
  record.flags = request.flags & ~kSolicited;
  record.segments = 0;
  if (!TakeIdOf(request, &record.id)) return false;
  connection.Posted(kSends, 1);
  sends_.Publish();
  ibv_send_wr* bad = nullptr;
  if (PostToDevice(&plain_, &bad) != 0) RefusedByDevice(record, bad, 0);
  return true;
}

bool RdmaQueuePair::DeviceHasRoomFor(uint32_t requests) const {
  return sending_->SendRoom() >= requests + sends_.kept_places();
}

bool RdmaQueuePair::HasRoomFor(uint32_t requests) const {
  return !sends_.full() && (sending_ == nullptr || stopped_ || DeviceHasRoomFor(requests));
}

bool RdmaQueuePair::FindRoomFor(uint32_t requests) {
  if (HasRoomFor(requests)) return true;
  bool news;
  {
    PassLockHolder guard(&core(kSends).lock);
    const uint64_t before = core(kSends).listed();
    core(kSends).SkipUnseen(sends_);
    for (int passes = 0; passes < kHarvests && !HasRoomFor(requests) && core(kSends).Harvest();
         ++passes) {
      core(kSends).SkipUnseen(sends_);
    }
    news = core(kSends).HasNews() && core(kSends).listed() != before;
  }
  if (news) core(kSends).Notify();
  return HasRoomFor(requests);
}

PostResult RdmaQueuePair::PostSend(const SendRequest& request) {
  SpinLockHolder guard(&send_lock_);
  if (sends_.full() && !FindRoomFor(1)) [[unlikely]]
    return PostResult::kQueueFull;
  if (PostPlain(request)) return PostResult::kOk;
  if (request.segments.size() > max_send_segments_) return PostResult::kTooManySegments;
  // The segments are copied, because they are read more than once below, and the program or its
  // peer may overwrite the originals meanwhile.
  std::copy(request.segments.begin(), request.segments.end(), kept_segments_.begin());
  SendRequest kept = request;
  kept.segments = {kept_segments_.data(), request.segments.size()};
  return PostGeneral(kept);
}

PostResult RdmaQueuePair::PostGeneral(const SendRequest& request) {
  WorkRecord blank = {};
  blank.opcode = request.opcode == Opcode::kSendInvalidate ? Opcode::kSend : request.opcode;
  blank.flags = request.flags & ~kSolicited;
  blank.quiet = (request.flags & kQuiet) != 0;
  blank.has_immediate = (request.flags & kImmediate) != 0;
  blank.immediate = request.immediate;
  // Checked before the request has an id: without room it is not posted.
  const uint32_t parts = sending_ != nullptr ? PartsOf(request, blank) : 1;
  if (!FindRoomFor(parts)) return PostResult::kQueueFull;
  if (!TakeIdOf(request, &blank.id)) return PostResult::kQueueFull;
  if (sending_ == nullptr || stopped_) {
    return PostDone(sends_, kSends, blank, Status::kFlushed);
  }
  if (request.verdict != Status::kSuccess) return RefuseSend(blank, request.verdict);

  const uint64_t bytes = TotalLength(request.segments);
  const bool may_drop = drops() && blank.opcode == Opcode::kSend;
  if (bytes > device_.max_message() || (may_drop && bytes > kMaxDropBytes)) {
    return RefuseSend(blank, Status::kLocalLength);
  }
  const bool reads = request.opcode == Opcode::kRead;
  const bool framed = immediate_form_ == ImmediateForm::kFramed;
  const uint32_t lead = framed && blank.opcode == Opcode::kSend ? 1 : 0;
  uint32_t count = lead;
  if (!TranslateSegments(request, &count)) return RefuseSend(blank, Status::kLocalProtection);
  if (blank.has_immediate && request.opcode == Opcode::kWrite && device_.iwarp() && !framed) {
    return RefuseSend(blank, Status::kRemoteOperation);  // no device has RFC 7306
  }
  if (blank.opcode == Opcode::kSend && immediate_form_ == ImmediateForm::kNone) {
    blank.has_immediate = false;
  }
  const bool immediate = blank.has_immediate;
  blank.length = static_cast<uint32_t>(bytes);
  const uint32_t most = MostSegments(request.opcode);
  const uint64_t sent = bytes + lead * kFrameBytes;
  // Inline bytes are copied now, from where they lie, so a request with a fence, which may wait for
  // its bytes, does not go inline. Older libraries of irdma take only the first segment.
  const bool inlined = !reads && sent <= sending_->max_inline() && count == 1 &&
                       (request.flags & kFence) == 0 && (lead != 0 || LiesThere(request.segments));
  if (lead != 0) {
    Frame frame;
    if (immediate && request.opcode == Opcode::kSend) {
      frame = {FrameKind::kSendWithImmediate, request.immediate};
    }
    if (!PlaceFrame(frame, inlined, &send_segments_[0])) {
      return RefuseSend(blank, Status::kLocalProtection);
    }
  }

  ibv_send_wr work = WorkOf(request, immediate && !framed);
  work.num_sge = static_cast<int>(count);
  if (inlined) work.send_flags |= IBV_SEND_INLINE;
  if (count > most) {
    return IsSplit(request)
               ? PostSplit(work, blank, most)
               : PostGathered(work, request, blank, lead, static_cast<uint32_t>(bytes));
  }
  // irdma's library reads the first segment of a write even if there is none.
  if (count == 0) send_segments_[0] = {0, 0, 0};
  if (reads && count == 0) AskForWord(&work, &send_segments_[0]);
  return PostWhole(work, blank);
}

ibv_send_wr RdmaQueuePair::WorkOf(const SendRequest& request, bool immediate) {
  const bool reads = request.opcode == Opcode::kRead;
  ibv_send_wr work = {};
  work.wr_id = reads ? WorkId::OfRead(sending_) : WorkId::Of(sending_, kSends);
  work.sg_list = send_segments_.data();
  work.opcode = VerbsOpcode(request.opcode, immediate);
  // siw takes a fence of a read for an error, and ends the connection.
  const bool may_fence = !reads || device_.manager() != Manager::kSiw;
  if ((request.flags & kFence) != 0 && may_fence) work.send_flags |= IBV_SEND_FENCE;
  if ((request.flags & kSolicited) != 0) work.send_flags |= IBV_SEND_SOLICITED;
  if (immediate) work.imm_data = request.immediate;  // in the host's order of bytes: see README.md
  if (request.opcode == Opcode::kSendInvalidate) {
    work.wr.rdma.rkey = request.remote_key;  // libsiw takes it from here
    work.invalidate_rkey = request.remote_key;
  }
  if (request.opcode == Opcode::kWrite || reads) {
    work.wr.rdma.remote_addr = request.remote_address;
    work.wr.rdma.rkey = request.remote_key;
  }
  return work;
}

bool RdmaQueuePair::TranslateSegments(const SendRequest& request, uint32_t* count) {
  const bool reads = request.opcode == Opcode::kRead;
  const uint32_t rights =
      reads ? ((request.flags & kRemoteSink) != 0 ? kRemoteWrite : kLocalWrite) : kLocalRead;
  const LocalUse use = reads ? LocalUse::kSink : LocalUse::kAny;
  for (const auto& [address, key, length] : request.segments) {
    if (length == 0) continue;
    uint32_t local_key;
    if (!memory_.Translate(*domain_, key, address, length, rights, use, send_region_, &local_key)) {
      return false;
    }
    send_segments_[(*count)++] = {address, length, local_key};
  }
  return true;
}

bool RdmaQueuePair::LiesThere(absl::Span<const Segment> segments) {
  const EpochGuard guard;
  for (const Segment& segment : segments) {
    if (segment.length == 0) continue;
    const unsigned char* const memory =
        memory_.Resolve(*domain_, segment.key, segment.address, segment.length, kLocalRead);
    if (reinterpret_cast<uint64_t>(memory) != segment.address) return false;
  }
  return true;
}

int RdmaQueuePair::PostToDevice(ibv_send_wr* first, ibv_send_wr** bad) {
  if (!device_.rings_by_write()) return ibv_post_send(sending_->pair(), first, bad);
  int before;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  const int error = ibv_post_send(sending_->pair(), first, bad);
  pthread_setcancelstate(before, nullptr);
  return error;
}

bool RdmaQueuePair::PlaceFrame(const Frame& frame, bool inlined, ibv_sge* segment) {
  if (inlined) {
    EncodeFrame(frame, inline_frame_);
    *segment = {reinterpret_cast<uint64_t>(inline_frame_.data()), kFrameBytes, 0};
    return true;
  }
  const FrameSlots& slots = sending_->frames(kSends);
  if (slots.empty()) return false;
  EncodeFrame(frame, slots.At(sends_.next_slot()));
  *segment = slots.SegmentAt(sends_.next_slot());
  return true;
}

PostResult RdmaQueuePair::PostWhole(ibv_send_wr& work, const WorkRecord& blank) {
  Tail tail;
  const std::optional<uint32_t> behind = Follow(work, blank, &tail);
  if (!behind.has_value()) return RefuseSend(blank, Status::kLocalProtection);
  return PostChain(&work, 1 + *behind, blank);
}

void RdmaQueuePair::AskForWord(ibv_send_wr* read, ibv_sge* sink) const {
  *sink = confirm_to_;
  read->sg_list = sink;
  // libsiw wants a sink, even of no bytes. libcxgb4 has a key of its own for a read without a sink,
  // but not for a sink with key 0.
  read->num_sge = confirm_to_.length != 0 || device_.manager() == Manager::kSiw ? 1 : 0;
  if (confirm_to_.length == 0) return;
  read->wr.rdma.remote_addr = confirm_by_.address;
  read->wr.rdma.rkey = confirm_by_.key;
}

std::optional<uint32_t> RdmaQueuePair::Follow(ibv_send_wr& last, const WorkRecord& blank,
                                              Tail* tail) {
  uint32_t count = 0;
  ibv_send_wr* end = &last;
  if (NeedsFrameBehind(blank)) {
    const bool inlined = kFrameBytes <= sending_->max_inline();
    if (!PlaceFrame({FrameKind::kWrite, blank.immediate, blank.length}, inlined, &tail->frame)) {
      return std::nullopt;
    }
    tail->value.wr_id = last.wr_id;
    tail->value.sg_list = &tail->frame;
    tail->value.num_sge = 1;
    tail->value.opcode = IBV_WR_SEND;
    tail->value.send_flags = last.send_flags & static_cast<unsigned>(IBV_SEND_SOLICITED);
    if (inlined) tail->value.send_flags |= IBV_SEND_INLINE;
    end = end->next = &tail->value;
    ++count;
  }
  if (NeedsConfirmation(blank)) {
    // The verdict on iWARP: a read behind the request is answered when the request was placed.
    tail->confirmation.wr_id = WorkId::OfRead(sending_);
    tail->confirmation.opcode = IBV_WR_RDMA_READ;
    AskForWord(&tail->confirmation, &tail->word);
    end->next = &tail->confirmation;
    ++count;
  }
  return count;
}

WorkRecord& RdmaQueuePair::Begin(uint32_t count, const WorkRecord& blank) {
  WorkRecord& record = sends_.Next();
  record = blank;
  record.parts = static_cast<uint16_t>(count);
  if (NeedsConfirmation(blank)) record.flags |= WorkRecord::kReadOwed;
  const bool overtaken = blank.opcode == Opcode::kRead && device_.iwarp();
  const bool binds = blank.opcode == Opcode::kBind;  // Memory must be told when it is done
  if (count == 1 && record.bounce.memory == nullptr && !overtaken && !binds) {
    record.rest = WorkRecord::Rest::kNone;
  }
  sending_->Posted(kSends, count);
  sends_.Publish();
  return record;
}

PostResult RdmaQueuePair::PostChain(ibv_send_wr* first, uint32_t count, const WorkRecord& blank) {
  WorkRecord& record = Begin(count, blank);
  ibv_send_wr* bad = nullptr;
  if (PostToDevice(first, &bad) != 0) RefusedByDevice(record, bad, 0);
  return PostResult::kOk;
}

// The part of a chain that the device took completes; the rest is not waited for.
void RdmaQueuePair::RefusedByDevice(WorkRecord& record, const ibv_send_wr* bad, uint32_t unposted) {
  uint32_t refused = unposted;
  for (const ibv_send_wr* at = bad; at != nullptr; at = at->next) ++refused;
  RefusedByDevice(record, refused);
}

void RdmaQueuePair::RefusedByDevice(WorkRecord& record, uint32_t refused) {
  Connection& connection = *sending_;
  connection.Unposted(kSends, refused);
  if (no_receive_ != NoReceive::kDrop) {
    stopped_ = true;
    SetPlainOpcodes();
  }
  {
    PassLockHolder guard(&core(kSends).lock);
    connection.Refused(kSends, sends_, record, refused);
  }
  core(kSends).Notify();
}

PostResult RdmaQueuePair::PostAtomic(const AtomicRequest& request) {
  SpinLockHolder guard(&send_lock_);
  if (!FindRoomFor(1)) return PostResult::kQueueFull;
  WorkRecord blank = {};
  blank.id = request.id;
  blank.opcode = request.opcode;
  blank.flags = request.flags;
  blank.quiet = (request.flags & kQuiet) != 0;
  blank.length = 8;
  if (sending_ == nullptr || stopped_) {
    return PostDone(sends_, kSends, blank, Status::kFlushed);
  }
  if (request.verdict != Status::kSuccess) return RefuseSend(blank, request.verdict);
  if (request.result.length != 8) return RefuseSend(blank, Status::kLocalLength);
  ibv_sge result = {request.result.address, 8, 0};
  if (!memory_.Translate(*domain_, request.result.key, request.result.address, 8, kLocalWrite,
                         LocalUse::kAny, send_region_, &result.lkey)) {
    return RefuseSend(blank, Status::kLocalProtection);
  }
  if (!device_.atomics() || request.remote_address % 8 != 0) {
    return RefuseSend(blank, Status::kRemoteOperation);
  }
  ibv_send_wr work = {};
  work.wr_id = WorkId::Of(sending_, kSends);
  work.sg_list = &result;
  work.num_sge = 1;
  work.opcode = request.opcode == Opcode::kCompareAndSwap ? IBV_WR_ATOMIC_CMP_AND_SWP
                                                          : IBV_WR_ATOMIC_FETCH_AND_ADD;
  if ((request.flags & kFence) != 0) work.send_flags |= IBV_SEND_FENCE;
  work.wr.atomic.remote_addr = request.remote_address;
  work.wr.atomic.compare_add = request.compare_add;
  work.wr.atomic.swap = request.swap;
  work.wr.atomic.rkey = request.remote_key;
  return PostChain(&work, 1, blank);
}

}  // namespace viaduct::verbs::rdma
