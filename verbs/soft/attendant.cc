#include "verbs/soft/attendant.h"

#include "verbs/soft/completion_queue.h"

namespace viaduct::verbs {

Attendant::Attendant(Executor& executor)
    : executor_(executor), anchor_(std::make_shared<decltype(anchor_)::element_type>()) {
  anchor_->Begin(this);
}

Attendant::~Attendant() {
  anchor_->End();
  executor_.Drain();
}

void Attendant::Schedule(SoftCompletionQueue& queue, bool now) {
  const bool listed = queue.listed_.exchange(true, std::memory_order_seq_cst);
  if (listed && !now) return;
  {
    SpinLockHolder holder(&lock_);
    if (!listed) {
      queue.listed_next_ = listed_;
      listed_ = &queue;
    }
    urgent_ = true;
    if (scheduled_) {
      // A tick that cannot be cancelled is about to run.
      if (!now || tick_ == 0 || !executor_.Cancel(tick_)) return;
      tick_ = 0;
    }
    scheduled_ = true;
  }
  anchor_->Post(executor_);
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
  executor_.Drain();  // returns at once on the executor, where the caller is the queue's own sink
}

void Attendant::Run() {
  lock_.Lock();
  urgent_ = false;
  tick_ = 0;
  batch_ = listed_;
  listed_ = nullptr;
  while (batch_ != nullptr) {
    SoftCompletionQueue* queue = batch_;
    batch_ = queue->listed_next_;
    current_ = queue;
    // From here on Schedule lists the queue again.
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
  const bool at_once = urgent_;
  scheduled_ = more;
  if (more && !at_once) {
    tick_ = executor_.RunAt(executor_.Now() + kTick, [anchor = anchor_] { anchor->Call(); });
  }
  lock_.Unlock();
  if (more && at_once) anchor_->Post(executor_);
}

}  // namespace viaduct::verbs
