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

// An entry with the parameters "waiting" has functions that wait: they post `inside`, sleep until
// `leave` is posted, and fail. dat_evd_wait gets one of these in place of the event and returns
// DAT_ABORT; a graceful dat_ia_close gets a ProbeWaitingClose in place of the adapter.
struct ProbeWait {
  sem_t inside;
  sem_t leave;
};

struct ProbeWaitingClose {
  const void* provider;  // the first word of the adapter's handle
  ProbeWait wait;
};

#endif  // VIADUCT_TESTS_PROVIDERS_PROBE_H_
