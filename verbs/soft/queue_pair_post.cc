// Posting.
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {

template <typename Entry>
bool SoftQueuePair::MakeRoom(WorkQueue<Entry>& queue, size_t segments) {
  LockAll();
  SkipSuppressed();
  const bool made = queue.MakeRoom(segments);
  UnlockAll();
  return made;
}

inline bool SoftQueuePair::EnqueueSend(const SendRequest& request) {
  PassLockHolder holder(&send_lock_);
  if (!sends_.HasRoom(request.segments.size())) [[unlikely]]
    return false;
  const uint64_t n = sends_.posted.load(std::memory_order_relaxed);
  SendEntry& entry = sends_.at(n);
  entry.id = request.id;
  entry.remote_address = request.remote_address;
  entry.remote_key = request.remote_key;
  entry.immediate = request.immediate;
  entry.opcode = request.opcode;
  entry.flags = request.flags;
  entry.offset = 0;
  if (request.opcode == Opcode::kSend && !immediate_enabled()) entry.flags &= ~kImmediate;
  const uint64_t length = sends_.CopySegments(n, request.segments);
  entry.length = static_cast<uint32_t>(length);
  if (request.verdict != Status::kSuccess) [[unlikely]] {
    Doom(entry, request.verdict);
  } else if (length > max_message_) [[unlikely]] {
    Doom(entry, Status::kLocalLength);
  }
  const bool connected = state_.load(std::memory_order_relaxed) == State::kConnected;
  if (connected && !draining_.load(std::memory_order_relaxed)) [[likely]] {
    entry.status = kPending;
    sends_.posted.store(n + 1, std::memory_order_release);
    link_.load(std::memory_order_relaxed)->Pump();
  } else {
    entry.status = static_cast<uint8_t>(Status::kFlushed);
    sends_.posted.store(n + 1, std::memory_order_release);
    // While draining, NextToEmit passes it in its turn.
    if (!connected) sends_.done.store(n + 1, std::memory_order_release);
  }
  return true;
}

PostResult SoftQueuePair::PostSend(const SendRequest& request) {
  if (request.segments.size() > sends_.max_segments()) [[unlikely]] {
    return PostResult::kTooManySegments;
  }
  while (!EnqueueSend(request)) {
    if (!MakeRoom(sends_, request.segments.size())) return PostResult::kQueueFull;
  }
  // Its completion must be found.
  if (!hot_.load(std::memory_order_relaxed) || send_home_.HasSleepers()) {
    send_home_.MarkReady(attachments_[attachment_count_ - 1],
                         SoftCompletionQueue::News::kCompletion);
  }
  return PostResult::kOk;
}

void SoftQueuePair::Doom(SendEntry& entry, Status status) {
  entry.flags |= kDoomed;
  entry.cookie = static_cast<uint64_t>(status);
}

SendEntry* SoftQueuePair::LookAtNext() {
  for (;;) {
    const uint64_t n = sends_.done.load(std::memory_order_relaxed);
    if (n == sends_.posted.load(std::memory_order_relaxed)) return nullptr;
    if (failing_.load(std::memory_order_relaxed)) return nullptr;
    SendEntry& entry = sends_.at(n);
    if (entry.status != kPending) {
      // Posted while the queue was draining: flushed already.
      sends_.done.store(n + 1, std::memory_order_release);
      continue;
    }
    const bool drop = no_receive_ == NoReceive::kDrop;
    const uint32_t reads = reads_out_.load(std::memory_order_acquire);
    if ((entry.flags & kDoomed) == 0 && entry.offset == 0) {
      // With kDrop a request fails alone, so nothing of a wrong one may have been sent.
      const uint32_t access = entry.opcode == Opcode::kRead ? kLocalWrite : kLocalRead;
      if (entry.opcode == Opcode::kRead && reads_out_limit_ == 0) {
        Doom(entry, Status::kRemoteOperation);
      } else if (drop && !CheckAll(n, access)) {
        Doom(entry, Status::kLocalProtection);
      }
    }
    if ((entry.flags & kDoomed) != 0) {
      if (incomplete_.load(std::memory_order_acquire) != 0) return nullptr;
      const Status status = static_cast<Status>(entry.cookie);
      // A message that was partly sent leaves a peer that waits for the rest.
      if (!drop || entry.offset != 0) {
        FailSend(entry, status);
        return nullptr;
      }
      SetStatus(entry, status);
      sends_.done.store(n + 1, std::memory_order_release);
      continue;
    }
    if ((entry.flags & kFence) != 0 && reads != 0) return nullptr;
    if (entry.opcode == Opcode::kRead && reads >= reads_out_limit_) return nullptr;
    return &entry;
  }
}

bool SoftQueuePair::CheckAll(uint64_t position, uint32_t access) const {
  for (const Segment& segment : sends_.segments(position)) {
    if (segment.length != 0 && !Check(segment, 0, segment.length, access)) return false;
  }
  return true;
}

void SoftQueuePair::SkipSuppressed() {
  const uint64_t first = sends_.reaped.load(std::memory_order_relaxed);
  const uint64_t end = sends_.done.load(std::memory_order_acquire);
  uint64_t r = first;
  while (r != end && (sends_.at(r).flags & kSuppress) != 0 &&
         LoadStatus(sends_.at(r)) == static_cast<uint8_t>(Status::kSuccess)) {
    r++;
  }
  if (r != first) sends_.reaped.store(r, std::memory_order_release);
}

void SoftQueuePair::FillReceive(uint64_t position, const ReceiveRequest& request) {
  ReceiveEntry& entry = receives_.at(position);
  entry.id = request.id;
  entry.quiet = request.quiet;
  const uint64_t capacity = receives_.CopySegments(position, request.segments);
  entry.capacity = capacity > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(capacity);
}

PostResult SoftQueuePair::PostReceive(const ReceiveRequest& request) {
  if (request.segments.size() > receives_.max_segments()) [[unlikely]] {
    return PostResult::kTooManySegments;
  }
  bool room, held = false;
  {
    SpinLockHolder holder(&receive_lock_);
    room = receives_.HasRoom(request.segments.size());
    if (room && state_.load(std::memory_order_relaxed) != State::kError) [[likely]] {
      const uint64_t n = receives_.posted.load(std::memory_order_relaxed);
      FillReceive(n, request);
      receives_.posted.store(n + 1, std::memory_order_release);
      // Inside the lock: NoReceiveHere looks again under it after it has set the flag.
      held = held_.load(std::memory_order_relaxed);
      if (!held) [[likely]]
        return PostResult::kOk;
    }
  }
  if (held) {
    home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kArrival);
    return PostResult::kOk;
  }
  if (room) return PostReceiveInError(request);
  if (!MakeRoom(receives_, request.segments.size())) return PostResult::kQueueFull;
  return PostReceive(request);
}

// In whatever state it is by now.
PostResult SoftQueuePair::PostReceiveInError(const ReceiveRequest& request) {
  bool room;
  {
    PassLockHolder home(&home_.lock());
    SpinLockHolder holder(&receive_lock_);
    room = receives_.HasRoom(request.segments.size());
    if (room) {
      const uint64_t n = receives_.posted.load(std::memory_order_relaxed);
      FillReceive(n, request);
      if (state_.load(std::memory_order_relaxed) == State::kError) {
        ReceiveEntry& entry = receives_.at(n);
        entry.length = 0;
        entry.has_immediate = entry.solicited = false;
        entry.opcode = Opcode::kReceive;
        entry.status = Status::kFlushed;
        receives_.done.store(n + 1, std::memory_order_release);
      }
      receives_.posted.store(n + 1, std::memory_order_release);
    }
  }
  if (!room) return PostReceive(request);  // another thread took it
  home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kCompletion);
  return PostResult::kOk;
}

}  // namespace viaduct::verbs
