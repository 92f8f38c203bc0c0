// Posting.
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {

PostResult SoftQueuePair::PostSend(const SendRequest& request) {
  if (request.segments.size() > sends_.max_segments()) [[unlikely]] {
    return PostResult::kTooManySegments;
  }
  bool connected;
  {
    PassLockHolder holder(&send_lock_);
    if (sends_.Full()) [[unlikely]]
      return PostResult::kQueueFull;
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
    if (length > max_message_) [[unlikely]] {
      entry.length = 0;
      entry.flags |= kTooLong;
    }
    connected = state_.load(std::memory_order_relaxed) == State::kConnected;
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
  }
  // Its completion must be found.
  if (!hot_.load(std::memory_order_relaxed) || send_home_.HasSleepers()) {
    send_home_.MarkReady(attachments_[attachment_count_ - 1],
                         SoftCompletionQueue::News::kCompletion);
  }
  return PostResult::kOk;
}

SendEntry* SoftQueuePair::RefuseToEmit(SendEntry& entry, Status status) {
  FailSend(entry, status);
  return nullptr;
}

void SoftQueuePair::FillReceive(uint64_t position, const ReceiveRequest& request) {
  ReceiveEntry& entry = receives_.at(position);
  entry.id = request.id;
  const uint64_t capacity = receives_.CopySegments(position, request.segments);
  entry.capacity = capacity > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(capacity);
}

PostResult SoftQueuePair::PostReceive(const ReceiveRequest& request) {
  if (request.segments.size() > receives_.max_segments()) [[unlikely]] {
    return PostResult::kTooManySegments;
  }
  bool held;
  {
    SpinLockHolder holder(&receive_lock_);
    if (receives_.Full()) [[unlikely]]
      return PostResult::kQueueFull;
    if (state_.load(std::memory_order_relaxed) == State::kError) [[unlikely]] {
      held = false;
    } else {
      const uint64_t n = receives_.posted.load(std::memory_order_relaxed);
      FillReceive(n, request);
      receives_.posted.store(n + 1, std::memory_order_release);
      // Inside the lock: NoReceiveHere looks again under it after it has set the flag.
      held = held_.load(std::memory_order_relaxed);
      if (!held) [[likely]]
        return PostResult::kOk;
    }
  }
  if (!held) return PostReceiveInError(request);
  home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kArrival);
  return PostResult::kOk;
}

PostResult SoftQueuePair::PostReceiveInError(const ReceiveRequest& request) {
  {
    PassLockHolder home(&home_.lock());
    SpinLockHolder holder(&receive_lock_);
    if (receives_.Full()) return PostResult::kQueueFull;
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
  home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kCompletion);
  return PostResult::kOk;
}

}  // namespace viaduct::verbs
