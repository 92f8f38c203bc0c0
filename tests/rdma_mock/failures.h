// Whether a call of the mock fails now (failing_calls.h).
#ifndef VIADUCT_TESTS_RDMA_MOCK_FAILURES_H_
#define VIADUCT_TESTS_RDMA_MOCK_FAILURES_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <initializer_list>

namespace viaduct::rdma_mock {

inline constinit std::atomic<bool> failures_armed{false};

// In which of `forms` it fails; -1: it does not.
int FailureOf(const char* name, int forms);

// An errno, which is set; 0: it does not fail.
inline int ErrorOf(const char* name, std::initializer_list<int> errors) {
  if (!failures_armed.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  const int form = FailureOf(name, static_cast<int>(errors.size()));
  return form < 0 ? 0 : errno = errors.begin()[form];
}

// The outcome of a call of librdmacm, which may have become another.
struct Outcome {
  rdma_cm_event_type type;
  int status;
};
inline bool Spoilt(const char* name, std::initializer_list<Outcome> outcomes, Outcome* outcome) {
  if (!failures_armed.load(std::memory_order_relaxed)) [[likely]]
    return false;
  const int form = FailureOf(name, static_cast<int>(outcomes.size()));
  if (form < 0) return false;
  *outcome = outcomes.begin()[form];
  return true;
}

// As FailWork has it (told.h), of a receive if `request` is null.
ibv_wc_status ToldStatus(const ibv_send_wr* request);

// How a request of the device, or a receive, fails; IBV_WC_SUCCESS: it does not.
inline ibv_wc_status FailedStatus(const char* name, const ibv_send_wr* request,
                                  std::initializer_list<ibv_wc_status> statuses) {
  if (!failures_armed.load(std::memory_order_relaxed)) [[likely]]
    return IBV_WC_SUCCESS;
  if (const ibv_wc_status told = ToldStatus(request); told != IBV_WC_SUCCESS) return told;
  const int form = FailureOf(name, static_cast<int>(statuses.size()));
  return form < 0 ? IBV_WC_SUCCESS : statuses.begin()[form];
}

// Of failing_calls.h.
enum class Kind { kDomain, kRegion, kWindow, kCompletionQueue, kSharedQueue, kPair, kChannel, kId };
constexpr int kKinds = 8;
inline constinit std::atomic<int> live[kKinds] = {};
inline void Made(Kind kind) { ++live[static_cast<int>(kind)]; }
inline void Gone(Kind kind) { --live[static_cast<int>(kind)]; }

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_FAILURES_H_
