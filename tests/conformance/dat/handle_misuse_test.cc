// Every handle argument of every function with NULL, garbage, freed and wrong-typed values: the
// documented error, no crash, no effect. DAT checklist 29, 30.
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

enum Type { kIa, kPz, kLmr, kEvd, kEp, kPsp, kRsp, kCno, kSrq, kRmr, kTypes };

constexpr DAT_OS_WAIT_PROXY_AGENT kNoAgent = {nullptr, nullptr};

// One live object of each type, and a freed one.
struct Objects {
  Objects() {
    live[kIa] = side.ia;
    live[kPz] = side.pz;
    live[kLmr] = memory.lmr;
    live[kEvd] = side.request_evd;
    live[kEp] = side.NewEp();
    live[kPsp] = side.Listen(Port(0));
    Must(dat_cno_create(side.ia, kNoAgent, &live[kCno]));
    Must(dat_rsp_create(side.ia, Port(1), side.NewEp(), side.cr_evd, &live[kRsp]));
    DAT_SRQ_ATTR queue = {8, 1, DAT_SRQ_LW_DEFAULT};
    Must(dat_srq_create(side.ia, side.pz, &queue, &live[kSrq]));
    Must(dat_rmr_create(side.pz, &live[kRmr]));

    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    char name[] = "soft0";
    Must(dat_ia_open(name, 8, &async, &freed[kIa]));
    Must(dat_ia_close(freed[kIa], DAT_CLOSE_GRACEFUL_FLAG));
    Must(dat_pz_create(side.ia, &freed[kPz]));
    Must(dat_pz_free(freed[kPz]));
    freed[kLmr] = Memory(side, 64).lmr;
    freed[kEvd] = side.NewEvd(DAT_EVD_DEFAULT_FLAG);
    Must(dat_evd_free(freed[kEvd]));
    freed[kEp] = side.NewEp();
    Must(dat_ep_free(freed[kEp]));
    freed[kPsp] = side.Listen(Port(2));
    Must(dat_psp_free(freed[kPsp]));
    Must(dat_rsp_create(side.ia, Port(2), side.NewEp(), side.cr_evd, &freed[kRsp]));
    Must(dat_rsp_free(freed[kRsp]));
    Must(dat_cno_create(side.ia, kNoAgent, &freed[kCno]));
    Must(dat_cno_free(freed[kCno]));
    Must(dat_srq_create(side.ia, side.pz, &queue, &freed[kSrq]));
    Must(dat_srq_free(freed[kSrq]));
    Must(dat_rmr_create(side.pz, &freed[kRmr]));
    Must(dat_rmr_free(freed[kRmr]));
  }

  // Handles that are not a live object of `type` (kTypes: of any type). NULL is left out where it
  // has a meaning of its own.
  std::vector<DAT_HANDLE> Bad(Type type, bool null_too = true) const {
    std::vector<DAT_HANDLE> bad = {reinterpret_cast<DAT_HANDLE>(0x3),
                                   reinterpret_cast<DAT_HANDLE>(0x1234),
                                   reinterpret_cast<DAT_HANDLE>(0x7fffffffff00),
                                   reinterpret_cast<DAT_HANDLE>(~uintptr_t{0}),
                                   const_cast<Objects*>(this),
                                   &garbage_on_heap->front()};
    for (uintptr_t off : {1, 4, 8}) {  // within the slot of a live one
      bad.push_back(reinterpret_cast<DAT_HANDLE>(reinterpret_cast<uintptr_t>(live[kPz]) + off));
    }
    if (null_too) bad.push_back(DAT_HANDLE_NULL);
    for (int t = 0; t < kTypes; ++t) {
      bad.push_back(freed[t]);
      if (type != kTypes && t != type) bad.push_back(live[t]);
    }
    return bad;
  }

  Side side;
  Memory memory{side, 64};
  DAT_HANDLE live[kTypes];
  DAT_HANDLE freed[kTypes];
  std::unique_ptr<std::vector<uint64_t>> garbage_on_heap =
      std::make_unique<std::vector<uint64_t>>(64, 0x4141414141414141);
};

// One handle argument, and the call that passes another handle in its place.
struct Argument {
  const char* name;
  Type type;
  DAT_UINT32 subtype;
  std::function<DAT_RETURN(Objects&, DAT_HANDLE)> call;
  bool null_is_valid = false;
};

