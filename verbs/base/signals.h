// Signal handlers are the program's and run on its threads: the engine starts its own threads with
// signals blocked. Those threads inherit that, and so do threads that a program's callback starts.
// Signals that a thread raises by a fault of its own stay unblocked: blocked, they would end the
// process without a word.
#ifndef VIADUCT_VERBS_BASE_SIGNALS_H_
#define VIADUCT_VERBS_BASE_SIGNALS_H_

#include <signal.h>

#include <initializer_list>

namespace viaduct::verbs {

// While one exists, no signal handler runs on its thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_SIGNALS_H_
