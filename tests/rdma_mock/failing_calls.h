// Calls of the device's libraries that fail, and events and completions that tell of a failure, as
// hardware, its driver or a kernel at its limits may have them. Any thread.
//
// What no driver does is not among them: calls that end something, and those that ask for a
// completion queue's events.
#ifndef VIADUCT_TESTS_RDMA_MOCK_FAILING_CALLS_H_
#define VIADUCT_TESTS_RDMA_MOCK_FAILING_CALLS_H_

#include <string>

namespace viaduct::rdma_mock {

// Each of them has so many forms, or fewer, which then come again.
constexpr int kFailureForms = 3;

// The n-th of them from now on fails in that form, once; 0: none does.
void FailCall(int n, int form);
// What has failed last since FailCall; null: nothing.
const char* FailedCall();

// What exists of the device, each kind by its name; only a channel of the device itself and what
// it is bound by are left of a program that has given everything back.
std::string LiveObjects();

// The same for a program that has the device in its libviaduct-rdma.so.1, where the symbol
// rdma_mock_failing_calls is one of these.
struct FailingCalls {
  void (*fail)(int n, int form);
  const char* (*failed)();
  std::string (*live)();
  void (*break_device)();  // told.h: kDeviceFatal
};

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_FAILING_CALLS_H_
