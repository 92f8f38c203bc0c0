// What the kernel says about a process.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_PROCESS_FACTS_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_PROCESS_FACTS_H_

#include <time.h>

namespace viaduct::tests {

// INT_MAX, more than any test allows, if they cannot be counted: that takes a descriptor.
int OpenDescriptors();
int Threads();
// Proportional set size of this process without files: a page shared by two counts half in each.
// KiB.
long PssKib();
// `clock`: CLOCK_MONOTONIC, CLOCK_THREAD_CPUTIME_ID or CLOCK_PROCESS_CPUTIME_ID.
double SecondsOf(clockid_t clock);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_PROCESS_FACTS_H_