// Where the calls would put the handle that they make; all of them fail.
thread_local DAT_HANDLE out;

std::vector<Argument> AdapterArguments() {
  return {
      {"ia_query", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_ia_query(h, nullptr, 0, nullptr, 0, nullptr); }},
      {"ia_close abrupt", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG); }},
      {"ia_close graceful", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_ia_close(h, DAT_CLOSE_GRACEFUL_FLAG); }},
      {"ia_open async", kEvd, DAT_INVALID_HANDLE_EVD_ASYNC,
       [](Objects&, DAT_HANDLE h) {
         char name[] = "soft0";
         DAT_EVD_HANDLE async = h;
         const DAT_RETURN value = dat_ia_open(name, 8, &async, &out);
         EXPECT_EQ(async, h);
         return value;
       },
       true},
      {"pz_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_pz_create(h, &out); }},
      {"pz_query", kPz, DAT_INVALID_HANDLE_PZ,
       [](Objects&, DAT_HANDLE h) {
         DAT_PZ_PARAM param;
         return dat_pz_query(h, DAT_PZ_FIELD_ALL, &param);
       }},
      {"pz_free", kPz, DAT_INVALID_HANDLE_PZ,
       [](Objects&, DAT_HANDLE h) { return dat_pz_free(h); }},
  };
}

DAT_REGION_DESCRIPTION At(void* address) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = address;
  return region;
}

DAT_RETURN TryLmr(DAT_HANDLE ia, DAT_HANDLE pz, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region) {
  DAT_LMR_CONTEXT context;
  return CreateLmr(ia, type, region, 64, pz, DAT_MEM_PRIV_ALL_FLAG, &out, &context, nullptr,
                   nullptr, nullptr);
}

std::vector<Argument> MemoryArguments() {
  static char bytes[64];
  return {
      {"lmr_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects& o, DAT_HANDLE h) {
         return TryLmr(h, o.live[kPz], DAT_MEM_TYPE_VIRTUAL, At(bytes));
       }},
      {"lmr_create pz", kPz, DAT_INVALID_HANDLE_PZ,
       [](Objects& o, DAT_HANDLE h) {
         return TryLmr(o.live[kIa], h, DAT_MEM_TYPE_VIRTUAL, At(bytes));
       }},
      {"lmr_create lmr", kLmr, DAT_INVALID_HANDLE_LMR,
       [](Objects& o, DAT_HANDLE h) {
         DAT_REGION_DESCRIPTION region;
         region.for_lmr_handle = h;
         return TryLmr(o.live[kIa], o.live[kPz], DAT_MEM_TYPE_LMR, region);
       }},
      {"lmr_query", kLmr, DAT_INVALID_HANDLE_LMR,
       [](Objects&, DAT_HANDLE h) {
         DAT_LMR_PARAM param;
         return dat_lmr_query(h, DAT_LMR_FIELD_ALL, &param);
       }},
      {"lmr_free", kLmr, DAT_INVALID_HANDLE_LMR,
       [](Objects&, DAT_HANDLE h) { return dat_lmr_free(h); }},
      {"lmr_sync_rdma_read", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_lmr_sync_rdma_read(h, nullptr, 0); }},
      {"lmr_sync_rdma_write", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_lmr_sync_rdma_write(h, nullptr, 0); }},
  };
}

