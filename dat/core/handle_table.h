// Handles that can be checked: the table tells live handles from garbage, freed handles and those
// of a wrong type without dereferencing them.
//
// A handle is an address inside one reserved range, which is not accessible unless ShowFirstWord
// was called. It consists of a slot index and, in the low bits, a generation that changes at each
// reuse; a freed slot goes to the end of a queue. A process has one table, for all faces.
//
// Threads: all calls from any thread. Find and Share cost about a nanosecond and take no lock.
// After fork the child's table is empty: every handle is invalid there.
#ifndef VIADUCT_DAT_CORE_HANDLE_TABLE_H_
#define VIADUCT_DAT_CORE_HANDLE_TABLE_H_

#include "dat/core/error.h"
#include "dat/core/object.h"

namespace viaduct::core {

class HandleTable {
 public:
  // Gives `object` a handle and takes a reference of its own. Null when the table is full.
  static Handle Insert(Object* object);

  // The handle is invalid from now on. False if it was already: of several threads that erase
  // one handle, one gets true. The table's reference passes to the caller, who drops it.
  static bool Erase(Handle handle, ObjectType type);

  // Null unless `handle` is live and of `type`. To be called inside a verbs::EpochGuard; the result
  // is valid as long as that guard.
  static Object* Find(Handle handle, ObjectType type);

  // The type of a live handle; kNone for any other value.
  static ObjectType TypeOf(Handle handle);

  // For a registry that reads the first word of an object itself: from now on every new handle is
  // the address of a word that holds `word`, even after the handle has died. False: no memory.
  // Without this call nothing can be read at a handle.
  static bool ShowFirstWord(const void* word);
  // Changes the word of one handle that was made since ShowFirstWord.
  static void SetFirstWord(Handle handle, const void* word);

  // How many handles are live: for leak checks.
  static size_t Size();
};

// FindObject is Find with the type T::kType. ShareObject also takes a reference, for calls that may
// wait or free.
template <typename T>
T* FindObject(Handle handle) {
  return static_cast<T*>(HandleTable::Find(handle, T::kType));
}
template <typename T>
Ref<T> ShareObject(Handle handle);
// For a T whose objects are of several types.
template <typename T>
Ref<T> ShareObject(Handle handle, ObjectType type);

constexpr Error InvalidHandle(ObjectType expected) {
  return Error(Code::kInvalidHandle, static_cast<uint8_t>(expected));
}
template <typename T>
constexpr Error InvalidHandle() {
  return InvalidHandle(T::kType);
}

}  // namespace viaduct::core

#include "dat/core/handle_table_inline.h"

#endif  // VIADUCT_DAT_CORE_HANDLE_TABLE_H_
