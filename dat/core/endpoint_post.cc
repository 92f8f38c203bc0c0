// An endpoint's data path: requests on their way to the device.
#include "dat/core/discard_queue.h"
#include "dat/core/endpoint.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {

using verbs::MutexLock;

namespace {

uint64_t BytesOf(const verbs::SendRequest& request) {
  uint64_t bytes = 0;
  for (const verbs::Segment& segment : request.segments) bytes += segment.length;
  return bytes;
}

}  // namespace

Error Endpoint::FromPost(verbs::PostResult result) const {
  switch (result) {
    case verbs::PostResult::kOk:
      return Ok();
    case verbs::PostResult::kTooManySegments:
      return InvalidParameter(2);
    case verbs::PostResult::kNoKey:
      return OutOf(Resource::kRegion);
    case verbs::PostResult::kQueueFull:
      break;
  }
  return OutOf(Resource::kEndpoint);
}

Error Endpoint::PostSend(const verbs::SendRequest& request) {
  if (Next(state(), EndpointInput::kPostRequest).verdict == Verdict::kInvalid) {
    return Error(Code::kInvalidState, static_cast<uint8_t>(state()));
  }
  const uint32_t most = max_message_bytes_.load(std::memory_order_relaxed);
  if (most != 0 && request.opcode == verbs::Opcode::kSend && BytesOf(request) > most) {
    return Code::kLengthError;
  }
  return PostSendAnyState(request);
}

Error Endpoint::PostSendAnyState(const verbs::SendRequest& request) {
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  if (pair == nullptr) return InvalidState(StateDetail::kEndpointZone);
  verbs::PostResult result = pair->PostSend(request);
  if (result == verbs::PostResult::kQueueFull && discard_ != nullptr) {
    discard_->Empty();
    result = pair->PostSend(request);
  }
  return FromPost(result);
}

Error Endpoint::PostAtomic(const verbs::AtomicRequest& request) {
  if (Next(state(), EndpointInput::kPostRequest).verdict == Verdict::kInvalid) {
    return Error(Code::kInvalidState, static_cast<uint8_t>(state()));
  }
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  if (pair == nullptr) return InvalidState(StateDetail::kEndpointZone);
  verbs::PostResult result = pair->PostAtomic(request);
  if (result == verbs::PostResult::kQueueFull && discard_ != nullptr) {
    discard_->Empty();
    result = pair->PostAtomic(request);
  }
  return FromPost(result);
}

Error Endpoint::PostBind(const verbs::BindRequest& request, Handle window, verbs::Key* key) {
  if (Next(state(), EndpointInput::kPostRequest).verdict == Verdict::kInvalid) {
    return Error(Code::kInvalidState, static_cast<uint8_t>(state()));
  }
  const uint32_t outstanding = attributes().max_sends;
  MutexLock lock(&bind_lock_);
  verbs::EpochGuard guard;
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  if (pair == nullptr) return InvalidState(StateDetail::kEndpointZone);
  verbs::BindRequest numbered = request;
  numbered.id = binds_.Put({window, request.id}, outstanding + 1);
  verbs::PostResult result = pair->PostBind(numbered, key);
  if (result == verbs::PostResult::kQueueFull && discard_ != nullptr) {
    discard_->Empty();
    result = pair->PostBind(numbered, key);
  }
  if (result != verbs::PostResult::kOk) binds_.DropLast();
  return FromPost(result);
}

Error Endpoint::PostReceive(const verbs::ReceiveRequest& request) {
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  if (pair == nullptr) return InvalidState(StateDetail::kEndpointZone);
  verbs::PostResult result = pair->PostReceive(request);
  if (result == verbs::PostResult::kQueueFull && discard_ != nullptr) {
    discard_->Empty();
    result = pair->PostReceive(request);
  }
  return FromPost(result);
}

}  // namespace viaduct::core