std::vector<Argument> WindowArguments() {
  const auto bind_of = [](Objects& o, DAT_HANDLE rmr, DAT_HANDLE lmr, DAT_HANDLE ep) {
    DAT_RMR_CONTEXT context;
    return BindRmr(rmr, lmr, o.memory.Local(0, 64), DAT_MEM_PRIV_REMOTE_READ_FLAG, ep, Cookie(0),
                   DAT_COMPLETION_DEFAULT_FLAG, &context);
  };
  const auto bind = [=](Objects& o, DAT_HANDLE rmr, DAT_HANDLE ep) {
    return bind_of(o, rmr, o.live[kLmr], ep);
  };
  return {
    {"rmr_create", kPz, DAT_INVALID_HANDLE_PZ,
     [](Objects&, DAT_HANDLE h) { return dat_rmr_create(h, &out); }},
        {"rmr_query", kRmr, DAT_INVALID_HANDLE_RMR,
         [](Objects&, DAT_HANDLE h) {
           DAT_RMR_PARAM param;
           return dat_rmr_query(h, DAT_RMR_FIELD_ALL, &param);
         }},
        {"rmr_bind rmr", kRmr, DAT_INVALID_HANDLE_RMR,
         [=](Objects& o, DAT_HANDLE h) { return bind(o, h, o.live[kEp]); }},
        {"rmr_bind ep", kEp, DAT_INVALID_HANDLE_EP,
         [=](Objects& o, DAT_HANDLE h) { return bind(o, o.live[kRmr], h); }},
#if VIADUCT_TEST_DAT == 20
        {"rmr_bind lmr", kLmr, DAT_INVALID_HANDLE_LMR,
         [=](Objects& o, DAT_HANDLE h) { return bind_of(o, o.live[kRmr], h, o.live[kEp]); }, true},
#endif
        {"rmr_free", kRmr, DAT_INVALID_HANDLE_RMR,
         [](Objects&, DAT_HANDLE h) { return dat_rmr_free(h); }},
  };
}

std::vector<Argument> SharedQueueArguments() {
  static const DAT_SRQ_ATTR queue = {8, 1, DAT_SRQ_LW_DEFAULT};
  const auto create = [](Objects&, DAT_HANDLE ia, DAT_HANDLE pz) {
    DAT_SRQ_ATTR attributes = queue;
    return dat_srq_create(ia, pz, &attributes, &out);
  };
  return {
      {"srq_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [=](Objects& o, DAT_HANDLE h) { return create(o, h, o.live[kPz]); }},
      {"srq_create pz", kPz, DAT_INVALID_HANDLE_PZ,
       [=](Objects& o, DAT_HANDLE h) { return create(o, o.live[kIa], h); }},
      {"srq_query", kSrq, DAT_INVALID_HANDLE_SRQ,
       [](Objects&, DAT_HANDLE h) {
         DAT_SRQ_PARAM param;
         return dat_srq_query(h, DAT_SRQ_FIELD_ALL, &param);
       }},
      {"srq_resize", kSrq, DAT_INVALID_HANDLE_SRQ,
       [](Objects&, DAT_HANDLE h) { return dat_srq_resize(h, 8); }},
      {"srq_set_lw", kSrq, DAT_INVALID_HANDLE_SRQ,
       [](Objects&, DAT_HANDLE h) { return dat_srq_set_lw(h, 0); }},
      {"srq_post_recv", kSrq, DAT_INVALID_HANDLE_SRQ,
       [](Objects&, DAT_HANDLE h) { return dat_srq_post_recv(h, 0, nullptr, Cookie(0)); }},
      {"srq_free", kSrq, DAT_INVALID_HANDLE_SRQ,
       [](Objects&, DAT_HANDLE h) { return dat_srq_free(h); }},
      {"ep_create_with_srq", kSrq, DAT_INVALID_HANDLE_SRQ,
       [](Objects& o, DAT_HANDLE h) {
         DAT_EP_ATTR attributes = {};
         return dat_ep_create_with_srq(o.live[kIa], o.live[kPz], o.live[kEvd], o.live[kEvd],
                                       o.side.connect_evd, h, &attributes, &out);
       }},
  };
}

std::vector<Argument> DispatcherArguments() {
  static thread_local DAT_EVENT event = [] {
    DAT_EVENT e = {};
    e.event_number = DAT_SOFTWARE_EVENT;
    return e;
  }();
  static thread_local DAT_COUNT more;
  return {
      {"evd_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) {
         return dat_evd_create(h, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &out);
       }},
      {"evd_create cno", kCno, DAT_INVALID_HANDLE_CNO,
       [](Objects& o, DAT_HANDLE h) {
         return dat_evd_create(o.live[kIa], 8, h, DAT_EVD_DTO_FLAG, &out);
       },
       true},
      {"evd_modify_cno evd", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_modify_cno(h, DAT_HANDLE_NULL); }},
      {"evd_modify_cno cno", kCno, DAT_INVALID_HANDLE_CNO,
       [](Objects& o, DAT_HANDLE h) { return dat_evd_modify_cno(o.live[kEvd], h); }, true},
      {"evd_query", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) {
         DAT_EVD_PARAM param;
         return dat_evd_query(h, DAT_EVD_FIELD_ALL, &param);
       }},
      {"evd_resize", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_resize(h, 16); }},
      {"evd_post_se", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_post_se(h, &event); }},
      {"evd_dequeue", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_dequeue(h, &event); }},
      {"evd_wait", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_wait(h, 0, 1, &event, &more); }},
      {"evd_enable", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_enable(h); }},
      {"evd_disable", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_disable(h); }},
      {"evd_set_unwaitable", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_set_unwaitable(h); }},
      {"evd_clear_unwaitable", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_clear_unwaitable(h); }},
      {"evd_free", kEvd, DAT_INVALID_HANDLE1,
       [](Objects&, DAT_HANDLE h) { return dat_evd_free(h); }},
  };
}

