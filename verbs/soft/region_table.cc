#include "verbs/soft/region_table.h"

#include <sys/mman.h>

#include <algorithm>
#include <new>

#include "absl/status/status.h"
#include "verbs/base/random.h"

namespace viaduct::verbs {
namespace {

constexpr size_t TableBytes(size_t entry) { return entry * RegionTable::kMaxRegions; }
constexpr uint32_t kFirstIndices = 256;
constexpr uint32_t kIndexMask = RegionTable::kMaxRegions - 1;
constexpr uint32_t kNonceMask = 0x7fff;

}  // namespace

RegionTable::RegionTable() {
  void* memory = mmap(nullptr, TableBytes(sizeof(Region)), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // All-zero atomics are valid; touching 65,536 entries to construct them would cost 2 MiB.
  regions_ = static_cast<Region*>(memory);
}

RegionTable::~RegionTable() { munmap(regions_, TableBytes(sizeof(Region))); }

void RegionTable::AddUser(PassLock* lock) {
  MutexLock holder(&users_mutex_);
  users_.push_back(lock);
}

void RegionTable::RemoveUser(PassLock* lock) {
  MutexLock holder(&users_mutex_);
  auto position = std::find(users_.begin(), users_.end(), lock);
  if (position == users_.end()) return;
  *position = users_.back();
  users_.pop_back();
}

void RegionTable::PassUsers() {
  MutexLock holder(&users_mutex_);
  for (PassLock* lock : users_) lock->Pass();
}

absl::StatusOr<Key> RegionTable::Issue(uint64_t random) {
  if (free_.size() <= indices_ / 4 && indices_ < kMaxRegions) {
    // Keeps enough free indices to choose from; otherwise one index would reveal the next.
    const uint32_t end = indices_ == 0 ? kFirstIndices : 2 * indices_;
    free_.reserve(end);  // may throw: nothing has happened yet. Deregister then needs no memory
    for (; indices_ < end; indices_++) free_.push_back(indices_);
  }
  if (free_.empty()) return absl::ResourceExhaustedError("65,536 regions are registered");
  std::swap(free_[(random >> 32) % free_.size()], free_.back());
  const uint32_t index = free_.back();
  free_.pop_back();
  uint32_t nonce = static_cast<uint32_t>(random) & kNonceMask;
  if (nonce == 0) nonce = 1;  // so that no key is 0
  Region& region = regions_[index];
  region.issued = nonce << 16 | index;
  region.parent = 0;
  region.window = false;
  region.windows = 0;
  return region.issued;
}

void RegionTable::Open(Region& region, Key key, DomainId domain, uint64_t address, uint64_t memory,
                       uint64_t length, uint32_t access, AddressBase base) {
  region.zero = base == AddressBase::kZero;
  region.grant.store(GrantOf(domain, access, region.zero), std::memory_order_relaxed);
  region.address.store(address, std::memory_order_relaxed);
  region.memory.store(memory, std::memory_order_relaxed);
  region.length.store(length, std::memory_order_relaxed);
  region.key.store(key, std::memory_order_release);
}

absl::StatusOr<Key> RegionTable::Register(DomainId domain, uint64_t address, uint64_t length,
                                          uint32_t access, AddressBase base) {
  const uint64_t random = RandomWord();
  SpinLockHolder holder(&mutex_);
  absl::StatusOr<Key> key = Issue(random);
  if (key.ok()) {
    Open(regions_[*key & kIndexMask], *key, domain, base == AddressBase::kZero ? 0 : address,
         address, length, access, base);
  }
  return key;
}

void RegionTable::CloseWindows(Region& region, Key key) {
  if (region.windows == 0) return;
  region.windows = 0;
  for (uint32_t i = 0; i < indices_; i++) {
    if (regions_[i].window && regions_[i].parent == key) {
      regions_[i].parent = 0;
      regions_[i].key.store(0, std::memory_order_seq_cst);
    }
  }
}

void RegionTable::Deregister(Key key) {
  Region& region = regions_[key & kIndexMask];
  {
    SpinLockHolder holder(&mutex_);
    if (key == 0 || region.issued != key) return;
    region.issued = 0;
    region.window = false;
    region.key.store(0, std::memory_order_seq_cst);
    CloseWindows(region, key);
  }
  PassUsers();
  SpinLockHolder holder(&mutex_);
  free_.push_back(key & kIndexMask);
}

void RegionTable::Modify(Key key, DomainId domain, uint32_t access) {
  Region& region = regions_[key & kIndexMask];
  {
    SpinLockHolder holder(&mutex_);
    if (key == 0 || region.key.load(std::memory_order_relaxed) != key) return;
    // The key stays: whoever is allowed before and after is allowed in between.
    region.grant.store(GrantOf(domain, access, region.zero), std::memory_order_seq_cst);
    CloseWindows(region, key);
  }
  PassUsers();
}

absl::StatusOr<Key> RegionTable::ReserveWindow() {
  const uint64_t random = RandomWord();
  SpinLockHolder holder(&mutex_);
  absl::StatusOr<Key> key = Issue(random);
  if (key.ok()) regions_[*key & kIndexMask].window = true;
  return key;
}

bool RegionTable::Bind(Key key, const WindowBinding& binding) {
  uint32_t needs = 0;  // of the region
  if ((binding.access & (kRemoteRead | kRemoteAtomic)) != 0) needs |= kLocalRead;
  if ((binding.access & (kRemoteWrite | kRemoteAtomic)) != 0) needs |= kLocalWrite;
  SpinLockHolder holder(&mutex_);
  Region& window = regions_[key & kIndexMask];
  if (window.issued != key) return true;  // nor does it need the region any more
  Region& region = regions_[binding.region & kIndexMask];
  // Not a window of a window.
  if (region.window || region.issued != binding.region) return false;
  // If no right is needed, ask Resolve for those that the region has.
  if (needs == 0) {
    needs = RightsOf(region.grant.load(std::memory_order_relaxed));
  }
  const unsigned char* memory =
      Resolve(binding.region, binding.address, binding.length, needs, binding.domain);
  if (memory == nullptr) return false;
  window.parent = binding.region;
  region.windows++;
  const auto start = reinterpret_cast<uint64_t>(memory);
  Open(window, key, binding.owner, binding.base == AddressBase::kZero ? 0 : start, start,
       binding.length, binding.access, binding.base);
  return true;
}

bool RegionTable::Invalidate(Key key, DomainId owner) {
  Region& region = regions_[key & kIndexMask];
  if (key == 0 || region.key.load(std::memory_order_acquire) != key) return false;
  if (DomainOf(region.grant.load(std::memory_order_relaxed)) != owner) return false;
  return region.key.compare_exchange_strong(key, 0, std::memory_order_seq_cst);
}

unsigned char* RegionTable::Resolve(Key key, uint64_t address, uint64_t length, uint32_t access,
                                    DomainId domain) const {
  const Region& region = regions_[key & kIndexMask];
  if (region.key.load(std::memory_order_acquire) != key || key == 0) return nullptr;
  const uint64_t offset = address - region.address.load(std::memory_order_relaxed);
  const uint64_t size = region.length.load(std::memory_order_relaxed);
  const uint64_t grant = region.grant.load(std::memory_order_relaxed);
  if (offset > size || length > size - offset || (RightsOf(grant) & access) != access ||
      !Matches(grant, domain)) {
    return nullptr;
  }
  return reinterpret_cast<unsigned char*>(region.memory.load(std::memory_order_relaxed) + offset);
}

Refusal RegionTable::Explain(Key key, uint32_t access, DomainId domain) const {
  const Region& region = regions_[key & kIndexMask];
  if (region.key.load(std::memory_order_acquire) != key || key == 0) return Refusal::kKey;
  const uint64_t grant = region.grant.load(std::memory_order_relaxed);
  if (!Matches(grant, domain)) return Refusal::kDomain;
  return (RightsOf(grant) & access) != access ? Refusal::kRights : Refusal::kBounds;
}

}  // namespace viaduct::verbs
