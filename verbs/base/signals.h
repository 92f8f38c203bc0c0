// Signal handlers are the program's and run on its threads: the engine starts its own threads with
// signals blocked, which they inherit, and so does what a program's callback starts there. Only
// those that a thread causes itself are not: blocked they end the process without a word.
#ifndef VIADUCT_VERBS_BASE_SIGNALS_H_
#define VIADUCT_VERBS_BASE_SIGNALS_H_

#include <signal.h>

#include <initializer_list>

namespace viaduct::verbs {

// No handler runs on this thread while it lives.
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
