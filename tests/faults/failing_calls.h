// System calls that fail, as those of a kernel at its limits may, or that are a process's last.
#ifndef VIADUCT_TESTS_FAULTS_FAILING_CALLS_H_
#define VIADUCT_TESTS_FAULTS_FAILING_CALLS_H_

#include <cstdint>

#include "absl/types/span.h"

namespace viaduct::tests {

struct FailingCall {
  const char* name;
  long number;
  int error;
  bool (*counts)(const uint64_t* arguments);  // null: each does
};

// What a program may meet: no descriptor or memory left in process or kernel, a limit of threads
// or files, a signal in a sleep. Not among them is what the kernel does not do, such as a write to
// an eventfd that fails, nor memory of malloc, which has tests of its own.
absl::Span<const FailingCall> FailingCalls();

// Of the thread that calls this, and of all that it starts, the n-th such call fails and does
// nothing. Once in a process, and for the rest of it. False: the kernel has no filters that ask.
bool FailCall(const FailingCall& call, int n);
// Whether there has been an n-th.
bool CallHasFailed();

// The n-th system call, of whatever kind, of the thread that calls this and of all that it starts
// kills the process, and does nothing. Instead of FailCall, whose answer it has.
bool DieAtCall(int n);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_CALLS_H_
