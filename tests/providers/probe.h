// What the probe provider shows of itself: probe_facts() in libprobe.so.
#ifndef VIADUCT_TESTS_PROVIDERS_PROBE_H_
#define VIADUCT_TESTS_PROVIDERS_PROBE_H_

struct ProbeFacts {
  int inits;
  int finis;
  int adapters;       // open now
  int last_slot;      // of the table's functions, from 0; -1: none was called yet
  void* last_handle;  // its first argument
  char parameters[256];
};

#endif  // VIADUCT_TESTS_PROVIDERS_PROBE_H_
