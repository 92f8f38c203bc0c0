// What wires call inside Link::Poll, beyond the inline half.
#include <algorithm>

#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {

Inbound SoftQueuePair::NoReceiveHere() {
  switch (no_receive_) {
    case NoReceive::kHold:
      if (!held_.load(std::memory_order_relaxed)) {
        held_.store(true, std::memory_order_relaxed);
        // A poster that did not see the flag has posted before this lock was free.
        SpinLockHolder holder(&receive_lock_);
        if (receives_.posted.load(std::memory_order_relaxed) !=
            receives_.done.load(std::memory_order_relaxed)) {
          held_.store(false, std::memory_order_relaxed);
          message_ = Message::kOpen;
          return Inbound::kOk;
        }
      }
      return Inbound::kHeld;
    case NoReceive::kBreak:
      return Break(Status::kReceiverNotReady);
    case NoReceive::kDrop:
      break;
  }
  ReportLater(&ConnectionSink::OnDropped);
  message_ = Message::kDiscarding;
  return Inbound::kDropped;
}

// The receive fails, and with kDrop it alone: the rest of its message is passed over.
Inbound SoftQueuePair::RefuseReceive(Status status) {
  const uint64_t position = receives_.done.load(std::memory_order_relaxed);
  ReceiveEntry& entry = receives_.at(position);
  entry.length = 0;
  entry.has_immediate = entry.solicited = false;
  entry.opcode = Opcode::kReceive;
  entry.status = status;
  receives_.done.store(position + 1, std::memory_order_release);
  if (no_receive_ == NoReceive::kDrop) {
    message_ = Message::kDiscarding;
    return Inbound::kDropped;
  }
  message_ = Message::kNone;
  return Break(Status::kRemoteOperation);
}

Inbound SoftQueuePair::RefuseWrite(bool has_immediate) {
  write_refused_ = true;
  if (!has_immediate) ReportLater(&ConnectionSink::OnRefusedWrite);
  if (no_receive_ == NoReceive::kDrop) return Inbound::kDropped;
  if (has_immediate) {
    // Its receive, if there is one, gets the verdict; FinishWrite will not be called.
    const uint64_t position = receives_.done.load(std::memory_order_relaxed);
    if (position != receives_.posted.load(std::memory_order_acquire)) {
      FinishWrite(0, Trailer{.has_immediate = true});
    }
  }
  return Break(Status::kRemoteAccess);
}

Inbound SoftQueuePair::FinishWrite(uint32_t length, const Trailer& trailer) {
  const bool refused = write_refused_;
  if (trailer.has_immediate) {
    const Inbound start = StartReceive();
    if (start == Inbound::kHeld || start == Inbound::kBroken) return start;
    message_ = Message::kNone;
    write_refused_ = false;
    if (start == Inbound::kDropped) return start;
    const uint64_t position = receives_.done.load(std::memory_order_relaxed);
    ReceiveEntry& entry = receives_.at(position);
    entry.length = refused ? 0 : length;
    entry.immediate = trailer.immediate;
    entry.has_immediate = true;
    entry.solicited = trailer.solicited;
    entry.opcode = Opcode::kReceiveWrite;
    entry.status = refused ? Status::kRemoteAccess : Status::kSuccess;
    receives_.done.store(position + 1, std::memory_order_release);
  }
  write_refused_ = false;
  return refused ? Inbound::kDropped : Inbound::kOk;
}

Inbound SoftQueuePair::CheckRead(Key key, uint64_t address, uint32_t n) {
  if (n == 0) return Inbound::kOk;
  if ((remote_access_ & kRemoteRead) != 0 &&
      regions_.Check(key, address, n, kRemoteRead, domain_)) {
    return Inbound::kOk;
  }
  ReportLater(&ConnectionSink::OnRefusedRead);
  return Break(Status::kRemoteAccess);
}

SendEntry* SoftQueuePair::OldestRead() {
  if (reads_out_.load(std::memory_order_acquire) == 0) return nullptr;
  // The oldest read is not complete, so it lies at `reaped` or behind.
  read_cursor_ = std::max(read_cursor_, sends_.reaped.load(std::memory_order_acquire));
  const uint64_t end = sends_.done.load(std::memory_order_acquire);
  for (; read_cursor_ != end; read_cursor_++) {
    SendEntry& entry = sends_.at(read_cursor_);
    if (entry.opcode == Opcode::kRead && LoadStatus(entry) == kPending) return &entry;
  }
  return nullptr;
}

void SoftQueuePair::FinishRead() {
  SetStatus(sends_.at(read_cursor_), Status::kSuccess);
  read_cursor_++;
  incomplete_.fetch_sub(1, std::memory_order_relaxed);
  reads_out_.fetch_sub(1, std::memory_order_release);
}

SendEntry* SoftQueuePair::NextIncomplete(uint64_t* position) {
  const uint64_t end = sends_.done.load(std::memory_order_acquire);
  uint64_t n = std::max(*position, sends_.reaped.load(std::memory_order_acquire));
  for (; n < end; n++) {
    SendEntry& entry = sends_.at(n);
    if (entry.opcode != Opcode::kRead && LoadStatus(entry) == kPending) {
      *position = n;
      return &entry;
    }
  }
  *position = n;
  return nullptr;
}

void SoftQueuePair::Complete(uint64_t position, Status status) {
  SetStatus(sends_.at(position), status);
  incomplete_.fetch_sub(1, std::memory_order_release);
}

}  // namespace viaduct::verbs