std::vector<Argument> NotifierArguments() {
  return {
      {"cno_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects&, DAT_HANDLE h) { return dat_cno_create(h, kNoAgent, &out); }},
      {"cno_modify_agent", kCno, DAT_INVALID_HANDLE_CNO,
       [](Objects&, DAT_HANDLE h) { return dat_cno_modify_agent(h, kNoAgent); }},
      {"cno_query", kCno, DAT_INVALID_HANDLE_CNO,
       [](Objects&, DAT_HANDLE h) {
         DAT_CNO_PARAM param;
         return dat_cno_query(h, DAT_CNO_FIELD_ALL, &param);
       }},
      {"cno_wait", kCno, DAT_INVALID_HANDLE_CNO,
       [](Objects&, DAT_HANDLE h) { return dat_cno_wait(h, 0, &out); }},
      {"cno_free", kCno, DAT_INVALID_HANDLE_CNO,
       [](Objects&, DAT_HANDLE h) { return dat_cno_free(h); }},
  };
}

DAT_RETURN TryEp(DAT_HANDLE ia, DAT_HANDLE pz, DAT_HANDLE receive, DAT_HANDLE request,
                 DAT_HANDLE connect) {
  return dat_ep_create(ia, pz, receive, request, connect, nullptr, &out);
}

std::vector<Argument> EndpointLifeArguments() {
  return {
      {"ep_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects& o, DAT_HANDLE h) {
         return TryEp(h, o.live[kPz], o.live[kEvd], o.live[kEvd], o.side.connect_evd);
       }},
      {"ep_create pz", kPz, DAT_INVALID_HANDLE_PZ,
       [](Objects& o, DAT_HANDLE h) {
         return TryEp(o.live[kIa], h, o.live[kEvd], o.live[kEvd], o.side.connect_evd);
       },
       true},
      {"ep_create recv", kEvd, DAT_INVALID_HANDLE_EVD_RECV,
       [](Objects& o, DAT_HANDLE h) {
         return TryEp(o.live[kIa], o.live[kPz], h, o.live[kEvd], o.side.connect_evd);
       },
       true},
      {"ep_create request", kEvd, DAT_INVALID_HANDLE_EVD_REQUEST,
       [](Objects& o, DAT_HANDLE h) {
         return TryEp(o.live[kIa], o.live[kPz], o.live[kEvd], h, o.side.connect_evd);
       },
       true},
      {"ep_create connect", kEvd, DAT_INVALID_HANDLE_EVD_CONN,
       [](Objects& o, DAT_HANDLE h) {
         return TryEp(o.live[kIa], o.live[kPz], o.live[kEvd], o.live[kEvd], h);
       },
       true},
      {"ep_query", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) {
         DAT_EP_PARAM param;
         return dat_ep_query(h, DAT_EP_FIELD_ALL, &param);
       }},
      {"ep_modify", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) {
         DAT_EP_PARAM param = {};
         return dat_ep_modify(h, DAT_EP_FIELD_PZ_HANDLE, &param);
       }},
      {"ep_modify pz", kPz, DAT_INVALID_HANDLE_PZ,
       [](Objects& o, DAT_HANDLE h) {
         DAT_EP_PARAM param = {};
         param.pz_handle = h;
         return dat_ep_modify(o.live[kEp], DAT_EP_FIELD_PZ_HANDLE, &param);
       },
       true},
      {"ep_modify request evd", kEvd, DAT_INVALID_HANDLE_EVD_REQUEST,
       [](Objects& o, DAT_HANDLE h) {
         DAT_EP_PARAM param = {};
         param.request_evd_handle = h;
         return dat_ep_modify(o.live[kEp], DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
       },
       true},
      {"ep_get_status", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) { return dat_ep_get_status(h, nullptr, nullptr, nullptr); }},
      {"ep_reset", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) { return dat_ep_reset(h); }},
      {"ep_free", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) { return dat_ep_free(h); }},
  };
}

