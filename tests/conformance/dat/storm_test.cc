// Calls every function from several threads with random arguments: handles that are NULL, garbage,
// freed, of another type or alive, NULL pointers, numbers out of range. Each call must only return,
// with a code of the header's; afterwards the library must work as before.
//
// Runs for five seconds; with VIADUCT_LONG in the environment for a minute. A failure names its
// seed.
#include "tests/conformance/dat/storm.h"

#include <stdlib.h>

#include <functional>
#include <thread>

#if VIADUCT_TEST_DAT == 20
#include <dat2/dat_ib_extensions.h>
#endif

namespace viaduct::tests::storm {
namespace {

constexpr int kThreads = 4;

class Caller : private Arguments {
 public:
  Caller(Arena* arena, unsigned seed) : Arguments(arena, seed) {
    AddAdapterCalls();
    AddDispatcherCalls();
    AddNotifierCalls();
    AddMemoryCalls();
    AddServicePointCalls();
    AddEndpointCalls();
    AddTransferCalls();
#if VIADUCT_TEST_DAT == 20
    AddCallsOf20();
#endif
  }

  void Run(int64_t end) {
    while (Now() < end) {
      const size_t n = random_() % calls_.size();
      const DAT_RETURN result = calls_[n]();
      if (result == DAT_SUCCESS) ++arena_.succeeded;
      const char *type, *subtype;
      EXPECT_EQ(dat_strerror(result, &type, &subtype), DAT_SUCCESS)
          << "call " << n << ": " << result;
    }
  }

 private:
  using Call = std::function<DAT_RETURN()>;
  void Add(std::initializer_list<Call> calls) {
    calls_.insert(calls_.end(), calls.begin(), calls.end());
  }

  // ------------------------------------------------------------------------------- the calls

  void AddAdapterCalls() {
    Add({
        [this] {
          char name[] = "soft0";
          DAT_EVD_HANDLE async = HandleOrNull(kEvd);
          return Made(kIa, dat_ia_open(Maybe(name), Number(), Maybe(&async), Maybe(&out_)));
        },
        [this] {  // never the side's own
          DAT_IA_HANDLE ia = Seldom(kIa);
          if (ia == arena_.side.ia) ia = DAT_HANDLE_NULL;
          return dat_ia_close(ia, CloseFlags());
        },
        [this] {
          return dat_ia_query(Handle(kIa), Maybe(&out_), Mask<DAT_IA_ATTR_MASK>(),
                              Maybe(&ia_attributes_), Mask<DAT_PROVIDER_ATTR_MASK>(),
                              Maybe(&provider_attributes_));
        },
        [this] { return Made(kPz, dat_pz_create(Handle(kIa), Maybe(&out_))); },
        [this] { return dat_pz_query(Handle(kPz), Mask<DAT_PZ_PARAM_MASK>(), Maybe(&pz_)); },
        [this] { return dat_pz_free(Seldom(kPz)); },
        [this] { return dat_set_consumer_context(Any(), DAT_CONTEXT{}); },
        [this] { return dat_get_consumer_context(Any(), Maybe(&context_)); },
        [this] { return dat_get_handle_type(Any(), Maybe(&type_)); },
        [this] {
          DAT_PROVIDER_INFO entries[4], *list[4];
          for (int i = 0; i < 4; ++i) list[i] = &entries[i];
          return dat_registry_list_providers(static_cast<DAT_COUNT>(random_() % 5), Maybe(&count_),
                                             Maybe(&list[0]));
        },
    });
  }

