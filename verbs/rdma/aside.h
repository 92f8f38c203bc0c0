// Runs calls of librdmacm that may wait for a peer, each on a thread that waits for nothing else.
//
// After its call a thread waits a while for the next one, since starting and ending a thread costs
// more than siw's part of a connection. There are as many threads as calls have waited at once.
#ifndef VIADUCT_VERBS_RDMA_ASIDE_H_
#define VIADUCT_VERBS_RDMA_ASIDE_H_

#include "verbs/base/prepared_task.h"

namespace viaduct::verbs::rdma {

// Runs `task` on such a thread, without queueing it behind another task. False: the process may
// have no more threads. Must not be called in a forked child, which has none of these threads.
bool RunAside(PreparedTask& task);

// Calls a method of an object on such a thread. The object lives until the call, which may end it.
template <auto kMethod, typename Object>
class AsideErrand final : private PreparedTask {
 public:
  // As RunAside. Must not be called again before the method was called.
  bool Post(Object* object) {
    object_ = object;
    return RunAside(*this);
  }

 private:
  void Run() override { (object_->*kMethod)(); }

  Object* object_ = nullptr;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_ASIDE_H_
