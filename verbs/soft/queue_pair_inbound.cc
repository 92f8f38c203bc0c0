// What wires call inside Link::Poll, beyond the inline half.
#include <algorithm>

#include "verbs/soft/queue_pair.h"
#include "verbs/soft/shared_receive_queue.h"

namespace viaduct::verbs {

unsigned char* SoftQueuePair::Resolve(Key key, uint64_t address, uint32_t n,
                                      uint32_t access) const {
  unsigned char* memory = regions_.Resolve(key, address, n, access, domain_);
  constexpr uint32_t kRemote = kRemoteRead | kRemoteWrite | kRemoteAtomic;
  if (memory == nullptr && (access & kRemote) != 0) {
    memory = regions_.Resolve(key, address, n, access, own_domain_);
  }
  return memory;
}

Refusal SoftQueuePair::WhyRefused(Key key, uint32_t access) const {
  Refusal why = regions_.Explain(key, access, domain_);
  if (why == Refusal::kDomain) why = regions_.Explain(key, access, own_domain_);
  if (why == Refusal::kBounds && (remote_access_ & access) != access) return Refusal::kRights;
  return why;
}

bool SoftQueuePair::SharedReceiveWaits() const {
  return receives_.HasRoom(1) && receive_waiter_.MayTake() && shared_->available() != 0;
}

Inbound SoftQueuePair::NoReceiveHere() {
  if (shared_ != nullptr) {
    if (!receives_.HasRoom(1)) {
      held_.store(true, std::memory_order_relaxed);
      attention_.fetch_or(kFullRing, std::memory_order_relaxed);
      return Inbound::kHeld;
    }
    attention_.fetch_and(static_cast<uint8_t>(~kFullRing), std::memory_order_relaxed);
    if (shared_->Take(*this, &receives_)) {
      held_.store(false, std::memory_order_relaxed);
      message_ = opening_;
      return Inbound::kOk;
    }
  }
  switch (no_receive_) {
    case NoReceive::kHold:
      if (!held_.load(std::memory_order_relaxed)) {
        held_.store(true, std::memory_order_relaxed);
        // A poster that did not see the flag had posted before we got this lock.
        SpinLockHolder holder(&receive_lock_);
        if (receives_.posted.load(std::memory_order_relaxed) !=
            receives_.done.load(std::memory_order_relaxed)) {
          held_.store(false, std::memory_order_relaxed);
          message_ = opening_;
          return Inbound::kOk;
        }
      }
      return Inbound::kHeld;
    case NoReceive::kBreak:
      return Break(Status::kReceiverNotReady);
    case NoReceive::kDrop:
      break;
  }
  ReportLater(kDroppedMessage);
  message_ = Message::kDiscarding;
  return Inbound::kDropped;
}

// The receive fails. With kDrop nothing else does, and the rest of its message is skipped.
Inbound SoftQueuePair::RefuseReceive(Status status) {
  CompleteReceive(receives_.done.load(std::memory_order_relaxed), Opcode::kReceive, status);
  if (no_receive_ == NoReceive::kDrop) {
    message_ = Message::kDiscarding;
    return Inbound::kDropped;
  }
  message_ = Message::kNone;
  return Break(Status::kRemoteOperation);
}

Inbound SoftQueuePair::FinishSpecial(Message message, uint32_t length, const Trailer& trailer) {
  opening_ = Message::kOpen;
  if (message == Message::kNone) return Break(Status::kTransport);  // no receive is open
  if (message != Message::kInvalidating) return Inbound::kDropped;
  CompleteReceive(receives_.done.load(std::memory_order_relaxed), Opcode::kReceiveInvalidate,
                  Status::kSuccess, length,
                  Trailer{.immediate = invalidated_, .solicited = trailer.solicited});
  return Inbound::kOk;
}

Inbound SoftQueuePair::Invalidate(Key key) {
  if (!regions_.Invalidate(key, own_domain_)) return Break(Status::kRemoteAccess);
  // Only this pair uses the window: inbound, whose lock is held, and to answer reads (send lock).
  send_lock_.Pass();
  invalidated_ = key;
  if (message_ == Message::kOpen) {
    message_ = Message::kInvalidating;
  } else if (message_ == Message::kNone) {
    opening_ = Message::kInvalidating;
  }
  return Inbound::kOk;
}

Inbound SoftQueuePair::RefuseWrite(bool has_immediate) {
  write_refused_ = true;
  if (!has_immediate) ReportLater(kRefusedWrite);
  if (no_receive_ == NoReceive::kDrop) return Inbound::kDropped;
  if (has_immediate) {
    // The write's receive, if any, gets the verdict now: the wire will not call FinishWrite.
    const uint64_t position = receives_.done.load(std::memory_order_relaxed);
    if (position != receives_.posted.load(std::memory_order_acquire)) {
      FinishWrite(0, Trailer{.has_immediate = true, .cut = true});
    }
  }
  return Break(Status::kRemoteAccess);
}

Inbound SoftQueuePair::FinishWrite(uint32_t length, const Trailer& trailer) {
  Inbound result = Inbound::kOk;
  if (trailer.has_immediate) {
    result = ReceiveWritten(length, trailer, write_refused_);
    if (result == Inbound::kHeld || result == Inbound::kBroken) return result;
  }
  if (write_refused_) result = Inbound::kDropped;
  write_refused_ = false;
  return result;
}

Inbound SoftQueuePair::ReceiveWritten(uint32_t length, const Trailer& trailer, bool refused) {
  if (message_ != Message::kNone) return Break(Status::kTransport);  // a send has the receive
  const Inbound start = StartReceive();
  if (start == Inbound::kHeld || start == Inbound::kBroken) return start;
  message_ = Message::kNone;
  if (start == Inbound::kDropped) return start;
  const uint64_t position = receives_.done.load(std::memory_order_relaxed);
  const ReceiveEntry& entry = receives_.at(position);
  Status status = Status::kSuccess;
  if (HasVerdict(entry)) [[unlikely]]
    status = entry.status;
  if (refused) [[unlikely]]
    status = Status::kRemoteAccess;
  CompleteReceive(position, Opcode::kReceiveWrite, status, status == Status::kSuccess ? length : 0,
                  Trailer{.immediate = trailer.immediate,
                          .has_immediate = !trailer.cut,
                          .solicited = trailer.solicited});
  const bool breaks = status != Status::kSuccess && !refused && no_receive_ != NoReceive::kDrop;
  return breaks ? Break(Status::kRemoteOperation) : Inbound::kOk;
}

Inbound SoftQueuePair::CheckRead(Key key, uint64_t address, uint32_t n,
                                 const unsigned char** from) {
  *from = nullptr;
  if (n == 0) return Inbound::kOk;
  if ((remote_access_ & kRemoteRead) != 0) *from = Resolve(key, address, n, kRemoteRead);
  if (*from != nullptr) return Inbound::kOk;
  ReportLater(kRefusedRead);
  return Break(Status::kRemoteAccess);
}

SendEntry* SoftQueuePair::OldestRead() {
  if (reads_out_.load(std::memory_order_acquire) == 0) return nullptr;
  const uint64_t end = sends_.done.load(std::memory_order_acquire);
  // The oldest read is not complete, so it lies at or after `reaped`.
  read_cursor_ = std::max(read_cursor_, sends_.reaped.load(std::memory_order_acquire));
  for (; read_cursor_ < end; read_cursor_++) {
    SendEntry& entry = sends_.at(read_cursor_);
    if (IsFetch(LoadOpcode(entry)) && IsPending(entry, &read_cursor_)) return &entry;
  }
  return nullptr;
}

// Where sends complete in a queue of their own, a request may be reaped meanwhile and its slot
// reused. What was read from the slot counts only if the request is still not reaped after that.
bool SoftQueuePair::IsPending(const SendEntry& entry, uint64_t* position) const {
  if (LoadStatus(entry) != kPending) return false;
  const uint64_t reaped = sends_.reaped.load(std::memory_order_acquire);
  if (reaped <= *position) return true;
  *position = reaped - 1;
  return false;
}

void SoftQueuePair::FinishRead() {
  SetStatus(sends_.at(read_cursor_), Status::kSuccess);
  read_cursor_++;
  incomplete_.fetch_sub(1, std::memory_order_acq_rel);
  reads_out_.fetch_sub(1, std::memory_order_acq_rel);
}

SendEntry* SoftQueuePair::NextIncomplete(uint64_t* position) {
  const uint64_t end = sends_.done.load(std::memory_order_acquire);
  uint64_t n = std::max(*position, sends_.reaped.load(std::memory_order_acquire));
  for (; n < end; n++) {
    SendEntry& entry = sends_.at(n);
    if (!IsFetch(LoadOpcode(entry)) && IsPending(entry, &n)) {
      *position = n;
      return &entry;
    }
  }
  *position = n;
  return nullptr;
}

void SoftQueuePair::Complete(uint64_t position, Status status) {
  SetStatus(sends_.at(position), status);
  incomplete_.fetch_sub(1, std::memory_order_acq_rel);
}

}  // namespace viaduct::verbs
