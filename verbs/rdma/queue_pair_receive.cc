// Posting of receives.
#include <algorithm>

#include "absl/base/attributes.h"
#include "verbs/rdma/queue_pair.h"

namespace viaduct::verbs::rdma {
namespace {

// The most bytes that a message to these segments can have.
uint32_t MostBytes(const Device& device, absl::Span<const Segment> segments) {
  return static_cast<uint32_t>(std::min<uint64_t>(TotalLength(segments), device.max_message()));
}

}  // namespace

void RdmaQueuePair::PreparePlainReceive(Connection& connection) {
  plain_receive_ = {};
  plain_receive_.wr_id = WorkId::Of(&connection, kReceives);
  plain_receive_.sg_list = &plain_receive_segment_;
  plain_receive_.num_sge = 1;
  plain_receives_ = max_receive_segments_ != 0 && !connection.bouncing();
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline bool RdmaQueuePair::PostPlain(const ReceiveRequest& request) {
  if (!plain_receives_ || request.segments.size() != 1) return false;
  const Segment segment = request.segments[0];
  Connection& connection = *receiving_;
  const bool usual = segment.length != 0 && segment.length <= device_.max_message();
  if (connection.may_frame() || !usual ||
      !memory_.TranslateOwn(*domain_, segment, kLocalWrite, receive_region_,
                            &plain_receive_segment_)) {
    return false;
  }
  *receives_.NextSegments(1) = segment;
  WorkRecord& record = receives_.NextPlain();
  record.length = 0;
  record.opcode = Opcode::kReceive;
  record.quiet = request.quiet;
  record.flags = 0;
  record.segments = 1;
  if (!TakeIdOf(request, &record.id)) return false;
  connection.Posted(kReceives, 1);
  receives_.Publish();
  ibv_recv_wr* bad;
  if (ibv_post_recv(connection.pair(), &plain_receive_, &bad) != 0) {
    RefusedByDevice(connection, record);
  }
  return true;
}

PostResult RdmaQueuePair::PostReceive(const ReceiveRequest& request) {
  SpinLockHolder guard(&receive_lock_);
  if (receives_.full()) [[unlikely]]
    return PostResult::kQueueFull;
  return PostPlain(request) ? PostResult::kOk : PostGeneral(request);
}

PostResult RdmaQueuePair::PostGeneral(const ReceiveRequest& request) {
  if (request.segments.size() > max_receive_segments_) return PostResult::kTooManySegments;
  WorkRecord blank = {};
  if (!TakeIdOf(request, &blank.id)) return PostResult::kQueueFull;
  blank.opcode = Opcode::kReceive;
  blank.quiet = request.quiet;
  if (flushing_) return PostDone(receives_, kReceives, blank, Status::kFlushed);
  if (request.segments.empty()) blank.SetVerdict(request.verdict);
  blank.segments = static_cast<uint16_t>(request.segments.size());
  Segment* const kept = receives_.NextSegments(request.segments.size());
  std::copy(request.segments.begin(), request.segments.end(), kept);
  WorkRecord& record = receives_.Next();
  record = blank;
  if (receiving_ == nullptr || receiving_->bouncing()) {
    receives_.Publish();
    return PostResult::kOk;
  }
  record.parts = 1;
  receives_.Publish();
  TakeBounce(*receiving_, record, kept);  // without a bounce it fails when a message meets it
  if (!PostReceiveToDevice(*receiving_, record, kept)) RefusedByDevice(*receiving_, record);
  return PostResult::kOk;
}

bool RdmaQueuePair::TakeBounce(Connection& connection, WorkRecord& record,
                               const Segment* segments) {
  if (!connection.NeedsBounce(record, segments)) return true;
  if (connection.KeepRoomToLeave(kReceives, receives_.slots())) {
    record.bounce = domain_->bounces().Take(MostBytes(device_, {segments, record.segments}));
  }
  return record.bounce.memory != nullptr;
}

bool RdmaQueuePair::PostReceiveToDevice(Connection& connection, WorkRecord& record,
                                        const Segment* segments) {
  const absl::Span<const Segment> all(segments, record.segments);
  const uint32_t lead = connection.may_frame() ? 1 : 0;
  if (lead != 0) {
    receive_segments_[0] = connection.frames(kReceives).SegmentAt(receives_.SlotOf(record));
  }
  uint32_t count =
      lead + memory_.TranslateReceive(*domain_, all, device_.max_message(), receive_region_,
                                      receive_segments_.data() + lead);
  if (count > connection.max_segments(kReceives)) {
    count = lead + 1;
    ibv_sge& whole = receive_segments_[lead];
    whole = {0, MostBytes(device_, all), kNoLocalKey};
    if (record.bounce.memory != nullptr) {
      whole.addr = reinterpret_cast<uint64_t>(record.bounce.memory);
      whole.lkey = record.bounce.registration->lkey;
    }
  } else {
    domain_->bounces().GiveBack(record.bounce);  // frames were declined since it was taken
  }
  // It must fail at the device, too, which then tells the peer.
  const bool fails = record.verdict() != Status::kSuccess;
  if (fails) receive_segments_[lead] = {0, device_.max_message(), kNoLocalKey};
  if (lead != 0) {
    record.rest = WorkRecord::Rest::kFrame;
  } else if (record.bounce.memory == nullptr && !fails) {
    record.rest = WorkRecord::Rest::kNone;
  }
  ibv_recv_wr work = {};
  work.wr_id = WorkId::Of(&connection, kReceives);
  work.sg_list = receive_segments_.data();
  work.num_sge = static_cast<int>(count);
  ibv_recv_wr* bad;
  connection.Posted(kReceives, 1);
  return ibv_post_recv(connection.pair(), &work, &bad) == 0;
}

void RdmaQueuePair::RefusedByDevice(Connection& connection, WorkRecord& record) {
  connection.Unposted(kReceives, 1);
  {
    PassLockHolder guard(&core(kReceives).lock);
    connection.Refused(kReceives, receives_, record, 1);
  }
  core(kReceives).Notify();
}

}  // namespace viaduct::verbs::rdma
