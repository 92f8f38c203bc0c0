#include "verbs/rdma/memory.h"

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "verbs/base/cancellation.h"
#include "verbs/base/epoch.h"
#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/registration.h"

namespace viaduct::verbs::rdma {
namespace {

// Lets `make` register memory with the ibv_access_flags of `access`, and so that the device's
// windows may be bound to it. To the kernel that is a right to write, so read-only memory does
// without.
ibv_mr* RegisterForWindows(const DomainCore& domain, uint32_t access, bool* has_windows,
                           absl::FunctionRef<ibv_mr*(int flags)> make) {
  const int flags = AccessFlags(access);
  *has_windows = domain.windows.of_domain || domain.windows.of_pair;
  if (*has_windows) {
    ibv_mr* const handle = make(flags | IBV_ACCESS_MW_BIND);
    if (handle != nullptr || errno != EFAULT || (flags & IBV_ACCESS_LOCAL_WRITE) != 0) {
      return handle;
    }
    *has_windows = false;
  }
  return make(flags);
}

// With these rights memory is pinned so that it can be written.
bool PinsForWriting(uint32_t access, bool has_windows) {
  return has_windows || (AccessFlags(access) & IBV_ACCESS_LOCAL_WRITE) != 0;
}

// EFAULT: there is no such memory. EINVAL may mean a length that no device takes.
absl::Status NotRegistered(int error) {
  return error == EFAULT ? absl::InvalidArgumentError("no such memory")
                         : ErrnoStatus(error, "register memory");
}

}  // namespace

bool DomainCore::Matches(const DomainCore& other) const {
  return this == &other || wildcard || other.wildcard;
}

Domain::~Domain() { memory_.EndGuestsOf(*core_); }

DomainCore::~DomainCore() {
  bounces_.reset();
  confirmation_.reset();
  ibv_dealloc_pd(handle);
}

// ------------------------------------------------------------------------------------- regions

absl::StatusOr<std::unique_ptr<Region>> Memory::Register(std::shared_ptr<DomainCore> domain,
                                                         void* address, size_t length,
                                                         uint32_t access, AddressBase base) {
  if (base == AddressBase::kZero && !domain->takes_offsets) {
    return absl::ResourceExhaustedError("no addresses that count from 0 here");
  }
  // The kernel's answer to this depends on its limits.
  const auto start = reinterpret_cast<uintptr_t>(address);
  if (start + length < start) return absl::InvalidArgumentError("no such memory");
  std::unique_ptr<Region> region(new Region(*this, address, length, base));
  region->access_ = access;
  const uint64_t from = base == AddressBase::kZero ? 0 : reinterpret_cast<uint64_t>(address);
  ibv_mr* const handle = RegisterForWindows(*domain, access, &region->has_windows_, [&](int flags) {
    return RegisterWithKey(domain->handle, address, length, flags, from, map_, &region->key_);
  });
  if (handle == nullptr) {
    region->key_ = 0;
    return NotRegistered(errno);
  }
  region->own_ = {std::move(domain), handle};
  region->writable_ = PinsForWriting(access, region->has_windows_);
  MutexLock lock(&mutex_);
  if (!map_.Put(region->Entry())) {
    ibv_dereg_mr(handle);
    region->key_ = 0;
    return absl::ResourceExhaustedError("too many regions");
  }
  regions_[region->key_] = region.get();
  return region;
}

RegionEntry Region::Entry() const {
  RegionEntry entry;
  entry.key = key_;
  entry.access = access_;
  entry.local_key = own_.handle->lkey;
  if ((access_ & kRemoteWrite) != 0) {
    entry.sink_key = entry.local_key;
  } else if (const Registration* const sink = Other(*own_.domain, LocalUse::kSink)) {
    entry.sink_key = sink->handle->lkey;
  }
  entry.domain = own_.domain.get();
  entry.memory = reinterpret_cast<uint64_t>(address_);
  entry.address = base_ == AddressBase::kZero ? 0 : entry.memory;
  entry.length = length_;
  return entry;
}

const Region::Registration* Region::Other(const DomainCore& domain, LocalUse use) const {
  for (const Registration& other : others_) {
    if (other.domain.get() == &domain && other.use == use) return &other;
  }
  return nullptr;
}

Region::~Region() {
  if (key_ == 0) return;
  memory_.Forget(*this);
  EpochSynchronize();  // copies of our own under way
}

void Memory::Forget(Region& region) {
  MutexLock lock(&mutex_);
  map_.Remove(region.key_);
  regions_.erase(region.key_);
  EndWindowsOf(region);
  ibv_dereg_mr(region.own_.handle);
  for (Region::Registration& other : region.others_) ibv_dereg_mr(other.handle);
}

// Where the driver can change a registration in place (mlx4, mlx5, hns), it keeps its keys, and
// peers keep their access. Elsewhere a new registration is put behind the same local key, unless
// nothing changes, and peers that hold the remote key lose their access.
absl::Status Region::Modify(ProtectionDomain& domain, uint32_t access) {
  const std::shared_ptr<DomainCore>& core = static_cast<Domain&>(domain).core();
  {
    MutexLock lock(&memory_.mutex_);
    if (own_.domain == core && access_ == access && !suspect_) return absl::OkStatus();
    std::vector<Registration> ended;
    ended.reserve(1 + others_.size());
    if (!ChangeInPlace(core, access)) {
      if (absl::Status status = RegisterAnew(core, access, &ended); !status.ok()) return status;
    }
    ended.insert(ended.end(), others_.begin(), others_.end());
    others_.clear();
    memory_.EndWindowsOf(*this);
    access_ = access;
    memory_.map_.Put(Entry());
    // Posters meet the new registration by now.
    for (const Registration& registration : ended) ibv_dereg_mr(registration.handle);
  }
  EpochSynchronize();  // copies of our own under way
  return absl::OkStatus();
}

bool Region::ChangeInPlace(const std::shared_ptr<DomainCore>& domain, uint32_t access) {
  // Linux's mlx5 and hns allow to write what is pinned to be read only, and mlx4 loses what it
  // finds to be so.
  if (PinsForWriting(access, has_windows_) && !writable_) return false;
  int changes = IBV_REREG_MR_CHANGE_ACCESS;
  if (own_.domain != domain) changes |= IBV_REREG_MR_CHANGE_PD;
  const int flags = AccessFlags(access) | (has_windows_ ? IBV_ACCESS_MW_BIND : 0);
  const int error = ibv_rereg_mr(own_.handle, changes, domain->handle, nullptr, 0, flags);
  suspect_ = error == IBV_REREG_MR_ERR_CMD || error == IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW;
  if (error != 0) return false;
  own_.domain = domain;
  return true;
}

absl::Status Region::RegisterAnew(const std::shared_ptr<DomainCore>& domain, uint32_t access,
                                  std::vector<Registration>* ended) {
  const uint64_t from = base_ == AddressBase::kZero ? 0 : reinterpret_cast<uint64_t>(address_);
  bool has_windows;
  ibv_mr* const handle = RegisterForWindows(*domain, access, &has_windows, [&](int flags) {
    return ibv_reg_mr_iova(domain->handle, address_, length_, from, flags);
  });
  if (handle == nullptr) return NotRegistered(errno);
  ended->push_back(std::exchange(own_, {domain, handle}));
  has_windows_ = has_windows;
  writable_ = PinsForWriting(access, has_windows);
  suspect_ = false;
  return absl::OkStatus();
}

Region* Memory::FindOpenTo(const DomainCore& domain, Key key) const {
  const auto found = regions_.find(key);
  if (found == regions_.end() || !found->second->own_.domain->Matches(domain)) return nullptr;
  return found->second;
}

// Called for posts that have taken their ids, so no exception may leave it.
bool Memory::RegisterAgain(DomainCore& domain, Key key, LocalUse use, uint32_t* local_key) try {
  MutexLock lock(&mutex_);
  Region* const found = FindOpenTo(domain, key);
  if (found == nullptr) return false;
  Region& region = *found;
  if (const Region::Registration* const other = region.Other(domain, use)) {
    *local_key = other->handle->lkey;
    return true;
  }
  region.others_.reserve(region.others_.size() + 1);
  const uint32_t access = (region.access_ & (kLocalRead | kLocalWrite)) |
                          (use == LocalUse::kSink ? uint32_t{kRemoteWrite} : 0u);
  const CancellationDisabled no_cancellation;  // ibv_reg_mr_iova may write()
  ibv_mr* const handle = ibv_reg_mr_iova(domain.handle, region.address_, region.length_,
                                         region.Entry().address, AccessFlags(access));
  if (handle == nullptr) {
    LogErrno(errno, "register memory once more");
    return false;
  }
  region.others_.push_back({domain.shared_from_this(), handle, use});
  if (region.own_.domain.get() == &domain) {
    map_.Put(region.Entry());
  } else {
    domain.has_guests_ = true;
  }
  *local_key = handle->lkey;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void Memory::EndGuestsOf(DomainCore& domain) {
  MutexLock lock(&mutex_);
  if (!domain.has_guests_) return;
  for (const auto& [key, region] : regions_) {
    if (region->own_.domain.get() == &domain) continue;
    std::erase_if(region->others_, [&domain](const Region::Registration& other) {
      if (other.domain.get() != &domain) return false;
      ibv_dereg_mr(other.handle);
      return true;
    });
  }
}

uint32_t Memory::TranslateReceive(DomainCore& domain, absl::Span<const Segment> segments,
                                  uint32_t most, RegionCache& cache, ibv_sge* to) {
  uint32_t count = 0;
  for (const Segment& segment : segments) {
    const uint32_t length = std::min(segment.length, most);
    if (length == 0) continue;
    uint32_t key;
    const bool open = Translate(domain, segment.key, segment.address, /*length=*/1, kLocalWrite,
                                LocalUse::kAny, cache, &key);
    to[count++] = {segment.address, length, open ? key : kNoLocalKey};
    most -= length;
  }
  if (count == 0) to[count++] = {0, 0, 0};
  return count;
}

unsigned char* Memory::Resolve(DomainCore& domain, Key key, uint64_t address, uint64_t length,
                               uint32_t rights) {
  RegionEntry entry;
  if (!map_.Find(key, &entry) || !entry.Holds(address, length, rights)) return nullptr;
  if (entry.domain != &domain) {
    MutexLock lock(&mutex_);
    if (FindOpenTo(domain, key) == nullptr) return nullptr;
  }
  return entry.MemoryAt(address);
}

}  // namespace viaduct::verbs::rdma
