// Memory that ends: operator new is this program's own, for the libraries under test too.
#ifndef VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_
#define VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_

#include <cstdint>

namespace viaduct::tests {

// The n-th allocation of this thread from now on fails, once.
void FailAllocation(int n);
// That one and all later ones fail.
void FailAllocationsFrom(int n);
// In threads that have made no allocation so far, all allocations fail.
void FailNewThreads();
// Waits until one of these has failed; returns false if none has after ten seconds.
bool AwaitFailureOfNewThread();
// Allocations fail no longer, in this thread or in new ones. Returns whether one of this thread has
// failed.
bool StopFailing();

// The number of allocations that all threads have made and not freed.
int64_t LiveAllocations();
// Whether no more than `most` live within ten seconds: the library's own thread frees, too.
bool LiveAtMost(int64_t most);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_
