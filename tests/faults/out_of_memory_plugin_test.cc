// The engine under somebody else's registry, where memory ends.
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/failing_memory.h"
#include "tests/faults/registry.h"

namespace viaduct::tests {
namespace {

TEST(OutOfMemoryUnderARegistry, AFailedDatRspCreateLeavesNoPoint) {
  RunAlone([] {
    const DAT_PROVIDER* const table = ServeAdapter("plug", "lo");
    ASSERT_NE(table, nullptr);
    DAT_IA_HANDLE ia, shown;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
    ASSERT_EQ(OpenAdapter("plug", &async, &ia, &shown), DAT_SUCCESS);
    ASSERT_EQ(table->evd_create_func(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd), DAT_SUCCESS);
    int n = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      DAT_RSP_HANDLE rsp;
      FailAllocation(n);
      const DAT_RETURN result = table->rsp_create_func(ia, Port(n), DAT_HANDLE_NULL, evd, &rsp);
      failed = StopFailing();
      if (result == DAT_SUCCESS) {
        DAT_RSP_PARAM param;
        EXPECT_EQ(table->rsp_query_func(rsp, DAT_RSP_FIELD_ALL, &param), DAT_SUCCESS);
        EXPECT_EQ(table->rsp_free_func(rsp), DAT_SUCCESS);
        EXPECT_EQ(table->ep_free_func(param.ep_handle), DAT_SUCCESS);
      } else {
        EXPECT_TRUE(failed);
        EXPECT_EQ(DAT_GET_TYPE(result), DAT_UINT32{DAT_INSUFFICIENT_RESOURCES});
      }
    }
    EXPECT_GT(n, 3) << "the library allocates elsewhere";
    // Nothing of them is left.
    EXPECT_EQ(table->evd_free_func(evd), DAT_SUCCESS);
    EXPECT_EQ(table->ia_close_func(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

// A registry announces an adapter once, and does not hear that there was no memory for it.
TEST(OutOfMemoryUnderARegistry, AnAdapterOpensWhenThereIsRoomForItsHandles) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs address space itself";
#endif
  RunAlone([] {
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    constexpr rlim_t kLittle = 8 << 20;
    rlimit limit;
    ASSERT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + kLittle;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    const DAT_PROVIDER* const table = ServeAdapter("plug", "lo");
    ASSERT_NE(table, nullptr);
    DAT_IA_HANDLE ia, shown;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    EXPECT_EQ(DAT_GET_TYPE(OpenAdapter("plug", &async, &ia, &shown)),
              DAT_UINT32{DAT_INSUFFICIENT_RESOURCES});
    limit.rlim_cur = before;
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    ASSERT_EQ(OpenAdapter("plug", &async, &ia, &shown), DAT_SUCCESS);
    EXPECT_EQ(table->ia_close_func(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

// A thread's first call needs memory. Without it the point stays, and can be freed later.
TEST(OutOfMemoryUnderARegistry, APointThatIsNotFreedStays) {
  RunAlone([] {
    const DAT_PROVIDER* const table = ServeAdapter("plug", "lo");
    ASSERT_NE(table, nullptr);
    DAT_IA_HANDLE ia, shown;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
    DAT_RSP_HANDLE rsp;
    ASSERT_EQ(OpenAdapter("plug", &async, &ia, &shown), DAT_SUCCESS);
    ASSERT_EQ(table->evd_create_func(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd), DAT_SUCCESS);
    ASSERT_EQ(table->rsp_create_func(ia, Port(0), DAT_HANDLE_NULL, evd, &rsp), DAT_SUCCESS);
    DAT_RETURN freed = DAT_SUCCESS;
    FailNewThreads();
    std::thread([&] { freed = table->rsp_free_func(rsp); }).join();
    StopFailing();
    EXPECT_EQ(DAT_GET_TYPE(freed), DAT_UINT32{DAT_INSUFFICIENT_RESOURCES});
    DAT_RSP_PARAM param;
    EXPECT_EQ(table->rsp_query_func(rsp, DAT_RSP_FIELD_ALL, &param), DAT_SUCCESS);
    EXPECT_EQ(table->rsp_free_func(rsp), DAT_SUCCESS);
    EXPECT_EQ(table->ep_free_func(param.ep_handle), DAT_SUCCESS);
    EXPECT_EQ(table->evd_free_func(evd), DAT_SUCCESS);
    EXPECT_EQ(table->ia_close_func(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

// The end of an adapter needs no memory, also in a process that never had a reserved point.
TEST(OutOfMemoryUnderARegistry, AnAdapterCloses) {
  RunAlone([] {
    const DAT_PROVIDER* const table = ServeAdapter("plug", "lo");
    ASSERT_NE(table, nullptr);
    DAT_IA_HANDLE ia, shown;
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    ASSERT_EQ(OpenAdapter("plug", &async, &ia, &shown), DAT_SUCCESS);
    FailAllocationsFrom(1);
    const DAT_RETURN freed = table->rsp_free_func(DAT_HANDLE_NULL);
    const DAT_RETURN closed = table->ia_close_func(ia, DAT_CLOSE_ABRUPT_FLAG);
    StopFailing();
    EXPECT_EQ(DAT_GET_TYPE(freed), DAT_UINT32{DAT_INVALID_HANDLE});
    EXPECT_EQ(closed, DAT_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
