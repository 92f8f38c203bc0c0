// Whether an expectation has failed in a child, which may be killed before it can report that.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_FAILURE_FLAG_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_FAILURE_FLAG_H_

#include <sys/mman.h>

#include <atomic>
#include <new>

#include "gtest/gtest.h"

namespace viaduct::tests {

// Created before the fork.
class FailureFlag {
 public:
  FailureFlag() {
    void* const shared =
        mmap(nullptr, sizeof *failed_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    failed_ = new (shared) std::atomic<bool>(false);
  }
  ~FailureFlag() { munmap(failed_, sizeof *failed_); }
  FailureFlag(const FailureFlag&) = delete;
  FailureFlag& operator=(const FailureFlag&) = delete;

  // Called in the child: from then on each failure raises the flag at once.
  void Watch() { ::testing::UnitTest::GetInstance()->listeners().Append(new Listener(*failed_)); }
  bool raised() const { return *failed_; }

 private:
  class Listener final : public ::testing::EmptyTestEventListener {
   public:
    explicit Listener(std::atomic<bool>& failed) : failed_(failed) {}
    void OnTestPartResult(const ::testing::TestPartResult& result) override {
      if (result.failed()) failed_ = true;
    }

   private:
    std::atomic<bool>& failed_;
  };

  std::atomic<bool>* failed_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_FAILURE_FLAG_H_
