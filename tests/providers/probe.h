// What the probe provider shows of itself: probe_facts() in libprobe.so.
#ifndef VIADUCT_TESTS_PROVIDERS_PROBE_H_
#define VIADUCT_TESTS_PROVIDERS_PROBE_H_

#include <semaphore.h>

struct ProbeFacts {
  int inits;
  int finis;
  int adapters;       // open now
  int last_slot;      // of the table's functions, from 0; -1: none was called yet
  void* last_handle;  // its first argument
  char parameters[256];
  void (*after_fini)();  // called, if it is set, when dat_provider_fini has done its work
};

// An entry with the parameters "waiting" has a dat_evd_wait that gets one of these in place of the
// event: it posts `inside`, sleeps until `leave` is posted, and returns DAT_ABORT.
struct ProbeWait {
  sem_t inside;
  sem_t leave;
};

#endif  // VIADUCT_TESTS_PROVIDERS_PROBE_H_
