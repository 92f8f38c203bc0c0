// Posting.
#include "absl/base/attributes.h"
#include "verbs/soft/context.h"
#include "verbs/soft/prefetch.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {
namespace {

// Reads a count that polls decrement, on behalf of a request that has been posted. It is a
// read-modify-write, as the decrements are: either it comes after the last one and finds 0, or the
// poll that makes the last one sees the request and pumps.
uint32_t CountAfterPost(std::atomic<uint32_t>& count) {
  return count.fetch_add(0, std::memory_order_seq_cst);
}

}  // namespace

template <typename Entry>
bool SoftQueuePair::MakeRoom(WorkQueue<Entry>& queue, size_t segments) {
  LockAll();
  SkipSuppressed();
  const bool made = queue.MakeRoom(segments);
  UnlockAll();
  return made;
}

PostResult SoftQueuePair::PostSendWhenFull(const SendRequest& request) {
  if (!MakeRoom(sends_, request.segments.size())) return PostResult::kQueueFull;
  return PostSend(request);
}

inline bool SoftQueuePair::Enqueue(SendEntry& entry, uint64_t position) {
  // A thread that sees kConnected sees the link, too.
  const bool connected = state_.load(std::memory_order_acquire) == State::kConnected;
  const bool live = connected && !draining();
  __atomic_store_n(&entry.status, live ? kPending : static_cast<uint8_t>(Status::kFlushed),
                   __ATOMIC_RELEASE);
  sends_.posted.store(position + 1, std::memory_order_release);
  // While draining, NextToEmit skips the entry in its turn.
  if (!connected) sends_.done.store(position + 1, std::memory_order_release);
  return live;
}

inline void SoftQueuePair::TellSent() {
  if (!hot_.load(std::memory_order_relaxed) || send_home_.HasSleepers()) {
    send_home_.MarkReady(attachments_[attachment_count_ - 1],
                         SoftCompletionQueue::News::kCompletion);
  }
}

ABSL_ATTRIBUTE_ALWAYS_INLINE inline SoftQueuePair::Taken SoftQueuePair::EnqueueSend(
    const SendRequest& request) {
  PassLockHolder holder(&send_lock_);
  if (!sends_.HasRoom(request.segments.size())) [[unlikely]]
    return Taken::kNoRoom;
  const uint64_t n = sends_.posted.load(std::memory_order_relaxed);
  SendEntry& entry = sends_.at(n);
  if (!TakeIdOf(request, &entry.id)) return Taken::kNoId;
  entry.remote_address = request.remote_address;
  entry.remote_key = request.remote_key;
  entry.immediate = request.immediate;
  SetOpcode(entry, request.opcode);
  entry.flags = request.flags;
  entry.offset = 0;
  if (request.opcode == Opcode::kSend && immediate_form() == ImmediateForm::kNone) {
    entry.flags &= ~kImmediate;
  }
  const uint64_t length = sends_.CopySegments(n, request.segments);
  entry.length = static_cast<uint32_t>(length);
  if (request.verdict != Status::kSuccess) [[unlikely]] {
    FailInOrder(entry, request.verdict);
  } else if (IsTooLong(request.opcode, length)) [[unlikely]] {
    FailInOrder(entry, Status::kLocalLength);
  }
  if (Enqueue(entry, n)) [[likely]]
    PumpLink(*link_.load(std::memory_order_relaxed));
  return Taken::kYes;
}

PostResult SoftQueuePair::PostSend(const SendRequest& request) {
  if (request.segments.size() > sends_.max_segments()) [[unlikely]] {
    return PostResult::kTooManySegments;
  }
  if (const void* line = next_line_.load(std::memory_order_relaxed)) PrefetchForStore(line);
  const Taken taken = EnqueueSend(request);
  if (taken == Taken::kNoRoom) [[unlikely]]
    return PostSendWhenFull(request);
  if (taken == Taken::kNoId) [[unlikely]]
    return PostResult::kQueueFull;
  TellSent();
  return PostResult::kOk;
}

