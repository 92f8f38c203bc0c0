#include "tests/rdma_mock/failing_calls.h"

#include "tests/rdma_mock/failures.h"

namespace viaduct::rdma_mock {
namespace {

constexpr const char* kKindNames[kKinds] = {"domain",       "region", "window",  "completion queue",
                                            "shared queue", "pair",   "channel", "id"};

std::atomic<int> countdown{0};
std::atomic<int> wanted_form{0};
std::atomic<uint32_t> random_one_of{0};
std::atomic<uint32_t> random_state{0};
std::atomic<const char*> failed{nullptr};
std::atomic<int> failures{0};

// splitmix32 of a counter: any thread takes the next.
uint32_t Random() {
  uint32_t z = random_state.fetch_add(0x9e3779b9u) + 0x9e3779b9u;
  z = (z ^ (z >> 16)) * 0x85ebca6bu;
  z = (z ^ (z >> 13)) * 0xc2b2ae35u;
  return z ^ (z >> 16);
}

}  // namespace

int FailureOf(const char* name, int forms) {
  int form = -1;
  if (const uint32_t one_of = random_one_of; one_of != 0) {
    if (Random() % one_of == 0) form = static_cast<int>(Random() % static_cast<uint32_t>(forms));
  } else if (countdown > 0 && countdown.fetch_sub(1) == 1) {
    form = wanted_form % forms;
  }
  if (form < 0) return form;
  failed = name;
  ++failures;
  return form;
}

void FailCall(int n, int form) {
  random_one_of = 0;
  wanted_form = form;
  failed = nullptr;
  countdown = n;
  failures_armed = n != 0;
}

void FailCallsAtRandom(uint32_t seed, uint32_t one_of) {
  countdown = 0;
  random_state = seed;
  random_one_of = one_of;
  failures_armed = one_of != 0;
}

const char* FailedCall() { return failed; }

int FailedCalls() { return failures; }

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
    viaduct::rdma_mock::FailCall,    viaduct::rdma_mock::FailCallsAtRandom,
    viaduct::rdma_mock::FailedCall,  viaduct::rdma_mock::FailedCalls,
    viaduct::rdma_mock::LiveObjects,
};
