// Lives of a program, in each of which another system call fails; its peer is one process for all.
#ifndef VIADUCT_TESTS_FAULTS_LIVES_H_
#define VIADUCT_TESTS_FAULTS_LIVES_H_

#include <stdexcept>

namespace viaduct::tests {

// Thrown by a life that ends early, which is its right where a call has failed.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Each system call of failing_calls.h fails in a life of its own, the first of its kind, the next,
// and so on. No life hangs, crashes, keeps anything or is refused without a failure. A life with
// `last` tells the survivor to end, which it then does without failures of its own.
void FailEachCall(void (*survive)(), void (*live)(bool last));

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_LIVES_H_
