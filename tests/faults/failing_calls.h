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

// The failures that a program may meet: no descriptor or memory left in process or kernel, a limit
// of threads or files, a signal during a sleep. Not included are failures that the kernel does not
// produce, such as that of a write to an eventfd, and those of malloc, which has tests of its own.
absl::Span<const FailingCall> FailingCalls();

// The n-th such call of the calling thread, and of all threads that it starts, fails and does
// nothing. Once in a process, and for the rest of its life. Returns false if the kernel has no
// filters that ask.
bool FailCall(const FailingCall& call, int n);
// Whether the n-th call has been made, and has failed.
bool CallHasFailed();

// The n-th system call, of any kind, of the calling thread and of all threads that it starts kills
// the process, and does nothing. Called instead of FailCall, and returns the same.
bool DieAtCall(int n);

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAILING_CALLS_H_