  void AddDispatcherCalls() {
    Add({
        [this] {
          return Made(kEvd,
                      dat_evd_create(Handle(kIa), Number(), HandleOrNull(kCno),
                                     static_cast<DAT_EVD_FLAGS>(random_() & 0x1f1), Maybe(&out_)));
        },
        [this] { return dat_evd_query(Handle(kEvd), Mask<DAT_EVD_PARAM_MASK>(), Maybe(&evd_)); },
        [this] { return dat_evd_modify_cno(Handle(kEvd), HandleOrNull(kCno)); },
        [this] { return dat_evd_enable(Handle(kEvd)); },
        [this] { return dat_evd_disable(Handle(kEvd)); },
        [this] { return dat_evd_set_unwaitable(Handle(kEvd)); },
        [this] { return dat_evd_clear_unwaitable(Handle(kEvd)); },
        [this] { return dat_evd_resize(Handle(kEvd), Number()); },
        [this] {
          DAT_EVENT event = {};
          event.event_number = DAT_SOFTWARE_EVENT;
          return dat_evd_post_se(Handle(kEvd), Maybe(&event));
        },
        [this] { return dat_evd_free(Seldom(kEvd)); },
    });
    // These are called often, so that events that come are taken.
    for (int i = 0; i < 6; ++i) {
      Add({
          [this] { return Told(dat_evd_dequeue(Evd(), Maybe(&event_))); },
          [this] {
            return Told(dat_evd_wait(Evd(), Time(), static_cast<DAT_COUNT>(random_() % 4),
                                     Maybe(&event_), Maybe(&count_)));
          },
      });
    }
  }

  void AddNotifierCalls() {
    Add({
        [this] { return Made(kCno, dat_cno_create(Handle(kIa), Agent(), Maybe(&out_))); },
        [this] { return dat_cno_modify_agent(Handle(kCno), Agent()); },
        [this] { return dat_cno_query(Handle(kCno), Mask<DAT_CNO_PARAM_MASK>(), Maybe(&cno_)); },
        [this] { return dat_cno_wait(Handle(kCno), Time(), Maybe(&out_)); },
        [this] { return dat_cno_free(Seldom(kCno)); },
    });
  }

  void AddMemoryCalls() {
    Add({
        [this] {
          DAT_REGION_DESCRIPTION region = {};
          const DAT_MEM_TYPE type = random_() % 8 ? DAT_MEM_TYPE_VIRTUAL : DAT_MEM_TYPE_LMR;
          if (type == DAT_MEM_TYPE_LMR) {
            region.for_lmr_handle = Handle(kLmr);
          } else {
            region.for_va = arena_.memory.bytes.data() + random_() % kPiece;
          }
          DAT_LMR_CONTEXT lmr = 0;
          DAT_RMR_CONTEXT rmr = 0;
          return Made(kLmr, CreateLmr(Handle(kIa), type, region, random_() % 4096, Pz(), Rights(),
                                      Maybe(&out_), Maybe(&lmr), Maybe(&rmr), Maybe(&length_),
                                      Maybe(&address_)));
        },
        [this] { return dat_lmr_query(Handle(kLmr), Mask<DAT_LMR_PARAM_MASK>(), Maybe(&lmr_)); },
        [this] {
          DAT_LMR_TRIPLET part = Source();
          return dat_lmr_sync_rdma_read(Handle(kIa), Maybe(&part), random_() % 2);
        },
        [this] {
          DAT_LMR_TRIPLET part = Source();
          return dat_lmr_sync_rdma_write(Handle(kIa), Maybe(&part), random_() % 2);
        },
        [this] {  // never the arena's own
          DAT_LMR_HANDLE lmr = Seldom(kLmr);
          if (lmr == arena_.memory.lmr) lmr = DAT_HANDLE_NULL;
          return dat_lmr_free(lmr);
        },
        [this] { return Made(kRmr, dat_rmr_create(Pz(), Maybe(&out_))); },
        [this] { return dat_rmr_query(Handle(kRmr), Mask<DAT_RMR_PARAM_MASK>(), Maybe(&rmr_)); },
        [this] {
          DAT_LMR_TRIPLET part = Sink();
          DAT_RMR_COOKIE cookie = {};
          DAT_RMR_CONTEXT context = 0;
          const DAT_RETURN result =
              BindRmr(Handle(kRmr), Lmr(), part, Rights(), Ep(), cookie, Flags(), Maybe(&context));
          if (context != 0) arena_.rmr_context = context;
          return result;
        },
        [this] { return dat_rmr_free(Seldom(kRmr)); },
    });
  }

