// Queries under the distribution's registry, which has handles of its own for adapters: what a
// query shows is the handle that the program knows.
#include <dat2/udat.h>
#include <dlfcn.h>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

// A function of the registry's, whose prototype our header has.
#define OF_REGISTRY(function) (*reinterpret_cast<decltype(&function)>(dlsym(registry, #function)))

TEST(Queries, ShowTheRegistrysHandle) {
  RunAlone([] {
    ChooseRoute();
    // The plug-in looks for its registry among the symbols of the process.
    void* const registry = dlopen("libdat2.so.2", RTLD_NOW | RTLD_GLOBAL);
    if (registry == nullptr) GTEST_SKIP() << "libdat2 is not installed: tools/setup test";
    char name[] = "soft0";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz;
    ASSERT_EQ(OF_REGISTRY(dat_ia_openv)(name, 8, &async, &ia, 2, 0, DAT_TRUE), DAT_SUCCESS);
    ASSERT_EQ(OF_REGISTRY(dat_pz_create)(ia, &pz), DAT_SUCCESS);
    DAT_PZ_PARAM pz_param;
    ASSERT_EQ(OF_REGISTRY(dat_pz_query)(pz, DAT_PZ_FIELD_ALL, &pz_param), DAT_SUCCESS);
    EXPECT_EQ(pz_param.ia_handle, ia);
    DAT_RMR_HANDLE rmr;
    DAT_RMR_PARAM rmr_param;
    ASSERT_EQ(OF_REGISTRY(dat_rmr_create)(pz, &rmr), DAT_SUCCESS);
    ASSERT_EQ(OF_REGISTRY(dat_rmr_query)(rmr, DAT_RMR_FIELD_ALL, &rmr_param), DAT_SUCCESS);
    EXPECT_EQ(rmr_param.ia_handle, ia);
    DAT_SRQ_ATTR attributes = {8, 1, DAT_SRQ_LW_DEFAULT};
    DAT_SRQ_HANDLE srq;
    DAT_SRQ_PARAM srq_param;
    ASSERT_EQ(OF_REGISTRY(dat_srq_create)(ia, pz, &attributes, &srq), DAT_SUCCESS);
    ASSERT_EQ(OF_REGISTRY(dat_srq_query)(srq, DAT_SRQ_FIELD_ALL, &srq_param), DAT_SUCCESS);
    EXPECT_EQ(srq_param.ia_handle, ia);
    EXPECT_EQ(OF_REGISTRY(dat_ia_close)(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
