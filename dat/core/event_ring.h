// EventRing: a queue of events. Its memory is reserved in advance, so that a push allocates only
// beyond that; room that was never used costs no memory. Room can be set aside ("kept") for events
// that must not fail for lack of memory when they come.
#ifndef VIADUCT_DAT_CORE_EVENT_RING_H_
#define VIADUCT_DAT_CORE_EVENT_RING_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>

#include "dat/core/event.h"
#include "verbs/base/block.h"

namespace viaduct::core {

// Guarded by the dispatcher's lock, except for `empty`, which any thread may call.
class EventRing {
 public:
  EventRing() = default;
  ~EventRing() { verbs::FreeBlock(slots_, capacity_ * sizeof(Event)); }
  EventRing(const EventRing&) = delete;
  EventRing& operator=(const EventRing&) = delete;

  // Makes room for at least `events` in all, besides the kept room. Throws std::bad_alloc, with
  // nothing changed.
  void Reserve(size_t events) {
    size_t capacity = capacity_ == 0 ? 1 : capacity_;
    while (capacity < events + kept_room()) capacity *= 2;
    if (capacity != capacity_) Move(capacity);
  }
  // Returns for how many more events there is room; grows if there is none. 0: no memory.
  size_t MakeRoom() {
    if (size() == limit_) {
      try {
        Reserve(limit_ + 1);
      } catch (const std::bad_alloc&) {
        return 0;
      }
    }
    return limit_ - size();
  }
  // Keeps room for `events` more, and leaves room for what is queued and for at least `least` in
  // all. Throws std::bad_alloc, with nothing changed.
  void Keep(uint32_t events, size_t least) {
    Reserve(std::max(size(), least) + events);
    limit_ -= events;
  }
  // Turns that much of the kept room into ordinary room.
  void GiveUp(uint32_t events) { limit_ += events; }
  uint32_t kept_room() const { return capacity_ - limit_; }
  size_t capacity() const { return capacity_; }
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  bool empty() const { return size_.load(std::memory_order_acquire) == 0; }

  // Grows if there is no room; throws std::bad_alloc if it cannot.
  void Push(const Event& event) {
    if (size() == limit_) Reserve(limit_ + 1);
    slots_[tail() & (capacity_ - 1)] = event;
    SetSize(size() + 1);
  }
  // Only if not empty.
  const Event& Front() const { return slots_[head_ & (capacity_ - 1)]; }
  void Pop() {
    SetSize(size() - 1);
    // An empty ring starts again at slot 0, so that a large one touches only the memory it needs.
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
  // Removes the oldest event that satisfies `predicate`, if any, by moving all older ones.
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
    if (capacity > std::numeric_limits<uint32_t>::max()) throw std::bad_alloc();
    auto* slots = static_cast<Event*>(verbs::AllocateBlock(capacity * sizeof(Event)));
    if (slots == nullptr) throw std::bad_alloc();
    for (size_t i = 0; i < size(); ++i) slots[i] = slots_[(head_ + i) & (capacity_ - 1)];
    verbs::FreeBlock(slots_, capacity_ * sizeof(Event));
    slots_ = slots;
    limit_ = static_cast<uint32_t>(capacity) - kept_room();
    capacity_ = static_cast<uint32_t>(capacity);
    head_ = 0;
  }

  Event* slots_ = nullptr;  // not initialized
  uint32_t capacity_ = 0;   // 0 or a power of two
  uint32_t limit_ = 0;      // capacity_ without the kept room
  size_t head_ = 0;
  std::atomic<size_t> size_{0};
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_EVENT_RING_H_
