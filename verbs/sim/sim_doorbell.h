// How completion queues sleep in a simulation: they run it meanwhile.
#ifndef VIADUCT_VERBS_SIM_SIM_DOORBELL_H_
#define VIADUCT_VERBS_SIM_SIM_DOORBELL_H_

#include <atomic>
#include <cstdint>

#include "verbs/sim/sim_executor.h"
#include "verbs/soft/doorbell.h"

namespace viaduct::verbs {

class SimDoorbell final : public Doorbell {
 public:
  explicit SimDoorbell(SimExecutor& executor) : executor_(executor) {}

  Nanos SpinTime() const override { return 0; }
  // Arrivals are events, which notify their pair.
  void Collect() override {}
  WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) override;
  void Wake(std::atomic<uint32_t>&) override {}  // the sleeper checks after each event
  void HeavyFence() override {}                  // one thread

 private:
  SimExecutor& executor_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SIM_SIM_DOORBELL_H_
