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

// In which of `forms` the call fails; -1: it does not fail.
int FailureOf(const char* name, int forms);

// Sets errno and returns it if the call fails; 0: it does not fail.
inline int ErrorOf(const char* name, std::initializer_list<int> errors) {
  if (!failures_armed.load(std::memory_order_relaxed)) [[likely]]
    return 0;
  const int form = FailureOf(name, static_cast<int>(errors.size()));
  return form < 0 ? 0 : errno = errors.begin()[form];
}

// The outcome of a librdmacm call. Spoilt returns true if it has replaced `outcome` by a failure.
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

// The status that FailWork (told.h) has asked for; `request` is null for a receive.
ibv_wc_status ToldStatus(const ibv_send_wr* request);

// How a request of the send queue, or a receive, fails; IBV_WC_SUCCESS: it does not fail.
inline ibv_wc_status FailedStatus(const char* name, const ibv_send_wr* request,
                                  std::initializer_list<ibv_wc_status> statuses) {
  if (!failures_armed.load(std::memory_order_relaxed)) [[likely]]
    return IBV_WC_SUCCESS;
  if (const ibv_wc_status told = ToldStatus(request); told != IBV_WC_SUCCESS) return told;
  const int form = FailureOf(name, static_cast<int>(statuses.size()));
  return form < 0 ? IBV_WC_SUCCESS : statuses.begin()[form];
}

// The kinds of objects that LiveObjects of failing_calls.h counts.
enum class Kind { kDomain, kRegion, kWindow, kCompletionQueue, kSharedQueue, kPair, kChannel, kId };
constexpr int kKinds = 8;
inline constinit std::atomic<int> live[kKinds] = {};
inline void Made(Kind kind) { ++live[static_cast<int>(kind)]; }
inline void Gone(Kind kind) { --live[static_cast<int>(kind)]; }

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_FAILURES_H_
