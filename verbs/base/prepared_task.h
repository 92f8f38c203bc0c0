// A task that lies in its owner's memory, so that posting it needs none: for destruction, and for
// notifications. Most owners want an Errand (errand.h).
#ifndef VIADUCT_VERBS_BASE_PREPARED_TASK_H_
#define VIADUCT_VERBS_BASE_PREPARED_TASK_H_

#include <utility>

namespace viaduct::verbs {

// In at most one list at a time, and alive as long as it is in one.
class PreparedTask {
 public:
  PreparedTask(const PreparedTask&) = delete;
  PreparedTask& operator=(const PreparedTask&) = delete;

  // On the thread that it was posted to. The task is in no list any more: from here on it may be
  // posted again or end.
  virtual void Run() = 0;

 protected:
  PreparedTask() = default;
  ~PreparedTask() = default;

 private:
  friend class TaskList;
  PreparedTask* next_ = nullptr;
};

// First in, first out. Not thread-safe.
class TaskList {
 public:
  TaskList() = default;
  TaskList(const TaskList&) = delete;
  TaskList& operator=(const TaskList&) = delete;
  TaskList(TaskList&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), last_(std::exchange(other.last_, nullptr)) {}

  bool empty() const { return first_ == nullptr; }

  void Append(PreparedTask& task) {
    task.next_ = nullptr;
    (first_ == nullptr ? first_ : last_->next_) = &task;
    last_ = &task;
  }

  // Null: none.
  PreparedTask* TakeFirst() {
    PreparedTask* const task = first_;
    if (task != nullptr) first_ = task->next_;
    return task;
  }

 private:
  PreparedTask* first_ = nullptr;
  PreparedTask* last_ = nullptr;  // means nothing in an empty list
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_PREPARED_TASK_H_
