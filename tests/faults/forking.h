// A program whose child calls what it likes, and the program that it is connected with. Used by
// tests of both interfaces: they define how a message goes each way and what must be unchanged.
#ifndef VIADUCT_TESTS_FAULTS_FORKING_H_
#define VIADUCT_TESTS_FAULTS_FORKING_H_

#include <sys/types.h>

#include <functional>

#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {

// Forks between two exchanges; expectations of `in_child` hold in the child, those of `look`
// afterwards here.
void ExchangeAndFork(Peer& peer, const std::function<void()>& exchange,
                     const std::function<void()>& in_child, const std::function<void()>& look);
// The peer of ExchangeAndFork. `with_child` is what it does for the child.
void ExchangeWithForking(
    Peer& peer, const std::function<void()>& exchange, const std::function<void()>& look,
    const std::function<void()>& with_child = [] {});
// Forks a process that runs `body`. EndOf waits for its end: 0 if no expectation failed there.
pid_t StartChild(const std::function<void()>& body);
int EndOf(pid_t child);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FORKING_H_
