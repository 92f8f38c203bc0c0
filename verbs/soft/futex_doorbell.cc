#include "verbs/soft/futex_doorbell.h"

#include <climits>

#include "verbs/base/asymmetric_fence.h"
#include "verbs/base/futex.h"
#include "verbs/wait_result.h"

namespace viaduct::verbs {

WaitResult FutexDoorbell::Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  return ToWaitResult(FutexWait(word, seen, deadline));
}

void FutexDoorbell::Wake(std::atomic<uint32_t>& word) { FutexWake(word, INT_MAX); }

void FutexDoorbell::HeavyFence() { viaduct::verbs::HeavyFence(); }

}  // namespace viaduct::verbs
