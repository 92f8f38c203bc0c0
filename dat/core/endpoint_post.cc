// An endpoint's data path: requests on their way to the device.
#include "dat/core/discard_queue.h"
#include "dat/core/endpoint.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {

using verbs::MutexLock;

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

bool Endpoint::EmptyDiscarded() {
  DiscardQueue* const discarded = post_discard_.load(std::memory_order_acquire);
  if (discarded == nullptr) return false;
  discarded->Empty();
  return true;
}

Error Endpoint::PostAtomic(const verbs::AtomicRequest& request) {
  if (Error error = Check(EndpointInput::kPostRequest); !error.ok()) return error;
  return Post([&](verbs::QueuePair& pair) { return pair.PostAtomic(request); });
}

Error Endpoint::PostBind(const verbs::BindRequest& request, Handle window, verbs::Key* key) {
  if (Error error = Check(EndpointInput::kPostRequest); !error.ok()) return error;
  // Requests in the device's queue, requests whose completions were polled but are not events yet,
  // and this one, which may find no place in the queue.
  const uint32_t outstanding =
      most_sends_.load(std::memory_order_relaxed) + EventDispatcher::kBatch + 1;
  MutexLock lock(&bind_lock_);
  verbs::EpochGuard guard;
  verbs::BindRequest numbered = request;
  numbered.id = binds_.Put({window, request.id}, outstanding);
  const Error error = Post([&](verbs::QueuePair& pair) { return pair.PostBind(numbered, key); });
  if (!error.ok()) binds_.DropLast();
  return error;
}

}  // namespace viaduct::core
