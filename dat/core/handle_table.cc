#include "dat/core/handle_table.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/lock.h"

namespace viaduct::core {
namespace internal {

constinit HandleRange handle_range;

}  // namespace internal

namespace {

using internal::handle_range;
using internal::kAddressBits;
using internal::kAddressMask;
using internal::kSlotMask;
using internal::kSlotShift;
using internal::Tag;

constexpr size_t kSlots = size_t{1} << 20;
constexpr size_t kRangeBytes = kSlots << kSlotShift;
constexpr size_t kSmallestRangeBytes = kRangeBytes / 32;
constexpr size_t kEntriesBytes = kSlots * sizeof(uint64_t);
constexpr uintptr_t kGenerationStep = 8;
constexpr size_t kShownStep = size_t{1} << 20;  // divides every RangeBytes()

// A freed slot is reused only when this many are queued, or when no fresh slot is left. So the
// value of a freed handle comes back after 64 times as many frees at the earliest.
constexpr size_t kMinimumQueue = 1024;

// Freed slots, oldest first, linked through their entries: index + 1, 0 ends the queue.
struct Slots {
  verbs::Mutex lock;
  size_t count ABSL_GUARDED_BY(lock) = 0;  // kSlots at most
  size_t live ABSL_GUARDED_BY(lock) = 0;
  size_t fresh ABSL_GUARDED_BY(lock) = 0;  // the first slot that was never used
  size_t queued ABSL_GUARDED_BY(lock) = 0;
  size_t head ABSL_GUARDED_BY(lock) = 0;  // index + 1
  size_t tail ABSL_GUARDED_BY(lock) = 0;  // index + 1
  const void* first_word ABSL_GUARDED_BY(lock) = nullptr;
  size_t shown ABSL_GUARDED_BY(lock) = 0;  // bytes of the range that can be written and read
};
constinit Slots slots;

void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { slots.lock.Lock(); }

void AfterForkInParent() ABSL_NO_THREAD_SAFETY_ANALYSIS { slots.lock.Unlock(); }

// The child reserves a range of its own when it needs one, at another address, so that no handle of
// the parent's ever becomes valid here. Private pages read as zero after MADV_DONTNEED.
void AfterForkInChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  handle_range.bytes.store(0, std::memory_order_release);
  if (handle_range.entries != nullptr) madvise(handle_range.entries, kEntriesBytes, MADV_DONTNEED);
  slots.live = slots.fresh = slots.queued = slots.head = slots.tail = slots.shown = 0;
  slots.lock.Unlock();
}

const verbs::AtFork at_fork(BeforeFork, AfterForkInParent, AfterForkInChild);

// Null: no address space is left.
void* Map(size_t bytes, int protection) {
  void* const memory =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool ReserveEntries() ABSL_EXCLUSIVE_LOCKS_REQUIRED(slots.lock) {
  if (handle_range.entries != nullptr) return true;
  if (!at_fork.registered()) return false;
  void* const entries = Map(kEntriesBytes, PROT_READ | PROT_WRITE);
  if (entries == nullptr) return false;
  handle_range.entries = static_cast<std::atomic<uint64_t>*>(entries);
  return true;
}

// The range uses up address space of the program. If that is limited (RLIMIT_AS), the range takes
// an eighth of the limit at most, but not less than kSmallestRangeBytes. Where that does not fit,
// because others have taken much, or mlockall counts it as locked, Reserve tries less.
size_t RangeBytes() {
  size_t bytes = kRangeBytes;
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return bytes;
  while (bytes > kSmallestRangeBytes && bytes > limit.rlim_cur / 8) bytes /= 2;
  return bytes;
}

bool Reserve() ABSL_EXCLUSIVE_LOCKS_REQUIRED(slots.lock) {
  if (handle_range.bytes.load(std::memory_order_relaxed) != 0) return true;
  if (!ReserveEntries()) return false;
  size_t bytes = RangeBytes();
  void* base;
  while ((base = Map(bytes, PROT_NONE)) == nullptr) {
    if (bytes == kSmallestRangeBytes) return false;
    bytes /= 2;
  }
  slots.count = bytes >> kSlotShift;
  handle_range.base.store(reinterpret_cast<uintptr_t>(base), std::memory_order_relaxed);
  handle_range.bytes.store(bytes, std::memory_order_release);
  return true;
}

// Makes the range accessible up to `offset`, if first words are shown. Fresh slots are taken from
// its beginning onwards, so the accessible part grows from there.
bool Show(uintptr_t offset) ABSL_EXCLUSIVE_LOCKS_REQUIRED(slots.lock) {
  if (slots.first_word == nullptr || offset < slots.shown) return true;
  const size_t end = (offset / kShownStep + 1) * kShownStep;
  if (mprotect(reinterpret_cast<void*>(handle_range.base.load(std::memory_order_relaxed)), end,
               PROT_READ | PROT_WRITE) != 0) {
    return false;
  }
  slots.shown = end;
  return true;
}

void Append(size_t index, uintptr_t next_handle) ABSL_EXCLUSIVE_LOCKS_REQUIRED(slots.lock) {
  handle_range.entries[index].store(Tag(ObjectType::kNone, next_handle) << kAddressBits,
                                    std::memory_order_relaxed);
  if (slots.tail == 0) {
    slots.head = index + 1;
  } else {
    std::atomic<uint64_t>& last = handle_range.entries[slots.tail - 1];
    last.store(last.load(std::memory_order_relaxed) | (index + 1), std::memory_order_relaxed);
  }
  slots.tail = index + 1;
  ++slots.queued;
}

// Takes a free slot and returns the offset of its next handle; kRangeBytes if none is free.
uintptr_t Take() ABSL_EXCLUSIVE_LOCKS_REQUIRED(slots.lock) {
  const bool is_fresh = slots.fresh < slots.count;
  if (is_fresh && slots.queued < kMinimumQueue) return slots.fresh++ << kSlotShift;
  if (slots.queued == 0) return kRangeBytes;
  const size_t index = slots.head - 1;
  const uint64_t entry = handle_range.entries[index].load(std::memory_order_relaxed);
  slots.head = entry & kAddressMask;
  if (slots.head == 0) slots.tail = 0;
  --slots.queued;
  return index << kSlotShift | (entry >> kAddressBits & kSlotMask);
}

}  // namespace

Handle HandleTable::Insert(Object* object) {
  verbs::MutexLock lock(&slots.lock);
  if (!Reserve()) return nullptr;
  // Take may return the next fresh slot, which must be accessible; queued slots are already.
  if (!Show(std::min(slots.fresh, slots.count - 1) << kSlotShift)) return nullptr;
  const uintptr_t offset = Take();
  if (offset == kRangeBytes) return nullptr;
  const Handle handle =
      reinterpret_cast<Handle>(handle_range.base.load(std::memory_order_relaxed) + offset);
  if (slots.first_word != nullptr) *static_cast<const void**>(handle) = slots.first_word;
  object->AddReference();
  object->handle_.store(handle, std::memory_order_release);
  // User space ends below 2^47.
  const uint64_t address = reinterpret_cast<uintptr_t>(object);
  handle_range.entries[offset >> kSlotShift].store(
      Tag(object->type(), offset) << kAddressBits | address, std::memory_order_release);
  ++slots.live;
  return handle;
}

bool HandleTable::Erase(Handle handle, ObjectType type) {
  verbs::MutexLock lock(&slots.lock);
  if (Find(handle, type) == nullptr) return false;
  const uintptr_t offset =
      reinterpret_cast<uintptr_t>(handle) - handle_range.base.load(std::memory_order_relaxed);
  Append(offset >> kSlotShift, (offset + kGenerationStep) & kSlotMask);
  --slots.live;
  return true;
}

bool HandleTable::ShowFirstWord(const void* word) {
  verbs::MutexLock lock(&slots.lock);
  slots.first_word = word;
  if (Reserve() && Show(0)) return true;
  slots.first_word = nullptr;
  return false;
}

void HandleTable::SetFirstWord(Handle handle, const void* word) {
  *static_cast<const void**>(handle) = word;
}

size_t HandleTable::Size() {
  verbs::MutexLock lock(&slots.lock);
  return slots.live;
}

}  // namespace viaduct::core
