// Whose handle is whose, beside somebody else's provider. DAT checklist 29.
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_registry.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/providers/registry.h"

namespace viaduct::tests {
namespace {

// Handles in a page that nobody may read, and half a word before it; and numbers of all kinds.
TEST(Handles, C029_GarbageIsNobodysHandle) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    DAT_IA_HANDLE probe, mine;
    ASSERT_EQ(Open("probe0", &probe), DAT_SUCCESS);
    ASSERT_EQ(Open("mine", &mine), DAT_SUCCESS);
    const long page = sysconf(_SC_PAGESIZE);
    char* const pages = static_cast<char*>(mmap(nullptr, static_cast<size_t>(2 * page), PROT_READ,
                                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_EQ(mprotect(pages + page, static_cast<size_t>(page), PROT_NONE), 0);
    void* zone;
    ASSERT_EQ(dat_pz_create(mine, &zone), DAT_SUCCESS);
    ASSERT_EQ(dat_pz_free(zone), DAT_SUCCESS);
    for (void* garbage : {static_cast<void*>(nullptr), reinterpret_cast<void*>(0x1),
                          reinterpret_cast<void*>(0x1234), reinterpret_cast<void*>(~uintptr_t{0}),
                          static_cast<void*>(pages), static_cast<void*>(pages + page),
                          static_cast<void*>(pages + page - 4), zone, mine}) {
      EXPECT_EQ(DAT_GET_TYPE(dat_ep_free(garbage)), DAT_UINT32{DAT_INVALID_HANDLE}) << garbage;
      if (garbage == mine) continue;
      EXPECT_EQ(DAT_GET_TYPE(dat_ia_close(garbage, DAT_CLOSE_ABRUPT_FLAG)),
                DAT_UINT32{DAT_INVALID_HANDLE});
    }
    EXPECT_EQ(Facts()->last_slot, -1);
    EXPECT_EQ(dat_ia_close(probe, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(dat_ia_close(mine, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

TEST(Handles, AsyncDispatcherOfAnotherProviderIsRefused) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    ProbeFacts* const facts = Facts();
    DAT_IA_HANDLE probe, mine, more;
    DAT_EVD_HANDLE probes = DAT_HANDLE_NULL, ours = DAT_HANDLE_NULL;
    ASSERT_EQ(Open("probe0", &probe, &probes), DAT_SUCCESS);
    ASSERT_EQ(Open("mine", &mine, &ours), DAT_SUCCESS);
    const DAT_RETURN refused = Error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
    EXPECT_EQ(Open("probe0", &more, &ours), refused);
    EXPECT_EQ(Open("mine", &more, &probes), refused);
    EXPECT_EQ(dat_ia_close(probe, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    EXPECT_EQ(facts->finis, 1);
    EXPECT_EQ(dat_ia_close(mine, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
  });
}

TEST(Handles, ADispatcherOfAnotherAdapterIsRefused) {
  RunAlone([] {
    UseConf(Line("one", "libdapl-viaduct.so.2", "127.0.0.1") +
            Line("two", "libdapl-viaduct.so.2", "127.0.0.2"));
    DAT_IA_HANDLE one, again, two;
    ASSERT_EQ(Open("one", &one), DAT_SUCCESS);
    ASSERT_EQ(Open("one", &again), DAT_SUCCESS);
    ASSERT_EQ(Open("two", &two), DAT_SUCCESS);
    const auto create = [&](DAT_IA_HANDLE of) {
      DAT_EVD_HANDLE events;
      EXPECT_EQ(dat_evd_create(of, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &events),
                DAT_SUCCESS);
      DAT_EP_HANDLE ep;
      return dat_ep_create(one, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, events, nullptr,
                           &ep);
    };
    EXPECT_EQ(create(again), DAT_SUCCESS);
    EXPECT_EQ(create(two), Error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN));
    for (DAT_IA_HANDLE ia : {one, again, two}) {
      EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
    }
  });
}

TEST(Handles, AdaptersHandleHasOneForm) {
  RunAlone([] {
    UseConf(Line("probe0", Probe()) + Line("mine", "libdapl-viaduct.so.2", "lo"));
    DAT_IA_HANDLE probe, mine, shown = nullptr;
    ASSERT_EQ(Open("probe0", &probe), DAT_SUCCESS);
    ASSERT_EQ(Open("mine", &mine), DAT_SUCCESS);
    for (DAT_IA_HANDLE ia : {probe, mine}) {
      EXPECT_EQ(dats_get_ia_handle(ia, &shown), DAT_SUCCESS);
      EXPECT_EQ(shown, ia);
    }
    EXPECT_EQ(dats_get_ia_handle(nullptr, &shown),
              Error(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
    EXPECT_EQ(dats_get_ia_handle(mine, nullptr), Error(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
  });
}

}  // namespace
}  // namespace viaduct::tests
