#include "vipl/registrations.h"

#include <utility>

#include "verbs/base/epoch.h"

namespace viaduct::vipl {
namespace {

constexpr size_t kFirstPlaces = 16;

}  // namespace

Registrations::Registrations() : table_(new Table(kFirstPlaces)) {}

Registrations::~Registrations() { delete table_.load(); }

void Registrations::Place(Table& table, Registration* registration) {
  size_t i = HashOf(registration->handle.load(std::memory_order_relaxed)) & table.mask;
  while (table.slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & table.mask;
  table.slots[i].store(registration, std::memory_order_release);
}

void Registrations::Add(VIP_MEM_HANDLE handle, uintptr_t begin, size_t bytes,
                        const VIP_MEM_ATTRIBUTES& attributes,
                        const core::Ref<core::MemoryRegion>& region) {
  std::unique_ptr<Table> old;
  {
    const verbs::MutexLock hold(&lock_);
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);
      all_.push_back(std::make_unique<Registration>());
      free_.push_back(all_.back().get());
    }
    Table* table = table_.load(std::memory_order_relaxed);
    // Half of the places stay empty, so that searches end soon.
    if ((used_ + 1) * 2 > table->slots.size()) {
      size_t places = kFirstPlaces;
      while (places < (live_ + 1) * 4) places *= 2;
      auto larger = std::make_unique<Table>(places);
      for (const std::atomic<Registration*>& slot : table->slots) {
        Registration* moved = slot.load(std::memory_order_relaxed);
        if (IsLive(moved)) Place(*larger, moved);
      }
      used_ = live_;
      old.reset(table);
      table = larger.release();
      table_.store(table, std::memory_order_release);
    }
    Registration* const registration = free_.back();
    free_.pop_back();
    registration->SetBytes(begin, bytes);
    registration->tag.store(attributes.Ptag, std::memory_order_relaxed);
    registration->region = region;
    registration->attributes = attributes;
    registration->handle.store(handle, std::memory_order_release);
    Place(*table, registration);
    ++live_;
    ++used_;
  }
  if (old != nullptr) verbs::EpochSynchronize();
}

Registration* Registrations::Owned(VIP_MEM_HANDLE handle, const void* address) {
  const Registration* found = Find(handle);
  if (found == nullptr || found->begin != reinterpret_cast<uintptr_t>(address)) return nullptr;
  return const_cast<Registration*>(found);
}

void Registrations::Clear(std::atomic<Registration*>& slot) {
  Registration* const removed = slot.load(std::memory_order_relaxed);
  slot.store(Removed(), std::memory_order_release);
  removed->handle.store(0, std::memory_order_relaxed);
  --live_;
}

bool Registrations::Remove(VIP_MEM_HANDLE handle, const void* address,
                           core::Ref<core::MemoryRegion>* region) {
  Registration* removed;
  {
    const verbs::MutexLock hold(&lock_);
    removed = Owned(handle, address);
    if (removed == nullptr) return false;
    Table& table = *table_.load(std::memory_order_relaxed);
    size_t i = HashOf(handle) & table.mask;
    while (table.slots[i].load(std::memory_order_relaxed) != removed) i = (i + 1) & table.mask;
    Clear(table.slots[i]);
    *region = std::exchange(removed->region, core::Ref<core::MemoryRegion>());
  }
  verbs::EpochSynchronize();
  const verbs::MutexLock hold(&lock_);
  free_.push_back(removed);
  return true;
}

void Registrations::HideAll() {
  {
    const verbs::MutexLock hold(&lock_);
    for (std::atomic<Registration*>& slot : table_.load(std::memory_order_relaxed)->slots) {
      if (IsLive(slot.load(std::memory_order_relaxed))) Clear(slot);
    }
  }
  verbs::EpochSynchronize();
}

bool Registrations::Query(VIP_MEM_HANDLE handle, const void* address, VIP_MEM_ATTRIBUTES* out) {
  const verbs::MutexLock hold(&lock_);
  const Registration* registration = Owned(handle, address);
  if (registration == nullptr) return false;
  *out = registration->attributes;
  return true;
}

}  // namespace viaduct::vipl
