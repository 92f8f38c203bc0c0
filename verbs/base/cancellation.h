// Thread cancellation would leave the engine's locks behind: blocking calls disable it inside.
#ifndef VIADUCT_VERBS_BASE_CANCELLATION_H_
#define VIADUCT_VERBS_BASE_CANCELLATION_H_

#include <pthread.h>

namespace viaduct::verbs {

class CancellationDisabled {
 public:
  CancellationDisabled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_); }
  ~CancellationDisabled() { pthread_setcancelstate(old_, nullptr); }
  CancellationDisabled(const CancellationDisabled&) = delete;
  CancellationDisabled& operator=(const CancellationDisabled&) = delete;

 private:
  int old_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CANCELLATION_H_
