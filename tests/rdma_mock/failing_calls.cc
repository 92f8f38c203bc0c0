#include "tests/rdma_mock/failing_calls.h"

#include "tests/rdma_mock/failures.h"
#include "tests/rdma_mock/told.h"

namespace viaduct::rdma_mock {
namespace {

constexpr const char* kKindNames[kKinds] = {"domain",       "region", "window",  "completion queue",
                                            "shared queue", "pair",   "channel", "id"};

std::atomic<int> countdown{0};
std::atomic<int> wanted_form{0};
std::atomic<const char*> failed{nullptr};

}  // namespace

int FailureOf(const char* name, int forms) {
  if (countdown <= 0 || countdown.fetch_sub(1) != 1) return -1;
  failed = name;
  return wanted_form % forms;
}

void FailCall(int n, int form) {
  wanted_form = form;
  failed = nullptr;
  countdown = n;
  failures_armed = n != 0;
}

const char* FailedCall() { return failed; }

std::string LiveObjects() {
  std::string text;
  for (int i = 0; i < kKinds; ++i) {
    text += std::to_string(live[i]) + ' ' + kKindNames[i] + (i + 1 < kKinds ? ", " : "");
  }
  return text;
}

}  // namespace viaduct::rdma_mock

extern "C" __attribute__((visibility("default")))
const viaduct::rdma_mock::FailingCalls rdma_mock_failing_calls = {
    viaduct::rdma_mock::FailCall,
    viaduct::rdma_mock::FailedCall,
    viaduct::rdma_mock::LiveObjects,
    [] { viaduct::rdma_mock::TellOfDevice(viaduct::rdma_mock::DeviceEvent::kDeviceFatal); },
};
