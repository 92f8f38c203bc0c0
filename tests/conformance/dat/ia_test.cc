// dat_ia_*, dat_pz_*, dat_strerror, dat_registry_list_providers: the pages of those names; DAT
// checklist 5-8, 14-16, 20-28, 31.
#include <sched.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/conformance/dat/side.h"

#if VIADUCT_TEST_DAT == 12
#include <dat/dat_registry.h>
#else
#include <dat2/dat_registry.h>
#endif

namespace viaduct::tests {
namespace {

char kName[] = "soft0";

DAT_RETURN Open(const char* name, DAT_EVD_HANDLE* async, DAT_IA_HANDLE* ia,
                DAT_UINT32 major = DAT_VERSION_MAJOR, DAT_UINT32 minor = DAT_VERSION_MINOR,
                DAT_BOOLEAN thread_safe = DAT_FALSE, DAT_COUNT length = 8) {
  return dat_ia_openv(const_cast<char*>(name), length, async, ia, major, minor, thread_safe);
}

TEST(StrError, C006_NamesAndUnknownValues) {
  RunAlone([] {
    const char *type = nullptr, *subtype = nullptr;
    Must(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_EP, &type,
                      &subtype));
    EXPECT_STREQ(type, "DAT_INVALID_HANDLE");
    EXPECT_STREQ(subtype, "DAT_INVALID_HANDLE_EP");
    Must(dat_strerror(DAT_SUCCESS, &type, &subtype));
    EXPECT_STREQ(type, "DAT_SUCCESS");
    EXPECT_STREQ(subtype, "");
    // Programs print both strings whatever the call returns.
    EXPECT_TRUE(
        Fails(dat_strerror(0x0fff0000, &type, &subtype), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_STREQ(type, "unknown error");
    EXPECT_STREQ(subtype, "");
    EXPECT_TRUE(Fails(dat_strerror(DAT_INVALID_STATE | 0xffff, &type, &subtype),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_STREQ(type, "DAT_INVALID_STATE");
    EXPECT_STREQ(subtype, "unknown minor error");
    EXPECT_TRUE(Fails(dat_strerror(0, nullptr, &subtype), DAT_INVALID_PARAMETER));
    Must(dat_strerror(DAT_TIMEOUT_EXPIRED, &type, nullptr));
    EXPECT_STREQ(type, "DAT_TIMEOUT_EXPIRED");
  });
}

TEST(Registry, C007_C008_TooShortAListGetsTheNumber) {
  RunAlone([] {
    DAT_COUNT count = -1;
    EXPECT_TRUE(Fails(dat_registry_list_providers(0, &count, nullptr), DAT_INVALID_PARAMETER));
    ASSERT_GE(count, 1);
    std::vector<DAT_PROVIDER_INFO> infos(static_cast<size_t>(count));
    std::vector<DAT_PROVIDER_INFO*> list;
    for (DAT_PROVIDER_INFO& info : infos) list.push_back(&info);
    DAT_COUNT again = -1;
    EXPECT_TRUE(
        Fails(dat_registry_list_providers(count - 1, &again, list.data()), DAT_INVALID_PARAMETER));
    EXPECT_EQ(again, count);
    EXPECT_TRUE(Fails(dat_registry_list_providers(count, &again, nullptr), DAT_INVALID_PARAMETER));
    EXPECT_TRUE(Fails(dat_registry_list_providers(count, nullptr, list.data()),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    Must(dat_registry_list_providers(count, &again, list.data()));
    EXPECT_EQ(again, count);
    for (const DAT_PROVIDER_INFO& info : infos) {
      EXPECT_EQ(info.dapl_version_major, DAT_UINT32{DAT_VERSION_MAJOR});
    }
    list.back() = nullptr;
    EXPECT_TRUE(Fails(dat_registry_list_providers(count, &again, list.data()),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
  });
}

// Early Open MPI and Sun's example pass room for one adapter, or the address of an array's
// first element.
TEST(Registry, S_ABuiltInAdapterIsListedOnce) {
  RunAlone([] {
    DAT_COUNT count = 0;
    EXPECT_TRUE(Fails(dat_registry_list_providers(0, &count, nullptr), DAT_INVALID_PARAMETER));
    std::vector<DAT_PROVIDER_INFO> infos(static_cast<size_t>(count));
    std::vector<DAT_PROVIDER_INFO*> list;
    for (DAT_PROVIDER_INFO& info : infos) list.push_back(&info);
    Must(dat_registry_list_providers(count, &count, list.data()));
    int found = 0;
    for (const DAT_PROVIDER_INFO& info : infos) {
      if (strcmp(info.ia_name, kName) != 0) continue;
      ++found;
      EXPECT_EQ(info.is_thread_safe, DAT_FALSE);
    }
    EXPECT_EQ(found, 1);
    for (DAT_BOOLEAN thread_safe : {DAT_FALSE, DAT_TRUE}) {
      DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
      DAT_IA_HANDLE ia;
      Must(Open(kName, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, thread_safe));
      Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    }
  });
}

// OFED does this: Open MPI's udapl has room for eight and expects success.
TEST(Registry, S_TooShortAListIsFilledWhereTheUserSaysSo) {
  RunAlone([] {
    setenv("VIADUCT_SHORT_LIST", "filled", 1);
    DAT_PROVIDER table = {};
    const DAT_PROVIDER_INFO own = {"own", DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE};
    Must(dat_registry_add_provider(&table, &own));
    DAT_PROVIDER_INFO info = {};
    DAT_PROVIDER_INFO* list[] = {&info};
    DAT_COUNT count = -1;
    Must(dat_registry_list_providers(1, &count, list));
    EXPECT_EQ(count, 1);
    EXPECT_EQ(info.dapl_version_major, DAT_UINT32{DAT_VERSION_MAJOR});
    EXPECT_TRUE(Fails(dat_registry_list_providers(0, &count, list), DAT_INVALID_PARAMETER));
    EXPECT_GE(count, 2);
    unsetenv("VIADUCT_SHORT_LIST");
  });
}

TEST(IaOpen, C014_Versions) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    EXPECT_TRUE(Fails(Open(kName, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR + 1),
                      DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND));
    EXPECT_TRUE(Fails(Open(kName, &async, &ia, 7, 0), DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND));
    // The other version's structures belong to another library.
    EXPECT_TRUE(Fails(Open(kName, &async, &ia, DAT_VERSION_MAJOR == 1 ? 2 : 1, 0),
                      DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND));
    EXPECT_EQ(async, DAT_HANDLE_NULL);
#if VIADUCT_TEST_DAT == 12
    Must(Open(kName, &async, &ia, 1, 1));  // an adapter of a higher minor version serves
    Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    async = DAT_HANDLE_NULL;
#endif
    Must(Open(kName, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_TRUE));
    Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

TEST(IaOpen, C015_UnknownName) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    EXPECT_TRUE(Fails(Open("no-such-adapter", &async, &ia), DAT_PROVIDER_NOT_FOUND,
                      DAT_NAME_NOT_REGISTERED));
    EXPECT_TRUE(Fails(Open("", &async, &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED));
  });
}

TEST(IaOpen, C016_Parameters) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    const std::string longest(255, 'a'), too_long(256, 'a');
    EXPECT_TRUE(
        Fails(Open(too_long.c_str(), &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_TRUE(Fails(Open(longest.c_str(), &async, &ia), DAT_PROVIDER_NOT_FOUND));
    EXPECT_TRUE(Fails(Open(nullptr, &async, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1));
    EXPECT_TRUE(Fails(Open(kName, nullptr, &ia), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(Open(kName, &async, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    for (DAT_COUNT length : {0, -1}) {
      EXPECT_TRUE(
          Fails(Open(kName, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE, length),
                DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    }
    EXPECT_TRUE(
        Fails(Open(kName, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE, 0x7fffffff),
              DAT_INSUFFICIENT_RESOURCES));
    EXPECT_EQ(async, DAT_HANDLE_NULL);
  });
}

TEST(IaOpen, C020_MakesAnAsyncDispatcher) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    Must(Open(kName, &async, &ia, DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_FALSE, 13));
    DAT_EVD_PARAM param;
    Must(dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
    EXPECT_EQ(param.ia_handle, ia);
    EXPECT_GE(param.evd_qlen, 13);
    EXPECT_EQ(param.cno_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(param.evd_flags, DAT_EVD_ASYNC_FLAG);
    EXPECT_TRUE(IsEmpty(async));
    Must(dat_evd_resize(async, 26));
    EXPECT_TRUE(Fails(dat_evd_free(async), DAT_INVALID_STATE));  // the adapter feeds it
    DAT_EVD_HANDLE shown = DAT_HANDLE_NULL;
    Must(dat_ia_query(ia, &shown, 0, nullptr, 0, nullptr));
    EXPECT_EQ(shown, async);
    Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
    EXPECT_TRUE(Fails(dat_evd_query(async, DAT_EVD_FIELD_ALL, &param), DAT_INVALID_HANDLE));
  });
}

TEST(IaOpen, C021_TwoOpensAreIndependent) {
  RunAlone([] {
    Side one;
    {
      Side two;
      EXPECT_NE(one.ia, two.ia);
      EXPECT_NE(one.async_evd, two.async_evd);
    }
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(one.ia, &pz));
  });
}

// Debian's dapltest gives the endpoints of several opens one connection dispatcher.
TEST(IaOpen, A_EndpointMayUseADispatcherOfAnotherOpen) {
  RunPair(
      [](Peer& peer) {
        Side side;
        (void)side.Listen(Port(0));
        peer.Tell("listening");
        peer.Await("rejected");
      },
      [](Peer& peer) {
        Side side;
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL, events;
        DAT_IA_HANDLE other;
        Must(Open(kName, &async, &other));
        Must(dat_evd_create(other, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &events));
        DAT_EP_HANDLE ep, late;
        for (DAT_EP_HANDLE* each : {&ep, &late}) {
          Must(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, events, nullptr,
                             each));
        }
        peer.Await("listening");
        side.Connect(ep, static_cast<DAT_CONN_QUAL>(Port(0) + 1));  // nobody listens there
        NextConnection(events, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
        side.Connect(late, static_cast<DAT_CONN_QUAL>(Port(0) + 1));
        Must(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));  // they lose their dispatcher
        Must(dat_ep_free(ep));
        Must(dat_ep_free(late));
        peer.Tell("rejected");
      });
}

// A service point may do so too. After the dispatcher has gone, requests are rejected, not queued.
TEST(IaOpen, A_ServicePointOutlivesADispatcherOfAnotherOpen) {
  RunPair(
      [](Peer& peer) {
        DAT_EVD_HANDLE async = DAT_HANDLE_NULL, other_async = DAT_HANDLE_NULL, requests;
        DAT_IA_HANDLE ia, other;
        Must(Open(kName, &async, &ia));
        Must(Open(kName, &other_async, &other));
        Must(dat_evd_create(other, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests));
        DAT_PSP_HANDLE psp;
        Must(dat_psp_create(ia, Port(0), requests, DAT_PSP_CONSUMER_FLAG, &psp));
        Must(dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
        peer.Tell("deaf");
        peer.Await("rejected");
        Must(dat_psp_free(psp));
        Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("deaf");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
        peer.Tell("rejected");
      });
}

TEST(IaOpen, C024_ConsumersAsyncDispatcherSurvives) {
  RunAlone([] {
    Side owner;
    DAT_EVD_HANDLE async = owner.NewEvd(DAT_EVD_ASYNC_FLAG);
    for (DAT_CLOSE_FLAGS flags : {DAT_CLOSE_GRACEFUL_FLAG, DAT_CLOSE_ABRUPT_FLAG}) {
      DAT_EVD_HANDLE passed = async;
      DAT_IA_HANDLE ia;
      Must(Open(kName, &passed, &ia));
      EXPECT_EQ(passed, async);
      Must(dat_ia_close(ia, flags));
      EXPECT_TRUE(IsEmpty(async));
    }
    Must(dat_evd_free(async));
    DAT_EVD_HANDLE no_async = owner.NewEvd(DAT_EVD_DTO_FLAG);
    DAT_IA_HANDLE ia;
    EXPECT_TRUE(
        Fails(Open(kName, &no_async, &ia), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC));
  });
}

TEST(IaOpen, S_AsyncDispatcherElsewhere) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_EVD_ASYNC_EXISTS;
    DAT_IA_HANDLE ia;
    Must(Open(kName, &async, &ia));
    EXPECT_EQ(async, DAT_EVD_OUT_OF_SCOPE);
    DAT_EVD_HANDLE shown = DAT_HANDLE_NULL;
    Must(dat_ia_query(ia, &shown, 0, nullptr, 0, nullptr));
    EXPECT_EQ(shown, DAT_EVD_OUT_OF_SCOPE);
    Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

// Neither another open's dispatcher gets them, nor one that was given to no open.
TEST(IaOpen, S_AsyncEventsAreOfTheirOpen) {
  RunAlone([] {
    Side side, other;
    const DAT_EVD_HANDLE given = side.NewEvd(DAT_EVD_ASYNC_FLAG),
                         idle = side.NewEvd(DAT_EVD_ASYNC_FLAG);
    DAT_EVD_HANDLE async = given;
    DAT_IA_HANDLE ia;
    Must(Open(kName, &async, &ia));
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(ia, &pz));
    DAT_SRQ_ATTR attributes = {8, 1, DAT_SRQ_LW_DEFAULT};
    DAT_SRQ_HANDLE srq;
    Must(dat_srq_create(ia, pz, &attributes, &srq));
    Must(dat_srq_set_lw(srq, 4));  // the queue is below it already
    EXPECT_EQ(Next(given).event_data.asynch_error_event_data.dat_handle, srq);
    for (DAT_EVD_HANDLE evd : {given, idle, side.async_evd, other.async_evd}) {
      EXPECT_TRUE(IsEmpty(evd));
    }
    Must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
  });
}

// ParaStation uses one dispatcher's handle for all its opens.
TEST(IaOpen, S_AsyncDispatcherThatEndedWithItsOwner) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE owner, other;
    Must(Open(kName, &async, &owner));
    Must(Open(kName, &async, &other));
    DAT_EVD_HANDLE shown = DAT_HANDLE_NULL;
    Must(dat_ia_query(other, &shown, 0, nullptr, 0, nullptr));
    EXPECT_EQ(shown, async);
    Must(dat_ia_close(owner, DAT_CLOSE_GRACEFUL_FLAG));
    Must(dat_ia_query(other, &shown, 0, nullptr, 0, nullptr));
    EXPECT_EQ(shown, DAT_EVD_OUT_OF_SCOPE);
    Must(dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

// An object of any kind makes a graceful close fail, even alone.
TEST(IaClose, C022_GracefulNeedsEverythingFreed) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    Must(Open(kName, &async, &ia));
    auto refused = [&](const char* what) {
      EXPECT_TRUE(Fails(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE)) << what;
    };
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(ia, &pz));
    refused("zone");
    Must(dat_pz_free(pz));
    DAT_EVD_HANDLE evd;
    Must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
    refused("dispatcher");
    DAT_PSP_HANDLE psp;
    Must(dat_psp_create(ia, Port(0), evd, DAT_PSP_CONSUMER_FLAG, &psp));
    refused("public service point");
    Must(dat_psp_free(psp));
    Must(dat_evd_free(evd));
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                       nullptr, &ep));
    refused("endpoint");
    Must(dat_ep_free(ep));
    {
      Side other;  // has the dispatcher, so that the point is the only object
      Must(dat_psp_create(ia, Port(0), other.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
      refused("public service point alone");
      Must(dat_psp_free(psp));
    }
    Must(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
  });
}

TEST(IaClose, C023_AbruptWakesWaiters) {
  RunAlone([] {
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    DAT_IA_HANDLE ia;
    Must(Open(kName, &async, &ia));
    DAT_EVD_HANDLE evd;
    Must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd));
    DAT_RETURN result = DAT_SUCCESS;
    std::thread waiter([&] {
      DAT_EVENT event;
      DAT_COUNT more;
      result = dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more);
    });
    // The thread waits once it keeps others from dequeuing.
    DAT_EVENT event;
    while (DAT_GET_TYPE(dat_evd_dequeue(evd, &event)) != DAT_INVALID_STATE) sched_yield();
    Must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
    waiter.join();
    EXPECT_TRUE(Fails(result, DAT_ABORT));
  });
}

TEST(IaClose, C025_InvalidFlags) {
  RunAlone([] {
    Side side;
    EXPECT_TRUE(Fails(dat_ia_close(side.ia, static_cast<DAT_CLOSE_FLAGS>(2)), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG2));
  });
}

TEST(IaQuery, C026_NullPointers) {
  RunAlone([] {
    Side side;
    Must(dat_ia_query(side.ia, nullptr, 0, nullptr, 0, nullptr));
    EXPECT_TRUE(Fails(dat_ia_query(side.ia, nullptr, DAT_IA_FIELD_ALL, nullptr, 0, nullptr),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(dat_ia_query(side.ia, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, nullptr),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    DAT_IA_ATTR attributes;
    EXPECT_TRUE(Fails(dat_ia_query(side.ia, nullptr, ~DAT_IA_ATTR_MASK{0}, &attributes, 0, nullptr),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    DAT_PROVIDER_ATTR provider;
    EXPECT_TRUE(
        Fails(dat_ia_query(side.ia, nullptr, 0, nullptr, ~DAT_PROVIDER_ATTR_MASK{0}, &provider),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
  });
}

TEST(IaQuery, C027_Minima) {
  RunAlone([] {
    Side side;
    EXPECT_GE(side.provider.max_private_data_size, 64);
    EXPECT_EQ(256 % side.provider.optimal_buffer_alignment, 0u);
    EXPECT_EQ(side.provider.dapl_version_major, DAT_UINT32{DAT_VERSION_MAJOR});
    EXPECT_EQ(side.provider.dapl_version_minor, DAT_UINT32{DAT_VERSION_MINOR});
    EXPECT_STREQ(side.attributes.adapter_name, kName);
    ASSERT_NE(side.attributes.ia_address_ptr, nullptr);
    EXPECT_EQ(side.attributes.ia_address_ptr->sa_family, AF_INET);
    EXPECT_GT(side.attributes.max_eps, 0);
    EXPECT_GT(side.attributes.max_dto_per_ep, 0);
    EXPECT_GT(side.attributes.max_iov_segments_per_dto, 0);
    EXPECT_GT(side.attributes.max_message_size, 0u);
  });
}

TEST(IaQuery, C028_MergingMatrixAgreesWithCreate) {
  RunAlone([] {
    Side side;
    const int flags[6] = {DAT_EVD_SOFTWARE_FLAG,   DAT_EVD_CR_FLAG,       DAT_EVD_DTO_FLAG,
                          DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG};
    for (int set = 1; set < 64; ++set) {
      int merged = 0;
      bool supported = true;
      for (int i = 0; i < 6; ++i) {
        if ((set >> i & 1) == 0) continue;
        EXPECT_TRUE(side.provider.evd_stream_merging_supported[i][i]);
        merged |= flags[i];
        for (int j = 0; j < 6; ++j) {
          if ((set >> j & 1) != 0) supported &= side.provider.evd_stream_merging_supported[i][j];
        }
      }
      DAT_EVD_HANDLE evd;
      const DAT_RETURN value =
          dat_evd_create(side.ia, 8, DAT_HANDLE_NULL, static_cast<DAT_EVD_FLAGS>(merged), &evd);
      EXPECT_EQ(value == DAT_SUCCESS, supported) << set;
    }
  });
}

TEST(Pz, C031_InUse) {
  RunAlone([] {
    Side side;
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(side.ia, &pz));
    DAT_PZ_PARAM param;
    Must(dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
    EXPECT_EQ(param.ia_handle, side.ia);
    EXPECT_TRUE(Fails(dat_pz_query(pz, static_cast<DAT_PZ_PARAM_MASK>(2), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_pz_query(pz, DAT_PZ_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(dat_pz_create(side.ia, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, nullptr,
                       &ep));
    EXPECT_TRUE(Fails(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE));
    Must(dat_ep_free(ep));
    std::swap(pz, side.pz);
    {
      Memory memory(side, 64);
      std::swap(pz, side.pz);
      EXPECT_TRUE(Fails(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE));
    }
    Must(dat_pz_free(pz));
  });
}

}  // namespace
}  // namespace viaduct::tests
