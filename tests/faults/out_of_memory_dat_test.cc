// Each allocation of a call fails once: the call reports it, and leaves nothing behind.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/dat/side.h"
#include "tests/conformance/harness/harness.h"
#include "tests/faults/failing_memory.h"

namespace viaduct::tests {
namespace {

// Makes the same call until no allocation is left to fail; `undo` is for one that succeeded.
void FailEachAllocation(const std::function<DAT_RETURN()>& call,
                        const std::function<void()>& undo) {
  int n = 0;
  for (bool failed = true; failed;) {
    SCOPED_TRACE(++n);
    FailAllocation(n);
    const DAT_RETURN result = call();
    failed = StopFailing();
    // The call can do without memory that it wants only for speed.
    if (result == DAT_RETURN{DAT_SUCCESS}) {
      undo();
    } else {
      EXPECT_TRUE(failed);
      EXPECT_TRUE(Fails(result, DAT_INSUFFICIENT_RESOURCES));
    }
  }
  EXPECT_GT(n, 3) << "the library allocates elsewhere";
}

// Does the same, and checks that no memory is left allocated.
void FailEachAndCount(const std::function<DAT_RETURN()>& call, const std::function<void()>& undo) {
  {
    SCOPED_TRACE("the first one, which needs more");
    Must(call());
    undo();
  }
  const int64_t before = LiveAllocations();
  FailEachAllocation(call, undo);
  EXPECT_TRUE(LiveAtMost(before)) << LiveAllocations() << " instead of " << before;
}

struct Adapter {
  DAT_RETURN Open() {
    char name[] = "soft0";
    async = DAT_HANDLE_NULL;
    return dat_ia_open(name, 8, &async, &ia);
  }
  // Expects that nothing that was created under it is left.
  void CloseGracefully() const {
    EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_RETURN{DAT_SUCCESS});
  }

