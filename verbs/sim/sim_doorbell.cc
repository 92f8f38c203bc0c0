#include "verbs/sim/sim_doorbell.h"

#include <cstdio>
#include <cstdlib>

namespace viaduct::verbs {

WaitResult SimDoorbell::Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  if (executor_.RunUntil([&] { return word.load() != seen; }, deadline)) return WaitResult::kReady;
  if (deadline.infinite()) {
    std::fprintf(stderr, "simulation: a completion queue is waited for that nothing reaches\n");
    std::abort();
  }
  return WaitResult::kTimedOut;
}

}  // namespace viaduct::verbs
