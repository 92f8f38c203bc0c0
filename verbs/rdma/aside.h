// Calls of librdmacm that may wait for a peer, each on a thread that waits for nothing else.
//
// A thread that has made its call waits a while for the next one: to begin and to end a thread
// costs more than siw's part of a connection. As many are there as calls have waited at once.
#ifndef VIADUCT_VERBS_RDMA_ASIDE_H_
#define VIADUCT_VERBS_RDMA_ASIDE_H_

#include "verbs/base/prepared_task.h"

namespace viaduct::verbs::rdma {

// Runs `task` on such a thread, behind no other one. False: the process may have no more threads.
// Not in a forked child, which has none of them.
bool RunAside(PreparedTask& task);

// A method that its object wants called there. The object lives until then, and may end in it.
template <auto kMethod, typename Object>
class AsideErrand final : private PreparedTask {
 public:
  // As RunAside; not again before it is called.
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
