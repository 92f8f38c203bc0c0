#include "verbs/soft/receive_line.h"

namespace viaduct::verbs {

void ReceiveLine::List::PushFront(Waiter& waiter) {
  waiter.previous_ = nullptr;
  waiter.next_ = first;
  (first != nullptr ? first->previous_ : last) = &waiter;
  first = &waiter;
}

void ReceiveLine::List::PushBack(Waiter& waiter) {
  waiter.next_ = nullptr;
  waiter.previous_ = last;
  (last != nullptr ? last->next_ : first) = &waiter;
  last = &waiter;
}

void ReceiveLine::List::Remove(Waiter& waiter) {
  (waiter.previous_ != nullptr ? waiter.previous_->next_ : first) = waiter.next_;
  (waiter.next_ != nullptr ? waiter.next_->previous_ : last) = waiter.previous_;
}

void ReceiveLine::RemoveWoken(Waiter& waiter) {
  woken_.Remove(waiter);
  --woken_count_;
}

bool ReceiveLine::Take(Waiter& waiter, uint32_t available) {
  switch (waiter.state()) {
    case State::kAway:
      return waiting_.first == nullptr && woken_count_ < available;
    case State::kWaiting:
      return false;
    case State::kWoken:
      RemoveWoken(waiter);
      break;
    case State::kLate:
      if (available == 0) return false;
      // This waiter is older than those woken after it. If every receive is kept for one of them,
      // the last of them gives its receive up and becomes the next to be woken.
      if (woken_count_ == available) {
        Waiter& last = *woken_.last;
        RemoveWoken(last);
        Set(last, State::kWaiting);
        waiting_.PushFront(last);
      }
      break;
  }
  Set(waiter, State::kAway);
  --count_;
  return true;
}

void ReceiveLine::Enter(Waiter& waiter) {
  switch (waiter.state()) {
    case State::kAway:
      ++count_;
      waiting_.PushBack(waiter);
      break;
    case State::kLate:
      waiting_.PushFront(waiter);
      break;
    case State::kWaiting:
    case State::kWoken:
      return;
  }
  Set(waiter, State::kWaiting);
}

void ReceiveLine::Leave(Waiter& waiter) {
  switch (waiter.state()) {
    case State::kAway:
      return;
    case State::kWaiting:
      waiting_.Remove(waiter);
      break;
    case State::kWoken:
      RemoveWoken(waiter);
      break;
    case State::kLate:
      break;
  }
  Set(waiter, State::kAway);
  --count_;
}

ReceiveLine::Waiter* ReceiveLine::WakeNext(uint32_t available, Nanos now) {
  Waiter* const waiter = waiting_.first;
  if (waiter == nullptr || woken_count_ >= available) return nullptr;
  waiting_.Remove(*waiter);
  woken_.PushBack(*waiter);
  ++woken_count_;
  waiter->woken_at_ = now;
  Set(*waiter, State::kWoken);
  return waiter;
}

void ReceiveLine::Expire(Nanos now) {
  while (woken_.first != nullptr && woken_.first->woken_at_ <= now - kPatience) {
    Waiter& waiter = *woken_.first;
    RemoveWoken(waiter);
    Set(waiter, State::kLate);
  }
}

Nanos ReceiveLine::expiry() const {
  if (waiting_.first == nullptr || woken_.first == nullptr) return kNever;
  return woken_.first->woken_at_ + kPatience;
}

}  // namespace viaduct::verbs
