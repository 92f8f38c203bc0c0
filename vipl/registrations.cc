#include "vipl/registrations.h"

#include <utility>

#include "verbs/base/epoch.h"

namespace viaduct::vipl {
namespace {

constexpr size_t kFirstPlaces = 16;

}  // namespace

Registrations::Registrations() : table_(new Table(kFirstPlaces)) {}

Registrations::~Registrations() {
  RemoveAll();
  delete table_.load();
}

void Registrations::Place(Table& table, Registration* registration) {
  size_t i = HashOf(registration->handle) & table.mask;
  while (table.slots[i].load(std::memory_order_relaxed) != nullptr) i = (i + 1) & table.mask;
  table.slots[i].store(registration, std::memory_order_release);
}

void Registrations::Add(std::unique_ptr<Registration> registration) {
  std::unique_ptr<Table> old;
  {
    const verbs::MutexLock hold(&lock_);
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
    Place(*table, registration.release());
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

std::unique_ptr<Registration> Registrations::Remove(VIP_MEM_HANDLE handle, const void* address) {
  std::unique_ptr<Registration> removed;
  {
    const verbs::MutexLock hold(&lock_);
    removed.reset(Owned(handle, address));
    if (removed == nullptr) return nullptr;
    Table& table = *table_.load(std::memory_order_relaxed);
    size_t i = HashOf(handle) & table.mask;
    while (table.slots[i].load(std::memory_order_relaxed) != removed.get()) {
      i = (i + 1) & table.mask;
    }
    table.slots[i].store(Removed(), std::memory_order_release);
    --live_;
  }
  verbs::EpochSynchronize();
  return removed;
}

std::vector<std::unique_ptr<Registration>> Registrations::RemoveAll() {
  std::vector<std::unique_ptr<Registration>> removed;
  {
    const verbs::MutexLock hold(&lock_);
    removed.reserve(live_);
    for (std::atomic<Registration*>& slot : table_.load(std::memory_order_relaxed)->slots) {
      Registration* registration = slot.load(std::memory_order_relaxed);
      if (!IsLive(registration)) continue;
      slot.store(Removed(), std::memory_order_release);
      removed.emplace_back(registration);
    }
    live_ = 0;
  }
  if (!removed.empty()) verbs::EpochSynchronize();
  return removed;
}

bool Registrations::Query(VIP_MEM_HANDLE handle, const void* address, VIP_MEM_ATTRIBUTES* out) {
  const verbs::MutexLock hold(&lock_);
  const Registration* registration = Owned(handle, address);
  if (registration == nullptr) return false;
  *out = registration->attributes;
  return true;
}

}  // namespace viaduct::vipl
