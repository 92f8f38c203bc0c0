// Calls under the distribution's registry. It has handles of its own for adapters: a query has to
// show the handle that the program knows. Also what programs rely on where our plug-in does as
// OFED's providers do (dat/api/ofed_ways.h).
#include <dat2/udat.h>
// Must come after udat.h.
#include <dat2/dat_ib_extensions.h>
#include <dlfcn.h>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"
#include "tests/interop/route.h"

namespace viaduct::tests {
namespace {

// A function of the registry; our header has its prototype.
#define OF_REGISTRY(function) (*reinterpret_cast<decltype(&function)>(dlsym(registry, #function)))

// The distribution's registry, with our plug-in in its dat.conf; null if it is not installed.
void* LoadRegistry() {
  ChooseRoute();
  // The plug-in looks for its registry among the symbols of the process.
  return dlopen("libdat2.so.2", RTLD_NOW | RTLD_GLOBAL);
}

TEST(Queries, ShowTheRegistrysHandle) {
  RunAlone([] {
    void* const registry = LoadRegistry();
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

// The registry passes the adapter's name, and later the handle, to the plug-in's function.
TEST(Queries, AnAdapterIsOpenedForAQueryAndClosed) {
  RunAlone([] {
    void* const registry = LoadRegistry();
    if (registry == nullptr) GTEST_SKIP() << "libdat2 is not installed: tools/setup test";
    // What dat_ib_extensions.h calls.
    const auto dat_extension_op =
        reinterpret_cast<decltype(&::dat_extension_op)>(dlsym(registry, "dat_extension_op"));
    char name[] = "soft0", unknown[] = "unknown";
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_IA_ATTR attributes = {};
    DAT_PROVIDER_ATTR provider = {};
    ASSERT_EQ(dat_ib_open_query(name, &ia, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_ALL,
                                &provider),
              DAT_SUCCESS);
    EXPECT_STREQ(attributes.adapter_name, "soft0");
    EXPECT_STREQ(provider.provider_name, "Viaduct");
    EXPECT_EQ(dat_ib_close_query(ia), DAT_SUCCESS);
    EXPECT_NE(dat_ib_close_query(ia), DAT_SUCCESS);
    EXPECT_NE(dat_ib_open_query(unknown, &ia, 0, nullptr, 0, nullptr), DAT_SUCCESS);
  });
}

// It is freed before any request, while its request waits, and when its request has been shown.
TEST(ReservedPoint, IsFreedOnceInEachState) {
  RunAlone([] {
    void* const registry = LoadRegistry();
    if (registry == nullptr) GTEST_SKIP() << "libdat2 is not installed: tools/setup test";
    char name[] = "soft0";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL, requests, connections;
    DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
    DAT_PZ_HANDLE pz;
    DAT_IA_ATTR attributes;
    const DAT_CONN_QUAL port = Port(0);
    ASSERT_EQ(OF_REGISTRY(dat_ia_openv)(name, 8, &async, &ia, 2, 0, DAT_TRUE), DAT_SUCCESS);
    ASSERT_EQ(OF_REGISTRY(dat_ia_query)(ia, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr),
              DAT_SUCCESS);
    ASSERT_EQ(OF_REGISTRY(dat_pz_create)(ia, &pz), DAT_SUCCESS);
    ASSERT_EQ(OF_REGISTRY(dat_evd_create)(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests),
              DAT_SUCCESS);
    ASSERT_EQ(
        OF_REGISTRY(dat_evd_create)(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections),
        DAT_SUCCESS);
    const auto endpoint = [&] {
      DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
      EXPECT_EQ(OF_REGISTRY(dat_ep_create)(ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, connections,
                                           nullptr, &ep),
                DAT_SUCCESS);
      return ep;
    };
    const auto reserve = [&](DAT_EP_HANDLE ep) {
      DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
      EXPECT_EQ(OF_REGISTRY(dat_rsp_create)(ia, port, ep, requests, &rsp), DAT_SUCCESS);
      return rsp;
    };
    // Returns when the request has taken the point.
    const auto ask = [&](DAT_EP_HANDLE reserved) {
      ASSERT_EQ(OF_REGISTRY(dat_ep_connect)(endpoint(), attributes.ia_address_ptr, port,
                                            DAT_TIMEOUT_INFINITE, 0, nullptr, DAT_QOS_BEST_EFFORT,
                                            DAT_CONNECT_DEFAULT_FLAG),
                DAT_SUCCESS);
      DAT_EP_STATE state = DAT_EP_STATE_RESERVED;
      while (state != DAT_EP_STATE_PASSIVE_CONNECTION_PENDING) {
        ASSERT_EQ(OF_REGISTRY(dat_ep_get_status)(reserved, &state, nullptr, nullptr), DAT_SUCCESS);
      }
    };
    const auto shown = [&] {
      DAT_EVENT event;
      DAT_COUNT more;
      EXPECT_EQ(OF_REGISTRY(dat_evd_wait)(requests, DAT_TIMEOUT_INFINITE, 1, &event, &more),
                DAT_SUCCESS);
      return event.event_data.cr_arrival_event_data.sp_handle.rsp_handle;
    };
    const auto release = OF_REGISTRY(dat_rsp_free);
    const DAT_RSP_HANDLE unused = reserve(endpoint());
    EXPECT_EQ(release(unused), DAT_SUCCESS);
    EXPECT_EQ(DAT_GET_TYPE(release(unused)), DAT_UINT32{DAT_INVALID_HANDLE});
    // A point that could not be created is shown with no request.
    const DAT_RSP_HANDLE alone = reserve(endpoint());
    DAT_RSP_HANDLE none;
    EXPECT_EQ(DAT_GET_TYPE(OF_REGISTRY(dat_rsp_create)(ia, port, endpoint(), requests, &none)),
              DAT_UINT32{DAT_CONN_QUAL_IN_USE});
    EXPECT_EQ(release(alone), DAT_SUCCESS);
    for (const bool may_be_there : {true, false}) {
      SCOPED_TRACE(may_be_there);
      const DAT_EP_HANDLE first = endpoint(), second = endpoint();
      const DAT_RSP_HANDLE waiting = reserve(first);
      ask(first);
      DAT_RSP_PARAM param;
      while (!may_be_there &&
             OF_REGISTRY(dat_rsp_query)(waiting, DAT_RSP_FIELD_ALL, &param) == DAT_SUCCESS) {
      }
      EXPECT_EQ(release(waiting), DAT_SUCCESS);
      EXPECT_EQ(DAT_GET_TYPE(release(waiting)), DAT_UINT32{DAT_INVALID_HANDLE});
      const DAT_RSP_HANDLE seen = reserve(second);
      ask(second);
      EXPECT_EQ(shown(), DAT_HANDLE_NULL) << "the request of a point that is freed";
      EXPECT_EQ(shown(), seen);
      EXPECT_EQ(release(seen), DAT_SUCCESS);
      EXPECT_EQ(DAT_GET_TYPE(release(seen)), DAT_UINT32{DAT_INVALID_HANDLE});
    }
    EXPECT_EQ(OF_REGISTRY(dat_ia_close)(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
  });
}

}  // namespace
}  // namespace viaduct::tests
