// What the event of a completed bind shows, found by the number that its completion carries.
#ifndef VIADUCT_DAT_CORE_BIND_TABLE_H_
#define VIADUCT_DAT_CORE_BIND_TABLE_H_

#include <cstdint>
#include <deque>

#include "dat/core/object.h"
#include "verbs/base/lock.h"

namespace viaduct::core {

// The binds of one endpoint, whose requests complete in posting order. Any thread.
class BindTable {
 public:
  struct Entry {
    Handle window = nullptr;
    uint64_t cookie = 0;
  };

  // Returns the number for the completion of a bind that is about to be posted. Only `outstanding`
  // requests, it included, can still become events: older entries, which became none, are dropped.
  uint64_t Put(const Entry& entry, uint32_t outstanding) {
    verbs::SpinLockHolder lock(&lock_);
    entries_.push_back(entry);
    while (entries_.size() > outstanding) {
      entries_.pop_front();
      ++first_;
    }
    return first_ + entries_.size() - 1;
  }
  // The last bind was not posted after all.
  void DropLast() {
    verbs::SpinLockHolder lock(&lock_);
    if (!entries_.empty()) entries_.pop_back();
  }
  Entry Take(uint64_t number) {
    verbs::SpinLockHolder lock(&lock_);
    Entry entry;
    while (!entries_.empty() && first_ <= number) {
      entry = entries_.front();
      entries_.pop_front();
      ++first_;
    }
    return entry;
  }

 private:
  verbs::SpinLock lock_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(lock_);
  uint64_t first_ ABSL_GUARDED_BY(lock_) = 0;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_BIND_TABLE_H_
