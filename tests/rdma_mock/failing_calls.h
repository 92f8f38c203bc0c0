// Calls of the device's libraries that fail, and events and completions that report a failure, as
// they may come from hardware, its driver or a kernel at its limits. Any thread.
//
// Not included are failures that no driver produces: those of calls that end something, and of
// calls that ask for a completion queue's events.
#ifndef VIADUCT_TESTS_RDMA_MOCK_FAILING_CALLS_H_
#define VIADUCT_TESTS_RDMA_MOCK_FAILING_CALLS_H_

#include <string>

namespace viaduct::rdma_mock {

// Each call fails in this many forms. One that has fewer forms uses them in rotation.
constexpr int kFailureForms = 3;

// The n-th of these calls from now on fails, once and in this form; 0: none fails.
void FailCall(int n, int form);
// The call that has failed since the last FailCall; null: none.
const char* FailedCall();

// The number of live objects of the device, with the name of each kind. After a program has given
// everything back, only a channel of the device itself and the id by which it is bound are left.
std::string LiveObjects();

// The same for a program that has the device in its libviaduct-rdma.so.1, where the symbol
// rdma_mock_failing_calls is a FailingCalls.
struct FailingCalls {
  void (*fail)(int n, int form);
  const char* (*failed)();
  std::string (*live)();
  void (*break_device)();  // told.h: kDeviceFatal
};

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_FAILING_CALLS_H_
