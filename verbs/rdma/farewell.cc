#include "verbs/rdma/farewell.h"

#include "verbs/rdma/errors.h"
#include "verbs/rdma/patience.h"

namespace viaduct::verbs::rdma {

Farewell::Farewell(Device& device, rdma_cm_id* id)
    : device_(device),
      id_(id),
      timer_(device.loop().RunAt(device.loop().Now() + kFarewell, [this] { delete this; })) {}

Farewell::~Farewell() {
  device_.loop().Cancel(timer_);
  rdma_destroy_id(id_);
  device_.Forget(*this);
}

void Farewell::Say(Device& device, rdma_cm_id* id) {
  device.SetHandler(id, new Farewell(device, id));
  // Nobody has done so yet if the attempt succeeded only after it had been given up.
  rdma_disconnect(id);
}

void Farewell::OnCmEvent(const CmEvent& event) {
  if (!IsOfTheWay(event.type)) delete this;
}

}  // namespace viaduct::verbs::rdma