bool SoftQueuePair::EnqueueAtomic(const AtomicRequest& request) {
  PassLockHolder holder(&send_lock_);
  if (!sends_.HasRoom(2)) return false;
  const uint64_t n = sends_.posted.load(std::memory_order_relaxed);
  SendEntry& entry = sends_.at(n);
  entry.id = request.id;
  entry.remote_address = request.remote_address;
  entry.remote_key = request.remote_key;
  entry.immediate = 0;
  SetOpcode(entry, request.opcode);
  entry.flags = request.flags;
  entry.offset = 0;
  entry.length = request.result.length;
  entry.segment_count = 1;
  entry.first = request.result;
  sends_.SetOperands(n, {request.compare_add, request.swap});
  if (request.verdict != Status::kSuccess) {
    FailInOrder(entry, request.verdict);
  } else if (request.result.length != sizeof(uint64_t)) {
    FailInOrder(entry, Status::kLocalLength);
  }
  if (Enqueue(entry, n)) PumpLink(*link_.load(std::memory_order_relaxed));
  return true;
}

PostResult SoftQueuePair::PostAtomic(const AtomicRequest& request) {
  while (!EnqueueAtomic(request)) {
    if (!MakeRoom(sends_, 2)) return PostResult::kQueueFull;
  }
  TellSent();
  return PostResult::kOk;
}

bool SoftQueuePair::EnqueueBind(const BindRequest& request, Key key, Posted* posted) {
  auto& window = *static_cast<SoftWindow*>(request.window);
  PassLockHolder holder(&send_lock_);
  if (!sends_.HasRoom(1)) return false;
  posted->position = sends_.posted.load(std::memory_order_relaxed);
  SendEntry& entry = sends_.at(posted->position);
  entry.id = request.id;
  entry.remote_address = request.length;
  entry.remote_key = key;
  entry.immediate = request.access;
  SetOpcode(entry, Opcode::kBind);
  entry.flags = request.flags | kWithdrawing;
  entry.offset = 0;
  entry.length = 0;
  entry.segment_count = 0;
  entry.first = {request.address, request.region, static_cast<uint32_t>(request.base)};
  entry.cookie = window.scope() == WindowScope::kQueuePair;
  if (request.verdict != Status::kSuccess) {
    FailInOrder(entry, request.verdict);
  } else if (window.domain() != domain_) {
    FailInOrder(entry, Status::kLocalProtection);
  }
  posted->live = Enqueue(entry, posted->position);
  if (posted->live) posted->old_key = window.Replace(key);
  return true;
}

PostResult SoftQueuePair::PostBind(const BindRequest& request, Key* key) {
  Key fresh = 0;
  if (request.length != 0) {
    absl::StatusOr<Key> reserved = regions_.ReserveWindow();
    if (!reserved.ok()) return PostResult::kNoKey;
    fresh = *reserved;
  }
  Posted posted;
  while (!EnqueueBind(request, fresh, &posted)) {
    if (MakeRoom(sends_, 1)) continue;
    regions_.Deregister(fresh);
    return PostResult::kQueueFull;
  }
  // Waits for everybody who uses the old key, so no lock may be held.
  regions_.Deregister(posted.live ? posted.old_key : fresh);
  if (posted.live) {
    *key = fresh;
    PassLockHolder holder(&send_lock_);
    // Otherwise the bind has been flushed, and its slot may have been reused.
    if (posted.position >= sends_.done.load(std::memory_order_relaxed)) {
      sends_.at(posted.position).flags &= static_cast<uint16_t>(~kWithdrawing);
      PumpLink(*link_.load(std::memory_order_relaxed));
      CheckDrained();
    }
  }
  TellSent();
  return PostResult::kOk;
}

bool SoftQueuePair::Bind(const SendEntry& entry) {
  if (entry.remote_address == 0) return true;  // the window's key has ended already
  WindowBinding binding;
  binding.region = entry.first.key;
  binding.address = entry.first.address;
  binding.length = entry.remote_address;
  binding.access = entry.immediate;
  binding.base = static_cast<AddressBase>(entry.first.length);
  binding.domain = domain_;
  binding.owner = entry.cookie != 0 ? own_domain_ : domain_;
  return regions_.Bind(entry.remote_key, binding);
}

void SoftQueuePair::FailInOrder(SendEntry& entry, Status status) {
  entry.flags |= kFailsInOrder;
  entry.cookie = static_cast<uint64_t>(status);
}

uint32_t SoftQueuePair::ReadsInTheWay() {
  return reads_out_.load(std::memory_order_acquire) == 0 ? 0 : CountAfterPost(reads_out_);
}

void SoftQueuePair::CheckBeforeEmission(uint64_t n, SendEntry& entry) {
  const bool fetch = IsFetch(entry.opcode);
  const uint32_t access = (entry.flags & kRemoteSink) != 0 ? kRemoteWrite
                          : fetch                          ? kLocalWrite
                                                           : kLocalRead;
  if (fetch && reads_out_limit_ == 0) {
    FailInOrder(entry, Status::kRemoteOperation);
  } else if (no_receive_ == NoReceive::kDrop && !CheckAll(n, access)) {
    // With kDrop a request fails alone, so no part of a wrong one may be sent.
    FailInOrder(entry, Status::kLocalProtection);
  }
}

