#include "verbs/soft/futex_doorbell.h"

#include <climits>

#include "verbs/base/asymmetric_fence.h"
#include "verbs/base/futex.h"

namespace viaduct::verbs {

WaitResult FutexDoorbell::Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) {
  switch (FutexWait(word, seen, deadline)) {
    case FutexResult::kTimedOut:
      return WaitResult::kTimedOut;
    case FutexResult::kInterrupted:
      return WaitResult::kInterrupted;
    case FutexResult::kWoken:
      break;
  }
  return WaitResult::kReady;
}

void FutexDoorbell::Wake(std::atomic<uint32_t>& word) { FutexWake(word, INT_MAX); }

void FutexDoorbell::HeavyFence() { viaduct::verbs::HeavyFence(); }

}  // namespace viaduct::verbs
