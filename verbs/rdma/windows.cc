// The windows of verbs/rdma/memory.h.
#include <algorithm>
#include <cerrno>
#include <utility>

#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/memory.h"
#include "verbs/rdma/registration.h"

namespace viaduct::verbs::rdma {

Window::~Window() { memory_.Unbind(*this); }

// A window of the device knows one domain, and counts addresses as its region does; only those of
// type 2 can count from 0 instead.
bool Memory::FitsDevice(const Window& window, const Region& region, const DomainCore& domain,
                        const BindRequest& request) {
  if (!region.has_windows_ || region.own_.domain.get() != &domain ||
      window.domain_.get() != &domain || region.base_ != AddressBase::kVirtual) {
    return false;
  }
  if (window.scope_ == WindowScope::kQueuePair) return domain.windows.of_pair;
  return domain.windows.of_domain && request.base == AddressBase::kVirtual;
}

void Memory::Unbind(Window& window) {
  MutexLock lock(&mutex_);
  UnbindLocked(window);
}

void Memory::Unbind(MemoryWindow& window, Key* key) {
  Window& bound = static_cast<Window&>(window);
  MutexLock lock(&mutex_);
  if (bound.region_ != nullptr && bound.key_ == *key) UnbindLocked(bound);
  *key = 0;
}

void Memory::UnbindLocked(Window& window) {
  window.handle_.reset();
  if (window.region_ == nullptr) return;
  if (window.mapped_) map_.Remove(window.key_);
  if (window.registration_ != nullptr) ibv_dereg_mr(window.registration_);
  window.registration_ = nullptr;
  window.registered_in_.reset();
  if (window.pair_place_.empty()) window.pair_place_ = on_pairs_.extract(&window);
  window.place_ = window.region_->windows_.extract(&window);
  window.region_ = nullptr;
}

void Memory::BindDone(const ibv_qp* pair) {
  MutexLock lock(&mutex_);
  const auto oldest = std::find_if(queued_.begin(), queued_.end(),
                                   [pair](const QueuedBind& bind) { return bind.pair == pair; });
  if (oldest != queued_.end()) queued_.erase(oldest);
}

void Memory::EndWindowsOf(const ibv_qp* pair) {
  MutexLock lock(&mutex_);
  for (auto at = on_pairs_.begin(); at != on_pairs_.end();) {
    Window& window = **at++;
    if (window.pair_ == pair) UnbindLocked(window);
  }
  queued_.remove_if([pair](const QueuedBind& bind) { return bind.pair == pair; });
}

// If a region ends while a bind to it is in the queue, that bind is refused.
void Memory::EndWindowsOf(Region& region) {
  while (!region.windows_.empty()) UnbindLocked(**region.windows_.begin());
  for (QueuedBind& bind : queued_) {
    if (bind.region == &region) bind.window.reset();
  }
}

Region* Memory::Bindable(const DomainCore& domain, const BindRequest& request, RegionEntry* entry) {
  uint32_t needed = 0;
  if ((request.access & (kRemoteRead | kRemoteAtomic)) != 0) needed |= kLocalRead;
  if ((request.access & (kRemoteWrite | kRemoteAtomic)) != 0) needed |= kLocalWrite;
  const auto found = regions_.find(request.region);
  if (found == regions_.end() || !map_.Find(request.region, entry) ||
      !entry->Holds(request.address, request.length, needed) ||
      !found->second->own_.domain->Matches(domain) ||
      !static_cast<Window*>(request.window)->domain_->Matches(domain)) {
    return nullptr;
  }
  return found->second;
}

void Memory::NoteBound(Window& window, Region& region, Key key) {
  window.key_ = key;
  window.region_ = &region;
  region.windows_.insert(std::move(window.place_));
}

Memory::BindStep Memory::Bind(const DomainCore& domain, const BindRequest& request, Key* key) {
  Window& window = static_cast<Window&>(*request.window);
  MutexLock lock(&mutex_);
  *key = 0;
  if (request.length == 0) {
    UnbindLocked(window);
    return BindStep::kDone;
  }
  RegionEntry entry;
  Region* const region = Bindable(domain, request, &entry);
  if (region == nullptr) {
    UnbindLocked(window);
    return BindStep::kRefused;
  }
  if (FitsDevice(window, *region, domain, request)) {
    ibv_mw* handle = nullptr;
    const bool binds = request.length <= domain.windows.longest &&
                       (request.base == AddressBase::kVirtual || domain.windows.from_zero);
    if (binds) {
      handle = ibv_alloc_mw(
          domain.handle, window.scope_ == WindowScope::kQueuePair ? IBV_MW_TYPE_2 : IBV_MW_TYPE_1);
    }
    if (handle != nullptr) {
      std::shared_ptr<ibv_mw> kept(handle,
                                   [domain = window.domain_](ibv_mw* it) { ibv_dealloc_mw(it); });
      if (window.queue_place_.empty()) window.queue_place_.emplace_back();
      UnbindLocked(window);
      window.handle_ = std::move(kept);
      return BindStep::kDevice;
    }
    // A registration instead would be valid on every pair, and the peer could not end it.
    if (window.scope_ == WindowScope::kQueuePair) {
      if (binds) {
        LogErrno(errno, "ibv_alloc_mw");
      } else {
        Log(LogLevel::kError, "the library of this device cannot bind windows of ", request.length,
            request.base == AddressBase::kZero ? " bytes that count from 0" : " bytes");
      }
      return BindStep::kNoKey;
    }
  }
  if (request.base == AddressBase::kZero && !domain.takes_offsets) return BindStep::kNoKey;
  unsigned char* const memory = entry.MemoryAt(request.address);
  const uint64_t from = request.base == AddressBase::kZero ? 0 : reinterpret_cast<uint64_t>(memory);
  ibv_mr* const handle = RegisterWithKey(domain.handle, memory, request.length,
                                         AccessFlags(request.access), from, map_, key);
  if (handle == nullptr) {
    LogErrno(errno, "bind a window");
    *key = 0;
    return BindStep::kNoKey;
  }
  entry.key = *key;
  entry.access = request.access;  // the peer's rights: as a local key it opens nothing
  entry.local_key = entry.sink_key = handle->lkey;
  entry.domain = &domain;
  entry.memory = reinterpret_cast<uint64_t>(memory);
  entry.address = from;
  entry.length = request.length;
  // In a full map the old binding makes room for the new one. An old binding that is not in the map
  // stays if there is no room.
  const bool was_mapped = window.mapped_;
  if (was_mapped) UnbindLocked(window);
  if (!map_.Put(entry)) {
    ibv_dereg_mr(handle);
    *key = 0;
    return BindStep::kNoKey;
  }
  if (!was_mapped) UnbindLocked(window);
  window.registration_ = handle;
  window.registered_in_ = domain.shared_from_this();
  window.mapped_ = true;
  NoteBound(window, *region, *key);
  return BindStep::kDone;
}

bool Memory::BindOnDevice(const DomainCore& domain, const ibv_qp* pair, const BindRequest& request,
                          absl::FunctionRef<Key(ibv_mw*, const ibv_mw_bind_info&)> post, Key* key) {
  Window& window = static_cast<Window&>(*request.window);
  MutexLock lock(&mutex_);
  RegionEntry entry;
  Region* const region = Bindable(domain, request, &entry);
  if (region == nullptr || window.handle_ == nullptr || window.region_ != nullptr) return false;
  ibv_mw_bind_info range = {};
  range.mr = region->own_.handle;
  range.addr = request.address;
  range.length = request.length;
  range.mw_access_flags = static_cast<unsigned>(RemoteFlags(request.access));
  if (request.base == AddressBase::kZero) range.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
  *key = post(window.handle_.get(), range);
  if (*key == 0) return true;
  window.queue_place_.front() = {pair, region, window.handle_};
  queued_.splice(queued_.end(), window.queue_place_);
  NoteBound(window, *region, *key);
  // A region that was changed keeps its first key here, which the device may give out again.
  RegionEntry of_another;
  window.mapped_ = false;
  if (request.base == AddressBase::kVirtual && !map_.Find(*key, &of_another)) {
    // A read of ours may then name the window as its sink, which is the region's memory; not if the
    // map is full, and only where addresses count as the region's do.
    entry.key = *key;
    entry.access = request.access;
    entry.memory = reinterpret_cast<uint64_t>(entry.MemoryAt(request.address));
    entry.address = request.address;
    entry.length = request.length;
    window.mapped_ = map_.Put(entry);
  }
  if (window.scope_ == WindowScope::kQueuePair) {
    window.pair_ = pair;
    on_pairs_.insert(std::move(window.pair_place_));
  }
  return true;
}

}  // namespace viaduct::verbs::rdma
