// A program whose child calls what it likes, and the program that it is connected with. Used by
// tests of both interfaces: they say how a message goes each way and what must be as before.
#ifndef VIADUCT_TESTS_FAULTS_FORKING_H_
#define VIADUCT_TESTS_FAULTS_FORKING_H_

#include <functional>

#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {

// Forks between two exchanges; expectations of `in_child` hold in the child, those of `look`
// afterwards here.
void ExchangeAndFork(Peer& peer, const std::function<void()>& exchange,
                     const std::function<void()>& in_child, const std::function<void()>& look);
// The other side of it.
void ExchangeWithForking(Peer& peer, const std::function<void()>& exchange,
                         const std::function<void()>& look);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FORKING_H_
