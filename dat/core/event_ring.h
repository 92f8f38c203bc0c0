// EventRing: a queue of events that allocates only when it grows; empty and unused it is a few
// words, since there may be three for each of thousands of endpoints.
#ifndef VIADUCT_DAT_CORE_EVENT_RING_H_
#define VIADUCT_DAT_CORE_EVENT_RING_H_

#include <cstddef>
#include <vector>

#include "dat/core/event.h"

namespace viaduct::core {

// Not thread-safe: its dispatcher's lock guards it.
class EventRing {
 public:
  size_t size() const { return tail_ - head_; }
  bool empty() const { return tail_ == head_; }
  void Push(const Event& event) {
    if (size() == slots_.size()) Grow();
    slots_[tail_++ & (slots_.size() - 1)] = event;
  }
  // Only if not empty.
  const Event& Front() const { return slots_[head_ & (slots_.size() - 1)]; }
  void Pop() { ++head_; }
  // Keeps the order of the rest.
  template <typename Predicate>
  void RemoveIf(Predicate predicate) {
    size_t kept = head_;
    for (size_t i = head_; i != tail_; ++i) {
      const Event& event = slots_[i & (slots_.size() - 1)];
      if (!predicate(event)) slots_[kept++ & (slots_.size() - 1)] = event;
    }
    tail_ = kept;
  }

 private:
  static constexpr size_t kFirst = 16;  // a power of two; a batch of the dispatcher fits

  void Grow() {
    std::vector<Event> larger(slots_.empty() ? kFirst : slots_.size() * 2);
    size_t count = size();
    for (size_t i = 0; i < count; ++i) larger[i] = slots_[(head_ + i) & (slots_.size() - 1)];
    slots_.swap(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<Event> slots_;  // its size is 0 or a power of two
  size_t head_ = 0;
  size_t tail_ = 0;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_EVENT_RING_H_
