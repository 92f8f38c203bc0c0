#include "verbs/soft/attendant.h"

#include "verbs/soft/completion_queue.h"

namespace viaduct::verbs {

Attendant::Attendant(Executor& executor)
    : executor_(executor), anchor_(std::make_shared<std::atomic<Attendant*>>(this)) {}

Attendant::~Attendant() {
  anchor_->store(nullptr);
  executor_.Drain();
}

void Attendant::Schedule(Nanos delay) {
  Executor::Task task = [anchor = anchor_] {
    if (Attendant* self = anchor->load()) self->Run();
  };
  if (delay == 0) {
    executor_.Post(std::move(task));
  } else {
    executor_.RunAt(executor_.Now() + delay, std::move(task));
  }
}

void Attendant::Urge(SoftCompletionQueue& queue) {
  if (queue.listed_.exchange(true, std::memory_order_seq_cst)) return;
  {
    SpinLockHolder holder(&lock_);
    queue.listed_next_ = listed_;
    listed_ = &queue;
    urgent_ = true;
    if (scheduled_) return;
    scheduled_ = true;
  }
  Schedule(0);
}

void Attendant::Unlink(SoftCompletionQueue** list, SoftCompletionQueue& queue) {
  for (; *list != nullptr; list = &(*list)->listed_next_) {
    if (*list == &queue) {
      *list = queue.listed_next_;
      return;
    }
  }
}

void Attendant::Forget(SoftCompletionQueue& queue) {
  {
    SpinLockHolder holder(&lock_);
    Unlink(&listed_, queue);
    Unlink(&batch_, queue);
    if (current_ != &queue) return;
    current_ = nullptr;
  }
  executor_.Drain();  // on the executor the caller is the queue's own sink
}

void Attendant::Run() {
  lock_.Lock();
  urgent_ = false;
  batch_ = listed_;
  listed_ = nullptr;
  while (batch_ != nullptr) {
    SoftCompletionQueue* queue = batch_;
    batch_ = queue->listed_next_;
    current_ = queue;
    // From here on an Urge lists it again.
    queue->listed_.exchange(false, std::memory_order_seq_cst);
    lock_.Unlock();
    const bool again = queue->Attend();
    lock_.Lock();
    // Null: destroyed meanwhile.
    if (current_ != nullptr && again && !queue->listed_.exchange(true)) {
      queue->listed_next_ = listed_;
      listed_ = queue;
    }
    current_ = nullptr;
  }
  const bool more = listed_ != nullptr;
  const Nanos delay = urgent_ ? 0 : kTick;
  scheduled_ = more;
  lock_.Unlock();
  if (more) Schedule(delay);
}

}  // namespace viaduct::verbs