std::vector<Argument> EndpointUseArguments() {
  static DAT_RMR_TRIPLET remote = RemoteTriplet(0, 0, 0);
  return {
      {"ep_connect", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects& o, DAT_HANDLE h) { return o.side.TryConnect(h, Port(9)); }},
      {"ep_dup_connect", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects& o, DAT_HANDLE h) {
         return dat_ep_dup_connect(h, o.live[kEp], kSecond, 0, nullptr, DAT_QOS_BEST_EFFORT);
       }},
      {"ep_dup_connect dup", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects& o, DAT_HANDLE h) {
         return dat_ep_dup_connect(o.live[kEp], h, kSecond, 0, nullptr, DAT_QOS_BEST_EFFORT);
       }},
      {"ep_disconnect", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) { return dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG); }},
      {"ep_post_send", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) {
         return dat_ep_post_send(h, 0, nullptr, Cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"ep_post_recv", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) {
         return dat_ep_post_recv(h, 0, nullptr, Cookie(0), DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"ep_post_rdma_read", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) {
         return dat_ep_post_rdma_read(h, 0, nullptr, Cookie(0), &remote,
                                      DAT_COMPLETION_DEFAULT_FLAG);
       }},
      {"ep_post_rdma_write", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects&, DAT_HANDLE h) {
         return dat_ep_post_rdma_write(h, 0, nullptr, Cookie(0), &remote,
                                       DAT_COMPLETION_DEFAULT_FLAG);
       }},
  };
}

std::vector<Argument> ServicePointArguments() {
  static thread_local DAT_CONN_QUAL qualifier;
  return {
      {"psp_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects& o, DAT_HANDLE h) {
         return dat_psp_create(h, Port(9), o.side.cr_evd, DAT_PSP_CONSUMER_FLAG, &out);
       }},
      {"psp_create evd", kEvd, DAT_INVALID_HANDLE_EVD_CR,
       [](Objects& o, DAT_HANDLE h) {
         return dat_psp_create(o.live[kIa], Port(9), h, DAT_PSP_CONSUMER_FLAG, &out);
       }},
      {"psp_create_any ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects& o, DAT_HANDLE h) {
         return dat_psp_create_any(h, &qualifier, o.side.cr_evd, DAT_PSP_CONSUMER_FLAG, &out);
       }},
      {"psp_create_any evd", kEvd, DAT_INVALID_HANDLE_EVD_CR,
       [](Objects& o, DAT_HANDLE h) {
         return dat_psp_create_any(o.live[kIa], &qualifier, h, DAT_PSP_CONSUMER_FLAG, &out);
       }},
      {"psp_query", kPsp, DAT_INVALID_HANDLE_PSP,
       [](Objects&, DAT_HANDLE h) {
         DAT_PSP_PARAM param;
         return dat_psp_query(h, DAT_PSP_FIELD_ALL, &param);
       }},
      {"psp_free", kPsp, DAT_INVALID_HANDLE_PSP,
       [](Objects&, DAT_HANDLE h) { return dat_psp_free(h); }},
      {"rsp_create ia", kIa, DAT_INVALID_HANDLE_IA,
       [](Objects& o, DAT_HANDLE h) {
         return dat_rsp_create(h, Port(9), o.live[kEp], o.side.cr_evd, &out);
       }},
      {"rsp_create ep", kEp, DAT_INVALID_HANDLE_EP,
       [](Objects& o, DAT_HANDLE h) {
         return dat_rsp_create(o.live[kIa], Port(9), h, o.side.cr_evd, &out);
       },
       true},
      {"rsp_create evd", kEvd, DAT_INVALID_HANDLE_EVD_CR,
       [](Objects& o, DAT_HANDLE h) {
         return dat_rsp_create(o.live[kIa], Port(9), o.live[kEp], h, &out);
       }},
      {"rsp_query", kRsp, DAT_INVALID_HANDLE_RSP,
       [](Objects&, DAT_HANDLE h) {
         DAT_RSP_PARAM param;
         return dat_rsp_query(h, DAT_RSP_FIELD_ALL, &param);
       }},
      {"rsp_free", kRsp, DAT_INVALID_HANDLE_RSP,
       [](Objects&, DAT_HANDLE h) { return dat_rsp_free(h); }},
  };
}

