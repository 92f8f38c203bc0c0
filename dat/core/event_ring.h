// EventRing: a queue of events. What it has room for is asked for when it is made, so that pushing
// allocates only beyond that; room that was never used costs no memory.
#ifndef VIADUCT_DAT_CORE_EVENT_RING_H_
#define VIADUCT_DAT_CORE_EVENT_RING_H_

#include <atomic>
#include <cstddef>
#include <new>
#include <type_traits>

#include "dat/core/event.h"
#include "verbs/base/block.h"

namespace viaduct::core {

// Its dispatcher's lock guards it, but for `empty`, which any thread may ask.
class EventRing {
 public:
  EventRing() = default;
  ~EventRing() { verbs::FreeBlock(slots_, capacity_ * sizeof(Event)); }
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;

  // Room for `events` at least. Throws std::bad_alloc, with nothing changed.
  void Reserve(size_t events) {
    size_t capacity = capacity_ == 0 ? 1 : capacity_;
    while (capacity < events) capacity *= 2;
    if (capacity != capacity_) Move(capacity);
  }
  // For how many more events there is room; grows where there is none. 0: no memory.
  size_t MakeRoom() {
    if (size() == capacity_) {
      try {
        Reserve(capacity_ + 1);
      } catch (const std::bad_alloc&) {
        return 0;
      }
    }
    return capacity_ - size();
  }
  size_t capacity() const { return capacity_; }
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }

  // Beyond the capacity it grows, or throws.
  void Push(const Event& event) {
    if (size() == capacity_) Reserve(capacity_ + 1);
    slots_[tail() & (capacity_ - 1)] = event;
    SetSize(size() + 1);
  }
  // Only if not empty.
  const Event& Front() const { return slots_[head_ & (capacity_ - 1)]; }
  void Pop() {
    SetSize(size() - 1);
    // Whenever it is empty it begins anew, so that a large one touches only what it needs.
    head_ = size() == 0 ? 0 : head_ + 1;
  }
  template <typename Function>
  void ForEach(Function function) const {
    for (size_t i = head_; i != tail(); ++i) function(slots_[i & (capacity_ - 1)]);
  }
  // Keeps the order of the rest.
  template <typename Predicate>
  void RemoveIf(Predicate predicate) {
    size_t kept = head_;
    for (size_t i = head_; i != tail(); ++i) {
      const Event& event = slots_[i & (capacity_ - 1)];
      if (!predicate(event)) slots_[kept++ & (capacity_ - 1)] = event;
    }
    SetSize(kept - head_);
  }
  // The oldest for which it holds, if any; costs as many as are older.
  template <typename Predicate>
  void RemoveFirst(Predicate predicate) {
    for (size_t i = head_; i != tail(); ++i) {
      if (!predicate(slots_[i & (capacity_ - 1)])) continue;
      for (; i != head_; --i) slots_[i & (capacity_ - 1)] = slots_[(i - 1) & (capacity_ - 1)];
      return Pop();
    }
  }

 private:
  static_assert(std::is_trivially_copyable_v<Event>);

  size_t tail() const { return head_ + size(); }
  void SetSize(size_t size) { size_.store(size, std::memory_order_release); }

  void Move(size_t capacity) {
    auto* slots = static_cast<Event*>(verbs::AllocateBlock(capacity * sizeof(Event)));
    if (slots == nullptr) throw std::bad_alloc();
    for (size_t i = 0; i < size(); ++i) slots[i] = slots_[(head_ + i) & (capacity_ - 1)];
    verbs::FreeBlock(slots_, capacity_ * sizeof(Event));
    slots_ = slots;
    capacity_ = capacity;
    head_ = 0;
  }

  Event* slots_ = nullptr;  // not initialized
  size_t capacity_ = 0;     // 0 or a power of two
  size_t head_ = 0;
  std::atomic<size_t> size_{0};
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_EVENT_RING_H_
