// The last of a connection over InfiniBand or RoCE that this side has ended: its id, until the peer
// has answered. The kernel repeats the disconnect request for about a minute, but only while there
// is the id (and its process), and an idle peer that has not got it would never learn that it is
// alone.
#ifndef VIADUCT_VERBS_RDMA_FAREWELL_H_
#define VIADUCT_VERBS_RDMA_FAREWELL_H_

#include <rdma/rdma_cma.h>

#include "verbs/base/executor.h"
#include "verbs/rdma/device.h"

namespace viaduct::verbs::rdma {

// Destroys itself. Control thread.
class Farewell final : public CmHandler {
 public:
  // Of a connected id, which it owns from now on: the peer's answer ends it, or the kernel's word
  // that none has come, or at last kFarewell.
  static void Say(Device& device, rdma_cm_id* id);

  void OnCmEvent(const CmEvent& event) override;

 private:
  Farewell(Device& device, rdma_cm_id* id);
  ~Farewell();

  Device& device_;
  rdma_cm_id* const id_;
  const Executor::TimerId timer_;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_FAREWELL_H_
