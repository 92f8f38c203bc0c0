#include "dat/core/interface_adapter.h"

#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/core/connection_header.h"
#include "dat/core/connection_manager.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/handle_table.h"
#include "dat/core/memory_region.h"
#include "dat/core/notifier.h"
#include "verbs/base/callback_thread.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {

using verbs::MutexLock;

Error InterfaceAdapter::Open(const verbs::Address& address, Ref<InterfaceAdapter>* out,
                             const std::string& device) {
  verbs::StopCallbacksAtExit();
  std::shared_ptr<ConnectionManager> manager;
  if (Error error = ConnectionManager::Get(address, device, &manager); !error.ok()) return error;
  return Open(std::move(manager), out);
}

Error InterfaceAdapter::Open(std::shared_ptr<ConnectionManager> manager,
                             Ref<InterfaceAdapter>* out) {
  auto adapter = Ref<InterfaceAdapter>::Adopt(new InterfaceAdapter(std::move(manager)));
  if (HandleTable::Insert(adapter.get()) == nullptr) return OutOf(Resource::kMemory);
  *out = std::move(adapter);
  return Ok();
}

InterfaceAdapter::InterfaceAdapter(std::shared_ptr<ConnectionManager> manager)
    : Object(kType), manager_(std::move(manager)), context_(&manager_->context()) {}

InterfaceAdapter::~InterfaceAdapter() = default;

verbs::Deadline InterfaceAdapter::DeadlineAfter(verbs::Nanos duration) const {
  return verbs::Deadline::After(executor(), duration);
}

uint32_t InterfaceAdapter::max_private_data() const {
  constexpr uint32_t kOurs = kMaxHeaderBytes + kTrailerBytes;
  constexpr uint32_t kDatsLeast = 64;
  const uint32_t most = context_->attributes().max_private_data;
  return most >= kOurs + kDatsLeast ? most - kOurs : most;
}

Error InterfaceAdapter::WatchDevice(AdapterObserver* observer) {
  observer_ = observer;
  if (!context_->AddFailureSink(this)) return OutOf(Resource::kDevice);
  {
    MutexLock lock(&lock_);
    if (!closed_) return Ok();
  }
  // Close may have looked for the sink before it was there.
  context_->RemoveFailureSink(this);
  return InvalidHandle<InterfaceAdapter>();
}

void InterfaceAdapter::OnDeviceFailed() {
  PostAsync(EventType::kAsyncAdapterFailed, handle());
  if (observer_ != nullptr) observer_->OnAdapterFailed();
}

Error InterfaceAdapter::SetAsyncDispatcher(EventDispatcher& dispatcher, bool own) {
  MutexLock lock(&lock_);
  if (closed_) return InvalidHandle<InterfaceAdapter>();
  if (Error error = async_.Begin(&dispatcher); !error.ok()) return error;
  own_async_ = own;
  return Ok();
}

Ref<EventDispatcher> InterfaceAdapter::async_dispatcher() const {
  MutexLock lock(&lock_);
  return async_.ref();
}

EventDispatcher* InterfaceAdapter::FindAsyncDispatcher() const {
  MutexLock lock(&lock_);
  return async_.get();
}

bool InterfaceAdapter::IsAsyncDispatcher(const EventDispatcher& dispatcher) const {
  MutexLock lock(&lock_);
  return async_.get() == &dispatcher;
}

// Lets no exception escape: what the event reports has happened anyway.
void InterfaceAdapter::PostAsync(EventType type, Handle subject) try {
  counts_.AddShared(AdapterCount::kAsyncErrors);
  if (type == EventType::kAsyncEndpointBroken)
    counts_.AddShared(AdapterCount::kAsyncEndpointErrors);
  if (type == EventType::kAsyncOverflow) counts_.AddShared(AdapterCount::kAsyncOverflows);
  // A guard instead of a reference: a dequeue that reports an overflow is inside a guard already,
  // where it must not drop a reference, which may be the last one after an abrupt close.
  const verbs::EpochGuard guard;
  EventDispatcher* const dispatcher = FindAsyncDispatcher();
  if (dispatcher == nullptr) return;
  Event event;
  event.type = type;
  event.subject = subject;
  (void)dispatcher->Post(event);
} catch (const std::bad_alloc&) {  // by a thread's first guard
}

Error InterfaceAdapter::CheckRange(verbs::Key key, uint64_t address, uint64_t length) const {
  if (length == 0) return Ok();
  const Ref<MemoryRegion> region = FindRegion(key);
  return region && region->Holds(address, length) ? Ok() : InvalidParameter(2);
}

Ref<MemoryRegion> InterfaceAdapter::FindRegion(verbs::Key key) const {
  MutexLock lock(&lock_);
  const auto found = regions_.find(key);
  return found != regions_.end() ? Ref<MemoryRegion>::Share(found->second) : Ref<MemoryRegion>();
}

