// A queue pair's membership in the lists of one completion queue.
#ifndef VIADUCT_VERBS_SOFT_ATTACHMENT_H_
#define VIADUCT_VERBS_SOFT_ATTACHMENT_H_

#include <atomic>
#include <cstdint>

namespace viaduct::verbs {

class SoftCompletionQueue;
class SoftQueuePair;

// A queue pair has one, or two if its send and receive queues complete in different places. The
// one where receives complete is its home: that queue's lock is the pair's inbound lock.
struct Attachment {
  SoftQueuePair* pair = nullptr;
  SoftCompletionQueue* queue = nullptr;
  bool home = false;                // receives complete here
  bool sends = false;               // sends complete here
  uint32_t activity_seen = 0;       // queue's lock: the pair's activity at the last tick
  std::atomic<bool> marked{false};  // in the queue's ready list
  Attachment* next = nullptr;       // in that list; owned by whoever set `marked`, then by the list
  Attachment* previous = nullptr;   // valid while the queue says so (left_goes_back_)
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_ATTACHMENT_H_
