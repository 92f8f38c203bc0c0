// Use: that an object stands on another one, which its consumer frees only while nobody uses it.
//
// One thread may free an object while another makes something that is to use it: either the free is
// refused, or that use is. An adapter that closes ends its objects in any case.
#ifndef VIADUCT_DAT_CORE_USE_H_
#define VIADUCT_DAT_CORE_USE_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "dat/core/error.h"
#include "dat/core/handle_table.h"
#include "dat/core/object.h"

namespace viaduct::core {

// How many use the object that has it. Any thread.
class UseCount {
 public:
  bool any() const { return (count_.load(std::memory_order_acquire) & ~kEnded) != 0; }
  // Nobody begins to use it any more; also when this was said before. False: somebody uses it, and
  // nothing has happened.
  bool End() {
    uint32_t count = 0;
    return count_.compare_exchange_strong(count, kEnded) || count == kEnded;
  }

 private:
  template <typename T>
  friend class Use;
  static constexpr uint32_t kEnded = uint32_t{1} << 31;

  // False: it has ended.
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

// A reference to a T that counts as a use of it, or none. T::uses() is its UseCount.
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

  // In the place of what it was; null: of nothing. kInvalidHandle: `object` has ended, and nothing
  // has happened.
  Error Begin(T* object) {
    if (object != nullptr && !object->uses().Add()) return InvalidHandle<T>();
    End();
    object_ = Ref<T>::Share(object);
    return Ok();
  }
  // It is of nothing any more.
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