  void AddServicePointCalls() {
    Add({
        [this] {
          const DAT_PSP_FLAGS flags = random_() % 2 ? DAT_PSP_CONSUMER_FLAG : DAT_PSP_PROVIDER_FLAG;
          return Made(kPsp, dat_psp_create(Ia(), Qualifier(), CrEvd(), flags, Maybe(&out_)));
        },
        [this] {
          DAT_CONN_QUAL qualifier;
          return Made(kPsp, dat_psp_create_any(Ia(), Maybe(&qualifier), CrEvd(),
                                               DAT_PSP_CONSUMER_FLAG, Maybe(&out_)));
        },
        [this] { return dat_psp_query(Handle(kPsp), Mask<DAT_PSP_PARAM_MASK>(), Maybe(&psp_)); },
        [this] { return dat_psp_free(Seldom(kPsp)); },
        [this] {
          return Made(kRsp, dat_rsp_create(Ia(), Qualifier(), Ep(), CrEvd(), Maybe(&out_)));
        },
        [this] { return dat_rsp_query(Handle(kRsp), Mask<DAT_RSP_PARAM_MASK>(), Maybe(&rsp_)); },
        [this] { return dat_rsp_free(Seldom(kRsp)); },
        [this] { return dat_cr_query(Handle(kCr), Mask<DAT_CR_PARAM_MASK>(), Maybe(&cr_)); },
        [this] { return Reject(Handle(kCr), DataSize(), Maybe(data_)); },
        [this] { return dat_cr_handoff(Handle(kCr), Qualifier()); },
    });
    for (int i = 0; i < 4; ++i) {
      Add({[this] { return dat_cr_accept(Handle(kCr), Ep(), DataSize(), Maybe(data_)); }});
    }
  }