std::vector<Ref<Endpoint>> InterfaceAdapter::EndpointsOnSharedQueues() const {
  std::vector<Ref<Endpoint>> endpoints;
  MutexLock lock(&lock_);
  for (Object* child : children_) {
    if (child->type() != ObjectType::kEndpoint) continue;
    auto* endpoint = static_cast<Endpoint*>(child);
    if (endpoint->has_shared_receives()) endpoints.push_back(Ref<Endpoint>::Share(endpoint));
  }
  return endpoints;
}

Error InterfaceAdapter::AddChild(Object* object) {
  MutexLock lock(&lock_);
  if (closed_) return InvalidHandle<InterfaceAdapter>();
  // What may throw comes first.
  children_.insert(object);
  absl::Cleanup undo = [this, object]() ABSL_NO_THREAD_SAFETY_ANALYSIS { Forget(object); };
  if (object->type() == ObjectType::kMemoryRegion) {
    auto* region = static_cast<MemoryRegion*>(object);
    regions_.emplace(region->key(), region);
  }
  if (HandleTable::Insert(object) == nullptr) return OutOf(Resource::kMemory);
  ++made_[static_cast<size_t>(object->type())];
  std::move(undo).Cancel();
  return Ok();
}

void InterfaceAdapter::RemoveChild(Object* object) {
  MutexLock lock(&lock_);
  freed_[static_cast<size_t>(object->type())] += Forget(object);
}

size_t InterfaceAdapter::Forget(Object* object) {
  if (object->type() == ObjectType::kMemoryRegion) {
    const auto found = regions_.find(static_cast<MemoryRegion*>(object)->key());
    if (found != regions_.end() && found->second == object) regions_.erase(found);
  }
  return children_.erase(object);
}

uint64_t InterfaceAdapter::CountOfMade(ObjectType type, bool clear) {
  MutexLock lock(&lock_);
  uint64_t& count = made_[static_cast<size_t>(type)];
  return clear ? std::exchange(count, 0) : count;
}

uint64_t InterfaceAdapter::CountOfFreed(ObjectType type, bool clear) {
  MutexLock lock(&lock_);
  uint64_t& count = freed_[static_cast<size_t>(type)];
  return clear ? std::exchange(count, 0) : count;
}

void InterfaceAdapter::CountConnections(bool start) {
  if (start) {
    const auto totals = counts_.Read();
    for (auto what = static_cast<int>(AdapterCount::kRequestsSent);
         what <= static_cast<int>(AdapterCount::kConnectionErrors); ++what) {
      counts_.BeginAnew(totals, static_cast<AdapterCount>(what));
    }
  }
  counts_connections_.store(start);
}

bool InterfaceAdapter::HasChildren() const { return children_.size() > (own_async_ ? 1u : 0u); }

bool InterfaceAdapter::in_use() const {
  MutexLock lock(&lock_);
  return HasChildren();
}

Error InterfaceAdapter::Close(CloseMode mode) {
  // A child may be a reserved point whose request is here already: the executor is about to end it.
  if (mode == CloseMode::kGraceful && in_use()) executor().Drain();
  Use<EventDispatcher> async;
  {
    MutexLock lock(&lock_);
    if (closed_) return InvalidHandle<InterfaceAdapter>();
    if (mode == CloseMode::kGraceful && HasChildren()) {
      return InvalidState(StateDetail::kAdapterInUse);
    }
    closed_ = true;
    async = std::move(async_);
  }
  context_->RemoveFailureSink(this);
  async.End();
  HandleTable::Erase(handle(), kType);
  DestroyChildren();
  DropReference();
  return Ok();
}

// A notifier's end waits for its agent, which may wait at another notifier, or for who waits there.
void InterfaceAdapter::ReleaseWaiters() {
  MutexLock lock(&lock_);
  for (Object* child : children_) {
    if (child->type() == ObjectType::kNotifier) static_cast<Notifier*>(child)->ReleaseWaiters();
  }
}

// Users go before what they use, so that every object is destroyed while its parts are alive.
void InterfaceAdapter::DestroyChildren() {
  constexpr ObjectType kOrder[] = {
      ObjectType::kPublicServicePoint, ObjectType::kReservedServicePoint,
      ObjectType::kCommonServicePoint, ObjectType::kConnectionRequest,
      ObjectType::kEndpoint,           ObjectType::kSharedReceiveQueue,
      ObjectType::kMemoryWindow,       ObjectType::kMemoryRegion,
      ObjectType::kProtectionZone,     ObjectType::kEventDispatcher,
      ObjectType::kNotifier,
  };
  // A fixed array, since a close must not need memory.
  std::array<Ref<Object>, 64> doomed;
  for (ObjectType type : kOrder) {
    if (type == ObjectType::kNotifier) ReleaseWaiters();
    size_t count;
    do {
      count = 0;
      {
        MutexLock lock(&lock_);
        for (auto child = children_.begin(); child != children_.end() && count < doomed.size();) {
          const auto here = child++;
          if ((*here)->type() != type) continue;
          doomed[count++] = Ref<Object>::Share(*here);
          children_.erase(here);
          ++freed_[static_cast<size_t>(type)];
        }
      }
      for (size_t i = 0; i < count; ++i) {
        doomed[i]->Destroy();
        doomed[i] = {};
      }
    } while (count == doomed.size());
  }
}

}  // namespace viaduct::core
