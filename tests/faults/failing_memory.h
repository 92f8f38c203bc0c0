// Memory that ends: operator new is this program's own, for the libraries under test too.
#ifndef VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_
#define VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_

namespace viaduct::tests {

// The n-th allocation of this thread from now on fails, once.
void FailAllocation(int n);
// Whether it has. None will any more.
bool StopFailing();

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_MEMORY_H_
