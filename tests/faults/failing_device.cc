#include "tests/faults/failing_device.h"

#include <dlfcn.h>
#include <poll.h>

#include <cstdio>
#include <cstdlib>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "tests/rdma_mock/failing_calls.h"

namespace viaduct::tests {
namespace {

// The mock's functions, in the library that the engine has opened.
const rdma_mock::FailingCalls& Calls() {
  static const auto* const calls = static_cast<const rdma_mock::FailingCalls*>(
      dlsym(dlopen("libviaduct-rdma.so.1", RTLD_NOW), "rdma_mock_failing_calls"));
  return *calls;
}

// Returns the message of Refused, or "" if the life ends as it should.
std::string HowItEnds(const std::function<void()>& live) {
  try {
    live();
    return "";
  } catch (const Refused& early) {
    return early.what();
  }
}

// The objects of a device that is open: the channel of its completions, and the id by which it is
// bound; with siw a completion queue as well.
std::string OfTheDevice() {
  const char* const iwarp = std::getenv("RDMA_MOCK_IWARP");
  const bool siw = iwarp != nullptr && std::string(iwarp) == "siw";
  return std::string("0 domain, 0 region, 0 window, ") + (siw ? "1" : "0") +
         " completion queue, 0 shared queue, 0 pair, 1 channel, 1 id";
}

// Waits, for a limited time, until the device has the objects `expected`; returns what it has.
std::string LiveObjects(const std::string& expected) {
  for (int i = 0; i < 20'000 && Calls().live() != expected; ++i) poll(nullptr, 0, 1);
  return Calls().live();
}

}  // namespace

std::string FailedCall() {
  const char* const failed = Calls().failed();
  return failed != nullptr ? failed : "nothing";
}

void BreakDevice() { Calls().break_device(); }

void FailEachCallOfTheDevice(const std::function<void()>& live) {
  ASSERT_EQ(HowItEnds(live), "");
  const std::string before = OfTheDevice();
  ASSERT_EQ(LiveObjects(before), before);
  for (int form = 0; form < rdma_mock::kFailureForms; ++form) {
    bool whole = false;
    std::set<std::string> survived;
    for (int n = 1; !whole && !testing::Test::HasFailure(); ++n) {
      Calls().fail(n, form);
      const std::string how = HowItEnds(live);
      EXPECT_EQ(LiveObjects(before), before);
      whole = Calls().failed() == nullptr;
      const std::string failed = FailedCall();
      Calls().fail(0, 0);
      SCOPED_TRACE(failed + " failed in form " + std::to_string(form) + ": " + how);
      if (std::getenv("RDMA_FAILING_CALLS_TOLD") != nullptr) {
        printf("%d %d %s: %s\n", form, n, failed.c_str(), how.c_str());
      }
      if (whole) {
        EXPECT_EQ(how, "");
        EXPECT_GT(n, 20);
      } else if (survived.insert(failed).second) {
        EXPECT_EQ(HowItEnds(live), "") << "the next life";
      }
      EXPECT_FALSE(testing::Test::HasFailure());
    }
  }
}

}  // namespace viaduct::tests
