// What ThreadSanitizer cannot see.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_SEES_THREADS_ONLY_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_SEES_THREADS_ONLY_H_

namespace viaduct::tests {

// Under ThreadSanitizer, a test is skipped if only its peer reads or writes its memory: the order
// then comes from messages between the processes, which ThreadSanitizer does not see.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kSeesThreadsOnly = true;
#else
inline constexpr bool kSeesThreadsOnly = false;
#endif
inline constexpr char kOrderedByThePeer[] = "the order comes from the peer's process";

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_SEES_THREADS_ONLY_H_
