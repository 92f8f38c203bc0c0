#include "verbs/soft/region_table.h"

#include <sys/mman.h>
#include <sys/random.h>

#include <algorithm>
#include <new>

#include "absl/status/status.h"

namespace viaduct::verbs {
namespace {

constexpr size_t TableBytes(size_t entry) { return entry * RegionTable::kMaxRegions; }
constexpr uint32_t kFirstIndices = 256;
constexpr uint32_t kIndexMask = RegionTable::kMaxRegions - 1;
constexpr uint32_t kNonceMask = 0x7fff;

uint64_t Random() {
  uint64_t value = 0;
  // Never short for 8 bytes, and never interrupted once the pool is ready.
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

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

absl::StatusOr<Key> RegionTable::Register(DomainId domain, uint64_t address, uint64_t length,
                                          uint32_t access) {
  const uint64_t random = Random();
  MutexLock holder(&mutex_);
  if (free_.size() <= indices_ / 4 && indices_ < kMaxRegions) {
    // Enough free ones to choose from, or an index would tell the next.
    const uint32_t end = indices_ == 0 ? kFirstIndices : 2 * indices_;
    for (; indices_ < end; indices_++) free_.push_back(indices_);
  }
  if (free_.empty()) return absl::ResourceExhaustedError("65,536 regions are registered");
  std::swap(free_[(random >> 32) % free_.size()], free_.back());
  const uint32_t index = free_.back();
  free_.pop_back();

  uint32_t nonce = static_cast<uint32_t>(random) & kNonceMask;
  if (nonce == 0) nonce = 1;  // so that no key is 0
  Region& region = regions_[index];
  region.access.store(access, std::memory_order_relaxed);
  region.domain.store(domain, std::memory_order_relaxed);
  region.address.store(address, std::memory_order_relaxed);
  region.length.store(length, std::memory_order_relaxed);
  const Key key = nonce << 16 | index;
  region.key.store(key, std::memory_order_release);
  return key;
}

void RegionTable::Deregister(Key key) {
  Region& region = regions_[key & kIndexMask];
  {
    MutexLock holder(&mutex_);
    if (key == 0 || region.key.load(std::memory_order_relaxed) != key) return;
    region.key.store(0, std::memory_order_seq_cst);
  }
  PassUsers();
  MutexLock holder(&mutex_);
  free_.push_back(key & kIndexMask);
}

void RegionTable::Modify(Key key, DomainId domain, uint32_t access) {
  Region& region = regions_[key & kIndexMask];
  {
    MutexLock holder(&mutex_);
    if (key == 0 || region.key.load(std::memory_order_relaxed) != key) return;
    // Withdrawn while it changes, so that nobody sees the new rights with the old domain.
    region.key.store(0, std::memory_order_seq_cst);
    region.domain.store(domain, std::memory_order_relaxed);
    region.access.store(access, std::memory_order_relaxed);
    region.key.store(key, std::memory_order_release);
  }
  PassUsers();
}

}  // namespace viaduct::verbs