  DAT_IA_HANDLE ia = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
};

TEST(OutOfMemory, AFailedDatIaOpenLeavesNoAdapterOpen) {
  RunAlone([] {
    Adapter other, adapter;
    Must(other.Open());
    FailEachAndCount([&] { return adapter.Open(); }, [&] { adapter.CloseGracefully(); });
    other.CloseGracefully();
  });
}

TEST(OutOfMemory, AFailedDatEvdCreateLeavesTheNotifierFree) {
  RunAlone([] {
    Adapter adapter;
    Must(adapter.Open());
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    Must(dat_cno_create(adapter.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    FailEachAndCount(
        [&] { return dat_evd_create(adapter.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd); },
        [&] { Must(dat_evd_free(evd)); });
    Must(dat_cno_free(cno));
    adapter.CloseGracefully();
  });
}

// With a soft high watermark, which needs memory of its own.
TEST(OutOfMemory, AFailedDatEpCreateLeavesNoEndpoint) {
  RunAlone([] {
    Adapter adapter;
    Must(adapter.Open());
    DAT_PZ_HANDLE pz = DAT_HANDLE_NULL;
    Must(dat_pz_create(adapter.ia, &pz));
    DAT_SRQ_ATTR queue = {4, 1, DAT_SRQ_LW_DEFAULT};
    DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
    Must(dat_srq_create(adapter.ia, pz, &queue, &srq));
    DAT_EP_ATTR attributes = {};
    attributes.service_type = DAT_SERVICE_TYPE_RC;
    attributes.srq_soft_hw = 2;
    DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
    FailEachAndCount(
        [&] {
          return dat_ep_create_with_srq(adapter.ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                                        DAT_HANDLE_NULL, srq, &attributes, &ep);
        },
        [&] { Must(dat_ep_free(ep)); });
    Must(dat_srq_free(srq));
    Must(dat_pz_free(pz));
    adapter.CloseGracefully();
  });
}

// A name of its own for each attempt. What a device keeps of a listener that it could not create is
// not tested here, and its tables have grown beforehand.
class Names {
 public:
  Names(DAT_IA_HANDLE ia, DAT_EVD_HANDLE evd) {
    std::vector<DAT_PSP_HANDLE> psps(60);
    for (size_t i = 0; i < psps.size(); ++i) {
      Must(dat_psp_create(ia, Port(100 + static_cast<int>(i)), evd, DAT_PSP_CONSUMER_FLAG,
                          &psps[i]));
    }
    for (DAT_PSP_HANDLE psp : psps) Must(dat_psp_free(psp));
  }
  DAT_CONN_QUAL Next() { return Port(next_++); }

 private:
  int next_ = 0;
};

TEST(OutOfMemory, AFailedDatPspCreateLeavesTheDispatcherFree) {
  RunAlone([] {
    Side side;
    Names names(side.ia, side.cr_evd);
    DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
    FailEachAllocation(
        [&] {
          return dat_psp_create(side.ia, names.Next(), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp);
        },
        [&] { Must(dat_psp_free(psp)); });
    Must(dat_evd_free(side.cr_evd));
  });
}

TEST(OutOfMemory, AFailedDatRspCreateLeavesItsEndpointUnconnected) {
  RunAlone([] {
    Side side;
    Names names(side.ia, side.cr_evd);
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    FailEachAllocation([&] { return dat_rsp_create(side.ia, names.Next(), ep, side.cr_evd, &rsp); },
                       [&] { Must(dat_rsp_free(rsp)); });
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    Must(dat_ep_free(ep));
    Must(dat_evd_free(side.cr_evd));
  });
}

// The endpoint that the call makes itself goes with the point.
TEST(OutOfMemory, AFailedDatRspCreateLeavesNoEndpoint) {
  RunAlone([] {
    Adapter adapter;
    Must(adapter.Open());
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    Must(dat_evd_create(adapter.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &evd));
    Names names(adapter.ia, evd);
    DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
    FailEachAllocation(
        [&] { return dat_rsp_create(adapter.ia, names.Next(), DAT_HANDLE_NULL, evd, &rsp); },
        [&] {
          DAT_RSP_PARAM param;
          Must(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
          Must(dat_rsp_free(rsp));
          Must(dat_ep_free(param.ep_handle));
        });
    Must(dat_evd_free(evd));
    adapter.CloseGracefully();
  });
}

// Nobody listens there: an attempt that begins fails, or is given up.
TEST(OutOfMemory, AFailedDatEpConnectLeavesTheEndpointUnconnected) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    FailEachAllocation([&] { return side.TryConnect(ep, Port(0)); },
                       [&] {
                         Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
                         Must(dat_ep_reset(ep));
                       });
    Must(dat_ep_free(ep));
  });
}

// A call that ends something needs no memory.
TEST(OutOfMemory, DatEpFreeNeedsNone) {
  RunAlone([] {
    Side side;
    for (int n = 1; n < 10; ++n) {
      DAT_EP_HANDLE ep = side.NewEp();
      FailAllocation(n);
      const DAT_RETURN result = dat_ep_free(ep);
      StopFailing();
      EXPECT_EQ(result, DAT_RETURN{DAT_SUCCESS}) << n;
    }
  });
}

TEST(OutOfMemory, TheEndOfAServicePointNeedsNone) {
  RunAlone([] {
    Side side;
    for (int n = 1; n < 10; ++n) {
      DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
      Must(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
      DAT_RSP_HANDLE rsp = DAT_HANDLE_NULL;
      DAT_EP_HANDLE ep = side.NewEp();
      Must(dat_rsp_create(side.ia, Port(1), ep, side.cr_evd, &rsp));
      FailAllocation(n);
      const DAT_RETURN ended[] = {dat_psp_free(psp), dat_rsp_free(rsp)};
      EXPECT_FALSE(StopFailing()) << "it allocates";
      EXPECT_EQ(ended[0], DAT_RETURN{DAT_SUCCESS});
      EXPECT_EQ(ended[1], DAT_RETURN{DAT_SUCCESS});
      Must(dat_ep_free(ep));
    }
  });
}

// A thread's first lookup takes memory; later ones do not.
TEST(OutOfMemory, TheFirstCallOfAThreadSaysSo) {
  RunAlone([] {
    Side side;
    const DAT_EP_HANDLE ep = side.NewEp();
    DAT_CONTEXT context = {};
    DAT_EVENT event;
    const std::function<DAT_RETURN()> calls[] = {
        [&] { return dat_get_consumer_context(ep, &context); },
        [&] { return dat_ep_post_recv(ep, 0, nullptr, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG); },
        [&] { return dat_evd_dequeue(side.receive_evd, &event); },
    };
    std::vector<std::thread> threads;  // alive until the end: else the next one has its memory
    std::atomic<bool> over{false};
    for (const auto& call : calls) {
      std::promise<void> called;
      threads.emplace_back([&] {
        FailAllocation(1);
        const DAT_RETURN first = call();
        EXPECT_TRUE(StopFailing());
        EXPECT_TRUE(Fails(first, DAT_INSUFFICIENT_RESOURCES));
        EXPECT_FALSE(Fails(call(), DAT_INSUFFICIENT_RESOURCES));
        called.set_value();
        while (!over) sched_yield();
      });
      called.get_future().wait();
    }
    over = true;
    for (std::thread& thread : threads) thread.join();
    Must(dat_ep_free(ep));
  });
}

// The memory that this takes is allocated when the agent is set.
TEST(OutOfMemory, AnAgentIsCalledWithoutMemory) {
  RunAlone([] {
    Adapter adapter;
    Must(adapter.Open());
    static constinit std::atomic<int> called{0};
    DAT_OS_WAIT_PROXY_AGENT agent = {};
    agent.proxy_agent_func = [](DAT_PVOID, DAT_EVD_HANDLE) { ++called; };
    DAT_CNO_HANDLE cno = DAT_HANDLE_NULL;
    Must(dat_cno_create(adapter.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
    DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
    Must(dat_evd_create(adapter.ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
    int n = 0, calls = 0;
    for (bool failed = true; failed;) {
      SCOPED_TRACE(++n);
      FailAllocation(n);
      const DAT_RETURN set = dat_cno_modify_agent(cno, agent);
      failed = StopFailing();
      if (set == DAT_SUCCESS) {
        ++calls;
      } else {
        EXPECT_EQ(DAT_GET_TYPE(set), DAT_UINT32{DAT_INSUFFICIENT_RESOURCES});
      }
      DAT_EVENT event = {};
      event.event_number = DAT_SOFTWARE_EVENT;
      FailAllocationsFrom(1);
      const DAT_RETURN posted = dat_evd_post_se(evd, &event);
      StopFailing();
      EXPECT_EQ(posted, DAT_RETURN{DAT_SUCCESS});
      while (called != calls) sched_yield();
      Must(dat_evd_dequeue(evd, &event));
      DAT_EVD_HANDLE trigger = DAT_HANDLE_NULL;
      Must(dat_cno_wait(cno, 0, &trigger));
    }
    EXPECT_GT(n, 1) << "an agent takes no memory";
    EXPECT_GT(calls, 0);
    Must(dat_evd_free(evd));
    Must(dat_cno_free(cno));
    adapter.CloseGracefully();
  });
}

constexpr uint8_t kMessages = 30;
constexpr int kWarming = 20;

// Takes receives that were posted with their own numbers as cookies: they get the messages of these
// numbers, all up to one, and after that one the connection has ended.
void ExpectAllUpToTheEnd(Side& side, const Memory& memory) {
  bool ended = false;
  for (uint8_t i = 0; i < kMessages; ++i) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = NextCompletion(side.receive_evd);
    EXPECT_EQ(done.user_cookie.as_64, i);
    ended = ended || done.status != DAT_DTO_SUCCESS;
    EXPECT_EQ(done.status, ended ? DAT_DTO_ERR_FLUSHED : DAT_DTO_SUCCESS);
    if (!ended) {
      EXPECT_EQ(memory.bytes[i], i) << "a message is lost, or came twice";
    }
  }
  if (!ended) return;
  const DAT_EVENT end = Next(side.connect_evd);
  EXPECT_TRUE(end.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
              end.event_number == DAT_CONNECTION_EVENT_BROKEN)
      << end.event_number;
}

void PostNumberedReceives(DAT_EP_HANDLE ep, const Memory& memory) {
  for (uint8_t i = 0; i < kMessages; ++i) {
    DAT_LMR_TRIPLET local = memory.Local(i, 1);
    Must(dat_ep_post_recv(ep, 1, &local, Cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
  }
}

// Sends a message of one byte, its number.
DAT_RETURN SendNumber(DAT_EP_HANDLE ep, Memory& memory, uint8_t number) {
  memory.bytes[number] = number;
  DAT_LMR_TRIPLET local = memory.Local(number, 1);
  return dat_ep_post_send(ep, 1, &local, Cookie(number), DAT_COMPLETION_DEFAULT_FLAG);
}

// A thread that polls takes what has come out of the wire, and it is kept until there is a receive.
TEST(OutOfMemory, AMessageIsLostWithItsConnectionOnly) {
  RunPair(
      [](Peer& peer) {
        bool failed = false;
        for (int n = 1; n <= 12; ++n) {
          SCOPED_TRACE(n);
          Side side;
          Memory memory(side, kMessages);
          const DAT_EP_HANDLE ep = side.NewEp();
          for (int i = 0; i < kWarming; ++i) side.PostReceive(ep, 1);
          side.AcceptFrom(peer, ep, Port(0));
          DAT_EVENT event;
          // A thread that has taken some by polling reads the wire from then on.
          for (int taken = 0; taken < kWarming;) {
            if (dat_evd_dequeue(side.receive_evd, &event) == DAT_SUCCESS) ++taken;
          }
          peer.Tell("hot");
          // While this thread waits for anything, the library's own thread reads.
          std::future<void> sent = std::async(std::launch::async, [&peer] { peer.Await("sent"); });
          FailAllocation(n);
          while (sent.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
            EXPECT_TRUE(Fails(dat_evd_dequeue(side.receive_evd, &event), DAT_QUEUE_EMPTY));
          }
          for (int i = 0; i < 1000; ++i) {
            EXPECT_TRUE(Fails(dat_evd_dequeue(side.receive_evd, &event), DAT_QUEUE_EMPTY));
          }
          failed = StopFailing() || failed;
          sent.get();
          PostNumberedReceives(ep, memory);
          ExpectAllUpToTheEnd(side, memory);
          peer.Tell("done");
        }
        // Over shared memory a message waits where it is.
        EXPECT_EQ(failed, Wire() != "shm") << "this proves nothing";
      },
      [](Peer& peer) {
        for (int n = 1; n <= 12; ++n) {
          Side side;
          Memory memory(side, kMessages);
          const DAT_EP_HANDLE ep = side.NewEp();
          side.ConnectTo(peer, ep, Port(0));
          for (int i = 0; i < kWarming; ++i) {
            Must(side.TrySend(ep, 1));
            EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
          }
          peer.Await("hot");
          for (uint8_t i = 0; i < kMessages; ++i) (void)SendNumber(ep, memory, i);
          peer.Tell("sent");
          peer.Await("done");
        }
      });
}

TEST(OutOfMemory, ASendThatFailedIsNotSent) {
  RunPair(
      [](Peer& peer) {
        bool failed = false;
        for (int n = 1; n <= 4; ++n) {
          Side side;
          Memory memory(side, kMessages);
          const DAT_EP_HANDLE ep = side.NewEp();
          side.AcceptFrom(peer, ep, Port(0));
          for (uint8_t i = 0; i < kMessages; ++i) {
            FailAllocation(n);
            const DAT_RETURN first = SendNumber(ep, memory, i);
            failed = StopFailing() || failed;
            if (first != DAT_RETURN{DAT_SUCCESS}) Must(SendNumber(ep, memory, i));
          }
          peer.Await("done");
        }
        EXPECT_TRUE(failed) << "no send takes memory: this proves nothing";
      },
      [](Peer& peer) {
        for (int n = 1; n <= 4; ++n) {
          SCOPED_TRACE(n);
          Side side;
          Memory memory(side, kMessages);
          const DAT_EP_HANDLE ep = side.NewEp();
          PostNumberedReceives(ep, memory);
          side.ConnectTo(peer, ep, Port(0));
          ExpectAllUpToTheEnd(side, memory);
          peer.Tell("done");
        }
      });
}

}  // namespace
}  // namespace viaduct::tests