void SoftQueuePair::Retire(uint64_t n, SendEntry& entry, Status status) {
  SetStatus(entry, status);
  sends_.done.store(n + 1, std::memory_order_release);
}

bool SoftQueuePair::RetireFailing(uint64_t n, SendEntry& entry) {
  if (CountAfterPost(incomplete_) != 0) return false;
  const Status status = static_cast<Status>(entry.cookie);
  // If part of the message was sent, the peer waits for the rest.
  if (no_receive_ != NoReceive::kDrop || entry.offset != 0) {
    FailSend(n, status);
    return false;
  }
  Retire(n, entry, status);
  return true;
}

SendEntry* SoftQueuePair::NextToEmitSlow() {
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
    if ((entry.flags & kWithdrawing) != 0) return nullptr;
    const bool fence = (entry.flags & kFence) != 0;
    if (entry.opcode == Opcode::kBind && (entry.flags & kFailsInOrder) == 0) {
      if (fence && ReadsInTheWay() != 0) return nullptr;
      if (Bind(entry)) {
        Retire(n, entry, Status::kSuccess);
        continue;
      }
      FailInOrder(entry, Status::kLocalProtection);
    }
    if ((entry.flags & kFailsInOrder) == 0 && entry.offset == 0) CheckBeforeEmission(n, entry);
    if ((entry.flags & kFailsInOrder) != 0) {
      if (!RetireFailing(n, entry)) return nullptr;
      continue;
    }
    if (fence && ReadsInTheWay() != 0) return nullptr;
    if (IsFetch(entry.opcode) && ReadsInTheWay() >= reads_out_limit_) return nullptr;
    return &entry;
  }
}

bool SoftQueuePair::CheckAll(uint64_t position, uint32_t access) const {
  for (const Segment& segment : sends_.segments(position)) {
    if (segment.length != 0 &&
        Resolve(segment.key, segment.address, segment.length, access) == nullptr) {
      return false;
    }
  }
  return true;
}

void SoftQueuePair::SkipSuppressed() {
  const uint64_t first = sends_.reaped.load(std::memory_order_relaxed);
  const uint64_t end = sends_.done.load(std::memory_order_acquire);
  uint64_t r = first;
  while (r != end && (sends_.at(r).flags & kSuppress) != 0 &&
         StatusToReap(r) == static_cast<uint8_t>(Status::kSuccess)) {
    r++;
  }
  if (r != first) sends_.reaped.store(r, std::memory_order_release);
}

bool SoftQueuePair::FillReceive(uint64_t position, const ReceiveRequest& request) {
  ReceiveEntry& entry = receives_.at(position);
  if (!TakeIdOf(request, &entry.id)) return false;
  entry.quiet = request.quiet;
  const uint64_t capacity = receives_.CopySegments(position, request.segments);
  entry.capacity = capacity > UINT32_MAX ? UINT32_MAX : static_cast<uint32_t>(capacity);
  if (request.segments.empty() && request.verdict != Status::kSuccess) [[unlikely]] {
    SetVerdict(entry, request.verdict);
  }
  return true;
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
      if (!FillReceive(n, request)) return PostResult::kQueueFull;
      receives_.posted.store(n + 1, std::memory_order_release);
      // Under the lock: NoReceiveHere checks again under it after it has set the flag.
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

// The pair may have left Error by now.
PostResult SoftQueuePair::PostReceiveInError(const ReceiveRequest& request) {
  bool room;
  {
    PassLockHolder home(&home_.lock());
    SpinLockHolder holder(&receive_lock_);
    room = receives_.HasRoom(request.segments.size());
    if (room) {
      const uint64_t n = receives_.posted.load(std::memory_order_relaxed);
      if (!FillReceive(n, request)) return PostResult::kQueueFull;
      const bool flushed = state_.load(std::memory_order_relaxed) == State::kError;
      if (flushed) SetFlushed(receives_.at(n));
      receives_.posted.store(n + 1, std::memory_order_release);
      if (flushed) receives_.done.store(n + 1, std::memory_order_release);
    }
  }
  if (!room) return PostReceive(request);  // another thread took the room
  home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kCompletion);
  return PostResult::kOk;
}

}  // namespace viaduct::verbs