  void AddEndpointCalls() {
    Add({
        [this] {
          DAT_EP_ATTR attributes = Attributes();
          return Made(kEp, dat_ep_create_with_srq(Ia(), Pz(), Evd(), Evd(), Evd(), Handle(kSrq),
                                                  Maybe(&attributes), Maybe(&out_)));
        },
        [this] { return dat_ep_query(Ep(), Mask<DAT_EP_PARAM_MASK>(), Maybe(&ep_)); },
        [this] {
          DAT_EP_PARAM param = {};
          param.pz_handle = Pz();
          param.recv_evd_handle = Evd();
          param.request_evd_handle = Evd();
          param.connect_evd_handle = Evd();
          param.ep_attr = Attributes();
          return dat_ep_modify(Ep(), Mask<DAT_EP_PARAM_MASK>(), Maybe(&param));
        },
        [this] {
          return dat_ep_dup_connect(Ep(), Ep(), Time(), DataSize(), Maybe(data_),
                                    DAT_QOS_BEST_EFFORT);
        },
        [this] { return dat_ep_disconnect(random_() % 4 ? Ep() : Linked(), CloseFlags()); },
        [this] { return dat_ep_get_status(Ep(), Maybe(&state_), Maybe(&flag_), Maybe(&flag_)); },
        [this] { return dat_ep_free(Seldom(kEp)); },
        [this] { return dat_ep_recv_query(Ep(), Maybe(&count_), Maybe(&count_)); },
        [this] { return dat_ep_set_watermark(Ep(), Number(), Number()); },
        [this] {
          DAT_SRQ_ATTR attributes = {Number(), Number(), DAT_SRQ_LW_DEFAULT};
          return Made(kSrq, dat_srq_create(Ia(), Pz(), Maybe(&attributes), Maybe(&out_)));
        },
        [this] { return dat_srq_query(Handle(kSrq), Mask<DAT_SRQ_PARAM_MASK>(), Maybe(&srq_)); },
        [this] { return dat_srq_resize(Handle(kSrq), Number()); },
        [this] { return dat_srq_set_lw(Handle(kSrq), Number()); },
        [this] { return dat_srq_free(Seldom(kSrq)); },
    });
    for (int i = 0; i < 4; ++i) {
      Add({
          [this] { return dat_ep_reset(Ep()); },
          [this] {
            DAT_EP_ATTR attributes = Attributes();
            return Made(kEp, dat_ep_create(Ia(), Pz(), Evd(), Evd(), Evd(), Maybe(&attributes),
                                           Maybe(&out_)));
          },
          [this] {
            sockaddr_in host = Ipv4("127.0.0.1");
            const DAT_CONN_QUAL to = random_() % 4 ? arena_.usual_qualifier : Qualifier();
            return dat_ep_connect(Ep(), Maybe(Pointer(host)), to,
                                  random_() % 2 ? Time() : kPatience, DataSize(), Maybe(data_),
                                  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
          },
      });
    }
  }

  void AddTransferCalls() {
    for (int i = 0; i < 3; ++i) {
      Add({
          [this] { return dat_ep_post_send(Linked(), Sources(), Iov(), Cookie(1), Flags()); },
          [this] { return dat_ep_post_recv(Linked(), Sinks(), Iov(), Cookie(2), Flags()); },
          [this] { return dat_srq_post_recv(Handle(kSrq), Sinks(), Iov(), Cookie(3)); },
          [this] {
            DAT_RMR_TRIPLET from = Remote(Source());
            return dat_ep_post_rdma_read(Linked(), Sinks(), Iov(), Cookie(4), Maybe(&from),
                                         Flags());
          },
          [this] {
            DAT_RMR_TRIPLET to = Remote(Sink());
            return dat_ep_post_rdma_write(Linked(), Sources(), Iov(), Cookie(5), Maybe(&to),
                                          Flags());
          },
      });
    }
  }

#if VIADUCT_TEST_DAT == 20
  void AddCallsOf20() {
    Add({
        [this] {
          DAT_FD fd = -1;
          const DAT_RETURN result = dat_cno_fd_create(Handle(kIa), Maybe(&fd), Maybe(&out_));
          return Made(kCno, result);
        },
        [this] { return dat_cno_trigger(Handle(kCno), Maybe(&out_)); },
        [this] { return Made(kRmr, dat_rmr_create_for_ep(Pz(), Maybe(&out_))); },
        [this] {
          DAT_COMM streams = {AF_INET, SOCK_STREAM, 0};
          sockaddr_in at = CommonAddress();
          return Made(kCsp, dat_csp_create(Ia(), Maybe(&streams), Maybe(Pointer(at)), CrEvd(),
                                           Maybe(&out_)));
        },
        [this] { return dat_csp_query(Handle(kCsp), Mask<DAT_CSP_PARAM_MASK>(), Maybe(&csp_)); },
        [this] { return dat_csp_free(Seldom(kCsp)); },
        [this] {
          sockaddr_in to = CommonAddress();
          return dat_ep_common_connect(Ep(), Maybe(Pointer(to)), Time(), DataSize(), Maybe(data_));
        },
        [this] {
          return dat_ep_post_send_with_invalidate(Linked(), Sources(), Iov(), Cookie(6), Flags(),
                                                  DAT_TRUE, arena_.rmr_context);
        },
        [this] {
          const DAT_RMR_TRIPLET to = Remote(Sink());
          const DAT_RMR_TRIPLET from = Remote(Source());
          return dat_ep_post_rdma_read_to_rmr(Linked(), Maybe(&to), Cookie(7), Maybe(&from),
                                              Flags());
        },
        [this] {
          DAT_LMR_TRIPLET local = Sink();
          DAT_RMR_TRIPLET remote = Remote(Sink());
          local.segment_length = remote.segment_length = 8;
          return dat_ib_post_fetch_and_add(Linked(), 5, Maybe(&local), Cookie(8), Maybe(&remote),
                                           Flags());
        },
        [this] {
          DAT_LMR_TRIPLET local = Sink();
          DAT_RMR_TRIPLET remote = Remote(Sink());
          local.segment_length = remote.segment_length = 8;
          return dat_ib_post_cmp_and_swap(Linked(), 0, 5, Maybe(&local), Cookie(9), Maybe(&remote),
                                          Flags());
        },
        [this] {
          DAT_RMR_TRIPLET to = Remote(Sink());
          return dat_ib_post_rdma_write_immed(Linked(), Sources(), Iov(), Cookie(10), Maybe(&to),
                                              77, Flags());
        },
        [this] { return dat_extension_op(Any(), static_cast<DAT_EXTENDED_OP>(0x12345)); },
    });
  }
  sockaddr_in CommonAddress() {
    sockaddr_in address = Ipv4("127.0.0.1");
    address.sin_port = htons(Port(kQualifiers));
    return address;
  }
#endif

  // ------------------------------------------------------------------------------- the answers

  DAT_RETURN Made(Kind kind, DAT_RETURN result) {
    if (result == DAT_SUCCESS) arena_.pools[kind].Add(out_);
    return result;
  }
  // For calls that take an event.
  DAT_RETURN Told(DAT_RETURN result) {
    if (result != DAT_SUCCESS) return result;
    switch (event_.event_number) {
      case DAT_CONNECTION_REQUEST_EVENT: {
        const DAT_CR_HANDLE cr = event_.event_data.cr_arrival_event_data.cr_handle;
        arena_.pools[kCr].Add(cr);
        if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &cr_) == DAT_SUCCESS) {
          if (cr_.local_ep_handle != DAT_HANDLE_NULL) arena_.pools[kEp].Add(cr_.local_ep_handle);
        }
        break;
      }
      case DAT_CONNECTION_EVENT_ESTABLISHED:
        ++arena_.connected;
        arena_.linked.Add(event_.event_data.connect_event_data.ep_handle);
        break;
      case DAT_DTO_COMPLETION_EVENT:
        if (event_.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
          ++arena_.transferred;
        }
        break;
      default:
        break;
    }
    return result;
  }

