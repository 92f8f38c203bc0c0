// Keeps the id of a connection over InfiniBand or RoCE that this side has ended, until the peer has
// answered the disconnect request. The kernel repeats that request for about a minute, but only
// while the id (and its process) exists; an idle peer that did not get it would never learn that it
// is alone.
#ifndef VIADUCT_VERBS_RDMA_FAREWELL_H_
#define VIADUCT_VERBS_RDMA_FAREWELL_H_

#include <rdma/rdma_cma.h>

#include "verbs/base/executor.h"
#include "verbs/rdma/device.h"

namespace viaduct::verbs::rdma {

// Destroys itself. Control thread.
class Farewell final : public CmHandler {
 public:
  // Disconnects a connected id, which it owns from now on. It ends when the peer answers, when the
  // kernel reports that no answer came, or at the latest after kFarewell.
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