std::vector<Argument> RequestArguments() {
  return {
      {"cr_query", kTypes, DAT_INVALID_HANDLE_CR,
       [](Objects&, DAT_HANDLE h) {
         DAT_CR_PARAM param;
         return dat_cr_query(h, DAT_CR_FIELD_ALL, &param);
       }},
      {"cr_accept", kTypes, DAT_INVALID_HANDLE_CR,
       [](Objects& o, DAT_HANDLE h) { return dat_cr_accept(h, o.live[kEp], 0, nullptr); }},
      {"cr_reject", kTypes, DAT_INVALID_HANDLE_CR,
       [](Objects&, DAT_HANDLE h) { return Reject(h, 0, nullptr); }},
      {"cr_handoff", kTypes, DAT_INVALID_HANDLE_CR,
       [](Objects&, DAT_HANDLE h) { return dat_cr_handoff(h, Port(9)); }},
  };
}

std::vector<Argument> Arguments() {
  std::vector<Argument> all;
  for (std::vector<Argument> (*family)() :
       {&AdapterArguments, &MemoryArguments, &WindowArguments, &SharedQueueArguments,
        &DispatcherArguments, &NotifierArguments, &EndpointLifeArguments, &EndpointUseArguments,
        &ServicePointArguments, &RequestArguments}) {
    for (Argument& argument : family()) all.push_back(std::move(argument));
  }
  return all;
}