  std::vector<Call> calls_;
  // Where the calls put their results.
  DAT_HANDLE out_ = DAT_HANDLE_NULL;
  DAT_EVENT event_;
  DAT_COUNT count_;
  DAT_BOOLEAN flag_;
  DAT_VLEN length_;
  DAT_VADDR address_;
  DAT_CONTEXT context_;
  DAT_HANDLE_TYPE type_;
  DAT_EP_STATE state_;
  DAT_IA_ATTR ia_attributes_;
  DAT_PROVIDER_ATTR provider_attributes_;
  DAT_PZ_PARAM pz_;
  DAT_EVD_PARAM evd_;
  DAT_CNO_PARAM cno_;
  DAT_LMR_PARAM lmr_;
  DAT_RMR_PARAM rmr_;
  DAT_PSP_PARAM psp_;
  DAT_RSP_PARAM rsp_;
  DAT_CR_PARAM cr_;
  DAT_EP_PARAM ep_;
  DAT_SRQ_PARAM srq_;
#if VIADUCT_TEST_DAT == 20
  DAT_CSP_PARAM csp_;
#endif
};

// Sends a message between two endpoints of this program.
void ExpectAMessageArrives(Side& side) {
  const uint16_t port = Port(kQualifiers + 1);
  DAT_EP_HANDLE active = side.NewEp(), passive = side.NewEp();
  side.Listen(port);
  side.PostReceive(passive, 7);
  side.Connect(active, port);
  Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, passive));
  Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
  Must(side.TrySend(active, 8));
  const DAT_DTO_COMPLETION_EVENT_DATA received = NextCompletion(side.receive_evd);
  EXPECT_EQ(received.user_cookie.as_64, 7u);
  EXPECT_EQ(received.status, DAT_DTO_SUCCESS);
}

TEST(Storm, EveryFunctionFromSeveralThreads) {
  const int seconds = getenv("VIADUCT_LONG") != nullptr ? 60 : 5;
  unsetenv("VIADUCT_LONG");  // a variable of the tests; the library does not warn of it
  setenv("VIADUCT_LOG", "error", 1);
  RunAlone(
      [seconds] {
        const unsigned seed = std::random_device()();
        SCOPED_TRACE("seed " + std::to_string(seed));
        // Lives for ever: callbacks may come late.
        auto* arena = new Arena;
        // Where everything is slow, as in the lab, connections are rare.
        for (int round = 0; round < 10 && arena->connected.load() == 0; ++round) {
          const int64_t end = Now() + seconds * int64_t{1'000'000'000};
          std::vector<std::thread> threads;
          for (unsigned i = 0; i < kThreads; ++i) {
            const unsigned number = round * kThreads + i;
            threads.emplace_back([&, number] { (new Caller(arena, seed + number))->Run(end); });
          }
          for (std::thread& thread : threads) thread.join();
        }
        printf("%d calls succeeded, %d ends connected, %d transfers\n", arena->succeeded.load(),
               arena->connected.load(), arena->transferred.load());
        EXPECT_GT(arena->succeeded.load(), 100) << "the storm met closed doors only";
        EXPECT_GT(arena->connected.load(), 0);

        Must(dat_ia_close(arena->side.ia, DAT_CLOSE_ABRUPT_FLAG));
        Side side;
        ExpectAMessageArrives(side);
      },
      10 * seconds + 60);
}

}  // namespace
}  // namespace viaduct::tests::storm
