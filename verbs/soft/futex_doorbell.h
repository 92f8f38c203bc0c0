// The doorbell of a process whose wires are all served by the executor: it needs only futexes.
#ifndef VIADUCT_VERBS_SOFT_FUTEX_DOORBELL_H_
#define VIADUCT_VERBS_SOFT_FUTEX_DOORBELL_H_

#include "verbs/soft/doorbell.h"

namespace viaduct::verbs {

class FutexDoorbell final : public Doorbell {
 public:
  explicit FutexDoorbell(Nanos spin_time) : spin_time_(spin_time) {}
  Nanos SpinTime() const override { return spin_time_; }
  void Collect() override {}
  WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) override;
  void Wake(std::atomic<uint32_t>& word) override;
  void HeavyFence() override;

 private:
  const Nanos spin_time_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_FUTEX_DOORBELL_H_