TEST(HandleMisuse, C029_EveryArgument) {
  RunAlone([] {
    Objects objects;
    for (const Argument& argument : Arguments()) {
      for (DAT_HANDLE bad : objects.Bad(argument.type, !argument.null_is_valid)) {
        EXPECT_TRUE(Fails(argument.call(objects, bad), DAT_INVALID_HANDLE, argument.subtype))
            << argument.name << " with " << bad;
      }
    }
    // No call has touched the live objects.
    for (int type = 0; type < kTypes; ++type) {
      DAT_HANDLE_TYPE found;
      EXPECT_EQ(dat_get_handle_type(objects.live[type], &found), DAT_RETURN{DAT_SUCCESS}) << type;
    }
    EXPECT_EQ(StateOf(objects.live[kEp]), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(HandleMisuse, C029_FromSeveralThreads) {
  RunAlone([] {
    Objects objects;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (const Argument& argument : Arguments()) {
          for (DAT_HANDLE bad : objects.Bad(argument.type, !argument.null_is_valid)) {
            EXPECT_TRUE(Fails(argument.call(objects, bad), DAT_INVALID_HANDLE, argument.subtype))
                << argument.name << " with " << bad;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(StateOf(objects.live[kEp]), DAT_EP_STATE_UNCONNECTED);
  });
}

TEST(HandleMisuse, C029_LiveRequestIsNoOtherType) {
  RunPair(
      [](Peer& peer) {
        Objects objects;
        peer.Tell("listening");
        const DAT_HANDLE request = NextRequest(objects.side.cr_evd).cr_handle;
        for (const Argument& argument : Arguments()) {
          if (argument.subtype == DAT_INVALID_HANDLE_CR) continue;
          EXPECT_TRUE(Fails(argument.call(objects, request), DAT_INVALID_HANDLE, argument.subtype))
              << argument.name;
        }
        for (const Argument& argument : Arguments()) {
          if (argument.subtype != DAT_INVALID_HANDLE_CR) continue;
          for (int type = 0; type < kTypes; ++type) {
            EXPECT_TRUE(Fails(argument.call(objects, objects.live[type]), DAT_INVALID_HANDLE,
                              DAT_INVALID_HANDLE_CR))
                << argument.name << ' ' << type;
          }
        }
        // C030
        DAT_HANDLE_TYPE type;
        Must(dat_get_handle_type(request, &type));
        EXPECT_EQ(type, DAT_HANDLE_TYPE_CR);
        DAT_CONTEXT context;
        Must(dat_get_consumer_context(request, &context));
        EXPECT_EQ(context.as_ptr, nullptr);
        context.as_64 = 77;
        Must(dat_set_consumer_context(request, context));
        context.as_64 = 0;
        Must(dat_get_consumer_context(request, &context));
        EXPECT_EQ(context.as_64, 77u);
        Must(objects.side.TryAccept(request, objects.live[kEp]));
        peer.Tell("accepted");
        peer.Await("done");
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        peer.Tell("done");
      });
}

// A dispatcher that lacks the stream is an invalid handle too.
TEST(HandleMisuse, S_DispatcherOfOtherStreams) {
  RunAlone([] {
    Side side;
    auto create = [&](DAT_EVD_HANDLE receive, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect) {
      return dat_ep_create(side.ia, side.pz, receive, request, connect, nullptr, &out);
    };
    EXPECT_TRUE(Fails(create(side.cr_evd, side.request_evd, side.connect_evd), DAT_INVALID_HANDLE,
                      DAT_INVALID_HANDLE_EVD_RECV));
    EXPECT_TRUE(Fails(create(side.receive_evd, side.connect_evd, side.connect_evd),
                      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST));
    EXPECT_TRUE(Fails(create(side.receive_evd, side.request_evd, side.request_evd),
                      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN));
    EXPECT_TRUE(
        Fails(dat_psp_create(side.ia, Port(0), side.connect_evd, DAT_PSP_CONSUMER_FLAG, &out),
              DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR));
  });
}

TEST(HandleMisuse, C030_TypeAndContextOfEveryObject) {
  RunAlone([] {
    Objects objects;
    const DAT_HANDLE_TYPE types[] = {DAT_HANDLE_TYPE_IA,  DAT_HANDLE_TYPE_PZ,  DAT_HANDLE_TYPE_LMR,
                                     DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_EP,  DAT_HANDLE_TYPE_PSP,
                                     DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CNO, DAT_HANDLE_TYPE_SRQ,
                                     DAT_HANDLE_TYPE_RMR};
    for (int i = 0; i < kTypes; ++i) {
      DAT_HANDLE_TYPE type;
      Must(dat_get_handle_type(objects.live[i], &type));
      EXPECT_EQ(type, types[i]);
      DAT_CONTEXT context;
      context.as_64 = 1;
      Must(dat_get_consumer_context(objects.live[i], &context));
      EXPECT_EQ(context.as_ptr, nullptr);
      context.as_64 = 0x123456789abcdef0 + static_cast<uint64_t>(i);
      Must(dat_set_consumer_context(objects.live[i], context));
    }
    for (int i = 0; i < kTypes; ++i) {
      DAT_CONTEXT context;
      Must(dat_get_consumer_context(objects.live[i], &context));
      EXPECT_EQ(context.as_64, 0x123456789abcdef0 + static_cast<uint64_t>(i));
      EXPECT_TRUE(Fails(dat_get_consumer_context(objects.live[i], nullptr), DAT_INVALID_PARAMETER,
                        DAT_INVALID_ARG2));
      EXPECT_TRUE(Fails(dat_get_handle_type(objects.live[i], nullptr), DAT_INVALID_PARAMETER,
                        DAT_INVALID_ARG2));
    }
    std::vector<DAT_HANDLE> bad = objects.Bad(kTypes);
    for (DAT_HANDLE handle : bad) {
      DAT_HANDLE_TYPE type;
      DAT_CONTEXT context = {};
      EXPECT_TRUE(Fails(dat_get_handle_type(handle, &type), DAT_INVALID_HANDLE)) << handle;
      EXPECT_TRUE(Fails(dat_get_consumer_context(handle, &context), DAT_INVALID_HANDLE));
      EXPECT_TRUE(Fails(dat_set_consumer_context(handle, context), DAT_INVALID_HANDLE));
    }
  });
}

}  // namespace
}  // namespace viaduct::tests
