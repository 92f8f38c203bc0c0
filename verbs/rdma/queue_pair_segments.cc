// Posting of requests with more segments than the device takes.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "verbs/base/epoch.h"
#include "verbs/base/log.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/queue_pair.h"

namespace viaduct::verbs::rdma {

uint32_t RdmaQueuePair::MostSegments(Opcode opcode) const {
  const uint32_t most = sending_->max_segments(kSends);
  return opcode == Opcode::kRead ? std::min(most, device_.max_read_segments()) : most;
}

bool RdmaQueuePair::IsSplit(const SendRequest& request) const {
  if (request.opcode != Opcode::kWrite) return request.opcode == Opcode::kRead;
  return (request.flags & kImmediate) == 0 || immediate_form_ == ImmediateForm::kFramed ||
         (request.flags & kFence) != 0;
}

uint32_t RdmaQueuePair::PartsOf(const SendRequest& request, const WorkRecord& record) const {
  uint32_t parts = 1;
  if (IsSplit(request)) {
    const uint32_t most = MostSegments(request.opcode);
    uint32_t segments = 0;
    for (const Segment& segment : request.segments) segments += segment.length != 0 ? 1 : 0;
    parts = std::max(parts, (segments + most - 1) / most);
  }
  return parts + (NeedsFrameBehind(record) ? 1 : 0) + (NeedsConfirmation(record) ? 1 : 0);
}

bool RdmaQueuePair::AwaitsRead() {
  PassLockHolder guard(&core(kSends).lock);
  for (int passes = 0; passes < kHarvests && sends_.HasOpenRead() && core(kSends).Harvest();
       ++passes) {
  }
  return sends_.HasOpenRead();
}

// Sends through memory of our own what has more segments than the device takes and cannot be split.
// The bytes are copied now, so there must be nothing that a fence would wait for.
PostResult RdmaQueuePair::PostGathered(ibv_send_wr& work, const SendRequest& request,
                                       const WorkRecord& blank, uint32_t lead, uint32_t bytes) {
  if ((request.flags & kFence) != 0 && AwaitsRead()) {
    Log(LogLevel::kError, device_.name(), ": behind a read or atomic a fenced message has ",
        MostSegments(request.opcode), " segments at most, and not ", work.num_sge);
    return RefuseSend(blank, Status::kLocalLength);
  }
  WorkRecord gathered = blank;
  if (sending_->KeepRoomToLeave(kSends, sends_.slots())) {
    gathered.bounce = domain_->bounces().Take(bytes);
  }
  if (gathered.bounce.memory == nullptr) return RefuseSend(blank, Status::kLocalProtection);
  unsigned char* to = gathered.bounce.memory;
  for (const Segment& segment : request.segments) {
    if (segment.length == 0) continue;
    const EpochGuard guard;  // a region that ends meanwhile waits for the copy
    const unsigned char* const from =
        memory_.Resolve(*domain_, segment.key, segment.address, segment.length, kLocalRead);
    if (from == nullptr) {
      domain_->bounces().GiveBack(gathered.bounce);
      return RefuseSend(blank, Status::kLocalProtection);
    }
    std::memcpy(to, from, segment.length);
    to += segment.length;
  }
  send_segments_[lead] = {reinterpret_cast<uint64_t>(gathered.bounce.memory), bytes,
                          gathered.bounce.registration->lkey};
  work.num_sge = static_cast<int>(lead) + 1;
  return PostWhole(work, gathered);
}

// Posts a read or write with more segments than the device takes as several requests with one
// completion. They are built and posted a few at a time, without allocating memory.
PostResult RdmaQueuePair::PostSplit(ibv_send_wr& work, const WorkRecord& blank, uint32_t most) {
  constexpr unsigned kNotOfLaterParts = IBV_SEND_FENCE;
  const uint32_t segments = static_cast<uint32_t>(work.num_sge);
  const uint32_t parts = (segments + most - 1) / most;
  ibv_send_wr last = work;
  last.send_flags &= ~kNotOfLaterParts;
  Tail tail;
  const std::optional<uint32_t> behind = Follow(last, blank, &tail);
  if (!behind.has_value()) return RefuseSend(blank, Status::kLocalProtection);
  WorkRecord& record = Begin(parts + *behind, blank);
  if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) work.opcode = IBV_WR_RDMA_WRITE;
  uint32_t left = parts;
  std::array<ibv_send_wr, 8> chain;
  while (left != 0) {
    const uint32_t count = std::min<uint32_t>(left, chain.size());
    for (uint32_t i = 0; i < count; ++i) {
      ibv_send_wr& part = chain[i];
      part = --left == 0 ? last : work;
      part.sg_list = work.sg_list;
      part.num_sge = std::min(static_cast<int>(most), work.num_sge);
      part.wr.rdma.remote_addr = work.wr.rdma.remote_addr;
      if (left != 0) part.next = i + 1 != count ? &chain[i + 1] : nullptr;
      for (int k = 0; k < part.num_sge; ++k) work.wr.rdma.remote_addr += part.sg_list[k].length;
      work.sg_list += part.num_sge;
      work.num_sge -= part.num_sge;
      work.send_flags &= ~kNotOfLaterParts;
    }
    ibv_send_wr* bad = nullptr;
    if (PostToDevice(chain.data(), &bad) != 0) {
      RefusedByDevice(record, bad, left == 0 ? 0 : left + *behind);
      break;
    }
  }
  return PostResult::kOk;
}

}  // namespace viaduct::verbs::rdma
