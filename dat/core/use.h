// Use: records that one object depends on another, which its consumer can free only while it is not
// in use.
//
// One thread may free an object while another makes something that is to use it: then either the
// free or the use is refused. An adapter that closes ends its objects in any case.
#ifndef VIADUCT_DAT_CORE_USE_H_
#define VIADUCT_DAT_CORE_USE_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "dat/core/error.h"
#include "dat/core/handle_table.h"
#include "dat/core/object.h"

namespace viaduct::core {

// Counts the users of the object that contains it. Any thread.
class UseCount {
 public:
  bool any() const { return (count_.load(std::memory_order_acquire) & ~kEnded) != 0; }
  // From now on no use can begin; may be called again. False: the object is in use, and nothing has
  // changed.
  bool End() {
    uint32_t count = 0;
    return count_.compare_exchange_strong(count, kEnded) || count == kEnded;
  }

 private:
  template <typename T>
  friend class Use;
  static constexpr uint32_t kEnded = uint32_t{1} << 31;

  // False after End.
  bool Add() {
    uint32_t count = count_.load(std::memory_order_relaxed);
    do {
      if ((count & kEnded) != 0) return false;
    } while (!count_.compare_exchange_weak(count, count + 1));
    return true;
  }
  void Drop() { count_.fetch_sub(1, std::memory_order_release); }

  std::atomic<uint32_t> count_{0};
};

// A reference to a T that counts as a use of it, or no reference. T::uses() is T's UseCount.
template <typename T>
class Use {
 public:
  Use() = default;
  ~Use() { End(); }
  Use(Use&& other) noexcept : object_(std::move(other.object_)) {}
  Use& operator=(Use&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }

  // Uses `object` (null: nothing) in place of what was used before. kInvalidHandle: `object` has
  // ended, and nothing has changed.
  Error Begin(T* object) {
    if (object != nullptr && !object->uses().Add()) return InvalidHandle<T>();
    End();
    object_ = Ref<T>::Share(object);
    return Ok();
  }
  // Uses nothing any more.
  void End() {
    if (object_) object_->uses().Drop();
    object_ = Ref<T>();
  }
  const Ref<T>& ref() const { return object_; }
  T* get() const { return object_.get(); }
  explicit operator bool() const { return static_cast<bool>(object_); }
  T* operator->() const { return object_.get(); }
  T& operator*() const { return *object_; }

 private:
  Ref<T> object_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_USE_H_
