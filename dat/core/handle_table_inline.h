// The part of HandleTable that is compiled into its callers: include handle_table.h.
//
//   handle = range base + 512 * index + 8 * generation       (64 generations)
//
//   entry of a live slot    | type : 7 | handle's low 9 bits : 9 | address of the object : 48 |
//   entry of a free slot    | 0    : 7 | the next handle's    : 9 | link of the queue    : 48 |
//
// One load tells a live handle from anything else: the upper 16 bits of the entry must match the
// handle and the type. A handle that is not a multiple of 8 matches no entry.
#ifndef VIADUCT_DAT_CORE_HANDLE_TABLE_INLINE_H_
#define VIADUCT_DAT_CORE_HANDLE_TABLE_INLINE_H_

#include <atomic>
#include <cstdint>

#include "dat/core/handle_table.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {
namespace internal {

inline constexpr int kSlotShift = 9;
inline constexpr uintptr_t kSlotMask = (uintptr_t{1} << kSlotShift) - 1;
inline constexpr int kAddressBits = 48;
inline constexpr uint64_t kAddressMask = (uint64_t{1} << kAddressBits) - 1;

// `base` and `entries` are written once, before `bytes` leaves 0: a made-up handle may be looked up
// at any time.
struct HandleRange {
  std::atomic<uintptr_t> bytes{0};
  std::atomic<uintptr_t> base{0};
  std::atomic<uint64_t>* entries = nullptr;
};
extern HandleRange handle_range;

// The entry of the slot that `handle` points into; 0 for what points elsewhere.
inline uint64_t LoadEntry(Handle handle, uintptr_t* offset) {
  const uintptr_t bytes = handle_range.bytes.load(std::memory_order_acquire);
  *offset = reinterpret_cast<uintptr_t>(handle) - handle_range.base.load(std::memory_order_relaxed);
  if (*offset >= bytes) return 0;
  return handle_range.entries[*offset >> kSlotShift].load(std::memory_order_acquire);
}

// The upper bits of a slot's entry while the handle with this offset and type is live.
constexpr uint64_t Tag(ObjectType type, uintptr_t offset) {
  return static_cast<uint64_t>(type) << kSlotShift | (offset & kSlotMask);
}

}  // namespace internal

inline Object* HandleTable::Find(Handle handle, ObjectType type) {
  uintptr_t offset;
  const uint64_t entry = internal::LoadEntry(handle, &offset);
  if (entry >> internal::kAddressBits != internal::Tag(type, offset) || type == ObjectType::kNone) {
    return nullptr;
  }
  return reinterpret_cast<Object*>(entry & internal::kAddressMask);
}

inline ObjectType HandleTable::TypeOf(Handle handle) {
  uintptr_t offset;
  const uint64_t tag = internal::LoadEntry(handle, &offset) >> internal::kAddressBits;
  const auto type = static_cast<ObjectType>(tag >> internal::kSlotShift);
  return tag == internal::Tag(type, offset) ? type : ObjectType::kNone;
}

template <typename T>
Ref<T> ShareObject(Handle handle) {
  return ShareObject<T>(handle, T::kType);
}

template <typename T>
Ref<T> ShareObject(Handle handle, ObjectType type) {
  verbs::EpochGuard guard;
  T* object = static_cast<T*>(HandleTable::Find(handle, type));
  // Without references it was erased since it was found, and only the guard keeps it.
  if (object == nullptr || !object->AddReferenceUnlessZero()) return Ref<T>();
  return Ref<T>::Adopt(object);
}

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_HANDLE_TABLE_INLINE_H_
