// Memory that ends: operator new is this program's own, for the libraries under test too.
#ifndef VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_
#define VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_

#include <cstdint>

namespace viaduct::tests {

// The n-th allocation of this thread from now on fails, once.
void FailAllocation(int n);
// That one and all behind it.
void FailAllocationsFrom(int n);
// All of threads that have made none so far.
void FailNewThreads();
// Until one has, within ten seconds.
bool AwaitFailureOfNewThread();
// Whether one of this thread has. None will any more, of this one or of new ones.
bool StopFailing();

// What all threads have allocated and not freed.
int64_t LiveAllocations();
// No more than `most` come to live, within ten seconds: the library's own thread frees, too.
bool LiveAtMost(int64_t most);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_
