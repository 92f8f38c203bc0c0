// Thread cancellation (pthread_cancel) would leave the engine's locks held, wherever it struck.
//
// So it is disabled in every call but those of the data path, and a call that sleeps for its caller
// lets it strike in one place: asleep in the kernel. The thread is then unwound from there, and
// destructors release what the frames in between hold. The data path reaches none of POSIX's
// cancellation points, since its system calls bypass libc (uncancelled.h), and cancellation is
// disabled around the few calls of RDMA's libraries in which there may be one.
#ifndef VIADUCT_VERBS_BASE_CANCELLATION_H_
#define VIADUCT_VERBS_BASE_CANCELLATION_H_

#include <pthread.h>

#include <utility>

namespace viaduct::verbs {

namespace internal {

// The thread's cancellation state while it sleeps.
extern thread_local constinit int state_asleep __attribute__((tls_model("initial-exec")));

}  // namespace internal

// Disables cancellation, even asleep. It may strike at the end of the scope.
class CancellationDisabled {
 public:
  CancellationDisabled() : CancellationDisabled(false) {}
  ~CancellationDisabled() noexcept(false) {
    internal::state_asleep = old_asleep_;
    pthread_setcancelstate(old_, nullptr);
    pthread_setcanceltype(old_type_, nullptr);
  }
  CancellationDisabled(const CancellationDisabled&) = delete;
  CancellationDisabled& operator=(const CancellationDisabled&) = delete;

 protected:
  explicit CancellationDisabled(bool but_asleep) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_);
    // glibc's signal may come late, and then only the type decides whether it strikes.
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old_type_);
    old_asleep_ =
        std::exchange(internal::state_asleep, but_asleep ? old_ : int{PTHREAD_CANCEL_DISABLE});
  }

 private:
  int old_;
  int old_type_;
  int old_asleep_;
};

// Allows cancellation only asleep, if the calling thread may be cancelled at all.
class CancellationAsleep : public CancellationDisabled {
 public:
  CancellationAsleep() : CancellationDisabled(true) {}
};

// Makes a system call that sleeps. The caller is inside no EpochGuard and holds no lock.
long SleepIn(long number, long a, long b, long c, long d, long e, long f);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CANCELLATION_H_
