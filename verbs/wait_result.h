// How a sleep on a futex ended, as the result of a completion queue's wait.
#ifndef VIADUCT_VERBS_WAIT_RESULT_H_
#define VIADUCT_VERBS_WAIT_RESULT_H_

#include "verbs/base/futex.h"
#include "verbs/device.h"

namespace viaduct::verbs {

inline WaitResult ToWaitResult(FutexResult result) {
  switch (result) {
    case FutexResult::kTimedOut:
      return WaitResult::kTimedOut;
    case FutexResult::kInterrupted:
      return WaitResult::kInterrupted;
    case FutexResult::kWoken:
      break;
  }
  return WaitResult::kReady;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_WAIT_RESULT_H_
