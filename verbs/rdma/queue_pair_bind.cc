// Posting of binds.
#include <memory>
#include <new>

#include "verbs/rdma/queue_pair.h"

namespace viaduct::verbs::rdma {

PostResult RdmaQueuePair::PostBind(const BindRequest& request, Key* key) {
  WorkRecord blank = {};
  blank.id = request.id;
  blank.opcode = Opcode::kBind;
  blank.flags = request.flags;
  blank.quiet = (request.flags & kQuiet) != 0;
  std::shared_ptr<DomainCore> domain;
  {
    SpinLockHolder guard(&send_lock_);
    if (!FindRoomFor(1)) return PostResult::kQueueFull;
    if (sending_ == nullptr || stopped_) {
      return PostDone(sends_, kSends, blank, Status::kFlushed);
    }
    if (request.verdict != Status::kSuccess) return RefuseSend(blank, request.verdict);
    sends_.KeepPlace();
    domain = domain_;
  }
  // Bind calls into the kernel, so it is not called under the lock.
  Memory::BindStep step = Memory::BindStep::kNoKey;
  try {
    step = memory_.Bind(*domain, request, key);
  } catch (const std::bad_alloc&) {  // the place is given back below
  }
  {
    SpinLockHolder guard(&send_lock_);
    if (step == Memory::BindStep::kNoKey) {
      sends_.FreePlace();
      return PostResult::kNoKey;
    }
    // Its place is among those kept. If there is no room for these, this is another connection than
    // before, and the bind is flushed with the earlier one.
    if (sending_ != nullptr && !stopped_ && DeviceHasRoomFor(0)) {
      sends_.FreePlace();
      return PostBound(step, request, blank, key);
    }
  }
  if (step == Memory::BindStep::kDone) memory_.Unbind(*request.window, key);
  SpinLockHolder guard(&send_lock_);
  sends_.FreePlace();
  return PostDone(sends_, kSends, blank, Status::kFlushed);
}

PostResult RdmaQueuePair::PostBound(Memory::BindStep step, const BindRequest& request,
                                    const WorkRecord& blank, Key* key) {
  switch (step) {
    case Memory::BindStep::kDone:  // requests posted after this call meet the new binding
      return PostDone(sends_, kSends, blank, Status::kSuccess);
    case Memory::BindStep::kDevice:
      return PostBindToDevice(request, blank, key);
    default:
      return RefuseSend(blank, Status::kLocalProtection);
  }
}

PostResult RdmaQueuePair::PostBindToDevice(const BindRequest& request, const WorkRecord& blank,
                                           Key* key) {
  WorkRecord* refused = nullptr;
  const auto post = [&](ibv_mw* window, const ibv_mw_bind_info& range)
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(send_lock_) -> Key {
    WorkRecord& record = Begin(1, blank);
    const uint64_t id = WorkId::Of(sending_, kSends);
    const unsigned flags = (request.flags & kFence) != 0 ? unsigned{IBV_SEND_FENCE} : 0u;
    bool taken;
    Key bound = 0;
    if (window->type == IBV_MW_TYPE_1) {
      ibv_mw_bind bind = {.wr_id = id, .send_flags = flags, .bind_info = range};
      taken = ibv_bind_mw(sending_->pair(), window, &bind) == 0;
      bound = window->rkey;
    } else {
      ibv_send_wr work = {};
      work.wr_id = id;
      work.opcode = IBV_WR_BIND_MW;
      work.send_flags = flags;
      work.bind_mw.mw = window;
      work.bind_mw.rkey = bound = ibv_inc_rkey(window->rkey);
      work.bind_mw.bind_info = range;
      ibv_send_wr* bad = nullptr;
      taken = ibv_post_send(sending_->pair(), &work, &bad) == 0;
    }
    if (taken) return bound;
    refused = &record;
    return 0;
  };
  if (!memory_.BindOnDevice(*domain_, sending_->pair(), request, post, key)) {
    return RefuseSend(blank, Status::kLocalProtection);
  }
  // Not in `post`, because completion queues are locked before Memory.
  if (refused != nullptr) RefusedByDevice(*refused, 1);
  return PostResult::kOk;
}

}  // namespace viaduct::verbs::rdma
