// dat_rmr_*: the pages of those names; DAT checklist 22, 31, 37, 40-45, and what 2.0 adds.
#include <cstring>
#include <thread>
#include <vector>

#include "tests/conformance/dat/side.h"

#if VIADUCT_TEST_DAT == 20
#include <dat2/dat_ib_extensions.h>
#endif

namespace viaduct::tests {
namespace {

constexpr auto kBoth =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
constexpr auto kLocal =
    static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);

// The numbers of dat_rmr_bind's arguments.
constexpr unsigned kTripletArgument = VIADUCT_TEST_DAT == 12 ? 2 : 3;
constexpr unsigned kFlagsArgument = VIADUCT_TEST_DAT == 12 ? 6 : 8;
constexpr DAT_UINT32 Argument(unsigned n) { return DAT_INVALID_ARG1 + n - 1; }

// A side with an endpoint, a window, and memory that only a window opens to the peer.
class WindowSide : public Side {
 public:
  explicit WindowSide(DAT_RETURN (*create)(DAT_PZ_HANDLE, DAT_RMR_HANDLE*) = &dat_rmr_create) {
    Must(create(pz, &rmr));
  }
  void Accept(Peer& peer) { AcceptFrom(peer, ep, Port(0)); }

  // Binds any window to any memory.
  DAT_RETURN TryBind(DAT_RMR_HANDLE window, const Memory& of, size_t offset, size_t length,
                     DAT_MEM_PRIV_FLAGS privileges, DAT_COMPLETION_FLAGS flags,
                     DAT_RMR_CONTEXT* context) const {
    return BindRmr(window, of.lmr, of.Local(offset, length), privileges, ep, Cookie(77), flags,
                   context);
  }
  // Binds its own window to its own memory, and waits for the completion.
  DAT_RMR_CONTEXT Bind(size_t offset, size_t length, DAT_MEM_PRIV_FLAGS privileges = kBoth) {
    DAT_RMR_CONTEXT context = 0;
    Must(TryBind(rmr, memory, offset, length, privileges, DAT_COMPLETION_DEFAULT_FLAG, &context));
    const DAT_EVENT event = Next(request_evd, DAT_RMR_BIND_COMPLETION_EVENT);
    const auto& data = event.event_data.rmr_completion_event_data;
    EXPECT_EQ(data.rmr_handle, rmr);
    EXPECT_EQ(data.user_cookie.as_64, 77u);
    EXPECT_EQ(data.status, DAT_RMR_BIND_SUCCESS);
    return context;
  }
  DAT_RMR_PARAM Window() const {
    DAT_RMR_PARAM param;
    Must(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
    return param;
  }

  DAT_RMR_TRIPLET At(size_t offset, size_t length, DAT_RMR_CONTEXT context) const {
    return RemoteTriplet(reinterpret_cast<uintptr_t>(memory.bytes.data() + offset), length,
                         context);
  }
  // Has WriteWhereTold write there; returns whether the write succeeded.
  bool Reaches(Peer& peer, size_t offset, size_t length, DAT_RMR_CONTEXT context) const {
    peer.Send(At(offset, length, context));
    return peer.Receive<DAT_DTO_COMPLETION_STATUS>() == DAT_DTO_SUCCESS;
  }
  // The refused access has broken the connection.
  void EndBroken(Peer& peer) {
    NextConnection(connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
    peer.Tell("end");
  }

  Memory memory{*this, 256, kLocal};
  const DAT_EP_HANDLE ep = NewEp();
  DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;
};

// A client that writes where it is told until a write is refused.
void WriteWhereTold(Peer& peer) {
  ConnectingSide side(peer);
  const DAT_EP_HANDLE ep = side.ep;
  Memory memory(side, 256);
  memory.bytes.assign(256, 0x5c);
  for (;;) {
    const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
    DAT_LMR_TRIPLET local = memory.Local(0, remote.segment_length);
    Must(dat_ep_post_rdma_write(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    // The read is answered only when the write is in place.
    Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG));
    DAT_DTO_COMPLETION_STATUS status = NextCompletion(side.request_evd).status;
    const auto second = NextCompletion(side.request_evd).status;
    if (status == DAT_DTO_SUCCESS) status = second;
    peer.Send(status);
    if (status != DAT_DTO_SUCCESS) break;
  }
  NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
  peer.Await("end");
}

// A client that only connects.
void AwaitEnd(Peer& peer) {
  const ConnectingSide side(peer);
  peer.Await("end");
}

TEST(Rmr, C040_EachBindHasANewContext) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        side.Accept(peer);
        const DAT_RMR_CONTEXT first = side.Bind(0, 64);
        EXPECT_TRUE(side.Reaches(peer, 0, 64, first));
        EXPECT_EQ(side.memory.bytes[63], 0x5c);
        EXPECT_EQ(side.memory.bytes[64], 0);
        const DAT_RMR_CONTEXT second = side.Bind(128, 64);
        EXPECT_NE(first, second);
        const DAT_RMR_PARAM param = side.Window();
        EXPECT_EQ(param.ia_handle, side.ia);
        EXPECT_EQ(param.pz_handle, side.pz);
        EXPECT_EQ(param.rmr_context, second);
        EXPECT_EQ(param.mem_priv, kBoth);
        EXPECT_EQ(param.lmr_triplet.lmr_context, side.memory.lmr_context);
        EXPECT_EQ(param.lmr_triplet.segment_length, 64u);
        EXPECT_TRUE(side.Reaches(peer, 128, 64, second));
        EXPECT_FALSE(side.Reaches(peer, 0, 64, first));
        side.EndBroken(peer);
      },
      WriteWhereTold);
}

// A window with one of the two remote rights, over a region that has both rights locally: what the
// window does not allow is refused.
void OneRight(DAT_MEM_PRIV_FLAGS right) {
  const bool writes = right == DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
  RunPair(
      [=](Peer& peer) {
        WindowSide side;
        side.Accept(peer);
        side.memory.bytes.assign(256, 0x11);
        const DAT_RMR_CONTEXT context = side.Bind(0, 64, right);
        EXPECT_EQ(side.Window().mem_priv, right);
        peer.Send(side.At(0, 64, context));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, side.ep);
        peer.Await("done");
        EXPECT_EQ(side.memory.bytes[0], writes ? 0x5c : 0x11);
      },
      [=](Peer& peer) {
        InitiatingSide side(peer);
        side.memory.bytes.assign(256, 0x5c);
        const auto write = [&] {
          DAT_LMR_TRIPLET local = side.memory.Local(0, 64);
          Must(dat_ep_post_rdma_write(side.ep, 1, &local, Cookie(2), &side.remote,
                                      DAT_COMPLETION_DEFAULT_FLAG));
        };
        if (writes) {
          write();
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
          EXPECT_EQ(side.Read(64, 64), DAT_DTO_ERR_REMOTE_ACCESS);
        } else {
          EXPECT_EQ(side.Read(64, 64), DAT_DTO_SUCCESS);
          EXPECT_EQ(side.memory.bytes[64], 0x11);
          write();
        }
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, side.ep);
        peer.Tell("done");
      });
}

TEST(Rmr, C046_AWindowForReadsAlone) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  OneRight(DAT_MEM_PRIV_REMOTE_READ_FLAG);
}
TEST(Rmr, C046_AWindowForWritesAlone) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  OneRight(DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
}

TEST(Rmr, C041_LengthZeroUnbinds) {
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        side.Accept(peer);
        const DAT_RMR_CONTEXT context = side.Bind(0, 64);
        EXPECT_TRUE(side.Reaches(peer, 0, 64, context));
        side.Bind(0, 0);
        const DAT_RMR_PARAM param = side.Window();
        EXPECT_EQ(param.rmr_context, 0u);
        side.memory.bytes.assign(256, 0);
        EXPECT_FALSE(side.Reaches(peer, 0, 64, context));
        EXPECT_EQ(side.memory.bytes, std::vector<uint8_t>(256, 0));
        side.EndBroken(peer);
      },
      WriteWhereTold);
}

TEST(Rmr, C037_C042_WhatMayNotBeBound) {
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        const Memory& memory = side.memory;
        const Memory unreadable(side, 256, DAT_MEM_PRIV_LOCAL_READ_FLAG);
        side.Accept(peer);
        DAT_RMR_CONTEXT context;
        auto bind = [&](const Memory& of, size_t offset, size_t length, int privileges) {
          return side.TryBind(side.rmr, of, offset, length,
                              static_cast<DAT_MEM_PRIV_FLAGS>(privileges),
                              DAT_COMPLETION_DEFAULT_FLAG, &context);
        };
        EXPECT_TRUE(
            Fails(bind(memory, 1, 256, kBoth), DAT_INVALID_PARAMETER, Argument(kTripletArgument)));
        EXPECT_TRUE(Fails(bind(memory, 0, 64, 0x1000), DAT_INVALID_PARAMETER,
                          Argument(kTripletArgument + 1)));
        EXPECT_TRUE(Fails(bind(unreadable, 0, 64, DAT_MEM_PRIV_REMOTE_WRITE_FLAG),
                          DAT_PRIVILEGES_VIOLATION));
        EXPECT_TRUE(Fails(side.TryBind(side.rmr, memory, 0, 64, kBoth,
                                       DAT_COMPLETION_SOLICITED_WAIT_FLAG, &context),
                          DAT_INVALID_PARAMETER, Argument(kFlagsArgument)));
#if VIADUCT_TEST_DAT == 20
        // The handle of one region, the context of another region of the same memory.
        DAT_REGION_DESCRIPTION same;
        same.for_va = const_cast<uint8_t*>(memory.bytes.data());
        DAT_LMR_HANDLE twin;
        DAT_LMR_CONTEXT twin_context;
        Must(CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, same, memory.bytes.size(), side.pz, kLocal,
                       &twin, &twin_context, nullptr, nullptr, nullptr));
        EXPECT_TRUE(Fails(BindRmr(side.rmr, twin, memory.Local(0, 64), kBoth, side.ep, Cookie(77),
                                  DAT_COMPLETION_DEFAULT_FLAG, &context),
                          DAT_INVALID_PARAMETER));
        Must(dat_lmr_free(twin));
        const DAT_LMR_TRIPLET triplet = memory.Local(0, 64);
        EXPECT_TRUE(
            Fails(dat_rmr_bind(side.rmr, memory.lmr, &triplet, kBoth, static_cast<DAT_VA_TYPE>(9),
                               side.ep, Cookie(77), DAT_COMPLETION_DEFAULT_FLAG, &context),
                  DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
#endif
        // The zone differs: first the window's, then the region's.
        DAT_PZ_HANDLE pz;
        Must(dat_pz_create(side.ia, &pz));
        DAT_RMR_HANDLE other;
        Must(dat_rmr_create(pz, &other));
        EXPECT_TRUE(
            Fails(side.TryBind(other, memory, 0, 64, kBoth, DAT_COMPLETION_DEFAULT_FLAG, &context),
                  DAT_PROTECTION_VIOLATION));
        Must(dat_rmr_free(other));
        std::swap(pz, side.pz);
        {
          const Memory elsewhere(side, 64, kLocal);
          EXPECT_TRUE(Fails(bind(elsewhere, 0, 64, kBoth), DAT_PROTECTION_VIOLATION));
        }
        std::swap(pz, side.pz);
        EXPECT_TRUE(IsEmpty(side.request_evd));
        // 37: a region with a window is in use.
        side.Bind(0, 64);
        EXPECT_TRUE(
            Fails(dat_lmr_free(memory.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE));
        side.Bind(0, 0);
        Must(dat_lmr_free(memory.lmr));
        peer.Tell("end");
      },
      AwaitEnd);
}

TEST(Rmr, C043_ABindPrecedesWhatIsPostedBehindIt) {
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        Memory message(side, sizeof(DAT_RMR_TRIPLET));
        side.Accept(peer);
        for (int i = 0; i < 50; ++i) {
          peer.Await("go");
          DAT_RMR_CONTEXT context = 0;
          Must(side.TryBind(side.rmr, side.memory, i, 64, kBoth, DAT_COMPLETION_SUPPRESS_FLAG,
                            &context));
          const DAT_RMR_TRIPLET remote = side.At(i, 64, context);
          std::memcpy(message.bytes.data(), &remote, sizeof remote);
          DAT_LMR_TRIPLET local = message.Local(0, sizeof remote);
          Must(dat_ep_post_send(side.ep, 1, &local, Cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
          EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, 2u);
          peer.Await("read");
        }
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        Memory memory(side, 256);
        for (int i = 0; i < 50; ++i) {
          DAT_LMR_TRIPLET local = memory.Local(0, sizeof(DAT_RMR_TRIPLET));
          Must(dat_ep_post_recv(side.ep, 1, &local, Cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
          peer.Tell("go");
          EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
          DAT_RMR_TRIPLET remote;
          std::memcpy(&remote, memory.bytes.data(), sizeof remote);
          local = memory.Local(64, 64);
          Must(dat_ep_post_rdma_read(side.ep, 1, &local, Cookie(4), &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG));
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS) << i;
          peer.Tell("read");
        }
      });
}

TEST(Rmr, C044_States) {
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        DAT_RMR_CONTEXT context;
        auto bind = [&] {
          return side.TryBind(side.rmr, side.memory, 0, 64, kBoth, DAT_COMPLETION_DEFAULT_FLAG,
                              &context);
        };
        EXPECT_TRUE(Fails(bind(), DAT_INVALID_STATE));
        side.Accept(peer);
        Must(dat_ep_disconnect(side.ep, DAT_CLOSE_ABRUPT_FLAG));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, side.ep);
        Must(bind());
        const DAT_EVENT event = Next(side.request_evd, DAT_RMR_BIND_COMPLETION_EVENT);
        EXPECT_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
        EXPECT_EQ(event.event_data.rmr_completion_event_data.user_cookie.as_64, 77u);
        // Nothing is bound, so the region can be freed.
        Must(dat_lmr_free(side.memory.lmr));
        peer.Tell("end");
      },
      AwaitEnd);
}

// The thread that posts may be as quick as the one that takes events: a place in the queue is free
// before its completion becomes an event.
TEST(Rmr, C040_EachCompletionHasItsOwnCookie) {
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        DAT_EP_ATTR attributes = {};
        attributes.max_request_dtos = 1;
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        side.AcceptFrom(peer, ep, Port(0));
        std::vector<DAT_RMR_HANDLE> windows(5'000);
        for (DAT_RMR_HANDLE& window : windows) Must(dat_rmr_create(side.pz, &window));
        std::thread poster([&] {
          const DAT_LMR_TRIPLET piece = side.memory.Local(0, 64);
          for (uint64_t n = 0; n < windows.size(); ++n) {
            DAT_RMR_CONTEXT context;
            DAT_RETURN result;
            do {
              result = BindRmr(windows[n], side.memory.lmr, piece, kBoth, ep, Cookie(n + 1),
                               DAT_COMPLETION_DEFAULT_FLAG, &context);
            } while (DAT_GET_TYPE(result) == DAT_INSUFFICIENT_RESOURCES);
            Must(result);
          }
        });
        uint64_t wrong = 0;
        for (uint64_t n = 0; n < windows.size(); ++n) {
          DAT_EVENT event;
          while (dat_evd_dequeue(side.request_evd, &event) != DAT_SUCCESS) {
          }
          const auto& data = event.event_data.rmr_completion_event_data;
          wrong += data.user_cookie.as_64 != n + 1 || data.rmr_handle != windows[n];
        }
        poster.join();
        EXPECT_EQ(wrong, 0u);
        peer.Tell("end");
      },
      AwaitEnd);
}

TEST(Rmr, C045_FreeUnbinds) {
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        side.Accept(peer);
        const DAT_RMR_CONTEXT context = side.Bind(0, 64);
        Must(dat_rmr_free(side.rmr));
        EXPECT_TRUE(Fails(dat_rmr_free(side.rmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR));
        Must(dat_lmr_free(side.memory.lmr));
        EXPECT_FALSE(side.Reaches(peer, 0, 64, context));
        side.EndBroken(peer);
      },
      WriteWhereTold);
}

TEST(Rmr, C022_C030_C031_AnObjectLikeOthers) {
  RunAlone([] {
    Side side;
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(side.ia, &pz));
    DAT_RMR_HANDLE rmr;
    EXPECT_TRUE(Fails(dat_rmr_create(pz, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    Must(dat_rmr_create(pz, &rmr));
    EXPECT_TRUE(Fails(dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE));
    DAT_HANDLE_TYPE type;
    Must(dat_get_handle_type(rmr, &type));
    EXPECT_EQ(type, DAT_HANDLE_TYPE_RMR);
    DAT_RMR_PARAM param;
    EXPECT_TRUE(Fails(dat_rmr_query(rmr, static_cast<DAT_RMR_PARAM_MASK>(0x100), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(dat_rmr_query(pz, DAT_RMR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
                      DAT_INVALID_HANDLE_RMR));
    EXPECT_TRUE(Fails(dat_ia_close(side.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE));
    Must(dat_rmr_free(rmr));
    Must(dat_pz_free(pz));
  });
}

#if VIADUCT_TEST_DAT == 20

TEST(Rmr, S_ThePeerEndsAWindowOfAnEndpoint) {
  RunPair(
      [](Peer& peer) {
        WindowSide side(&dat_rmr_create_for_ep);
        side.Accept(peer);
        const DAT_RMR_CONTEXT context = side.Bind(0, 64);
        const DAT_RMR_PARAM param = side.Window();
        EXPECT_EQ(param.rmr_scope, DAT_RMR_SCOPE_EP);
        DAT_LMR_TRIPLET local = side.memory.Local(128, 64);
        Must(dat_ep_post_recv(side.ep, 1, &local, Cookie(5), DAT_COMPLETION_DEFAULT_FLAG));
        peer.Send(side.At(0, 64, context));
        const DAT_DTO_COMPLETION_EVENT_DATA received = NextCompletion(side.receive_evd);
        EXPECT_EQ(received.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(received.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
        EXPECT_EQ(received.rmr_context, context);
        EXPECT_EQ(received.transfered_length, 8u);
        peer.Tell("again");
        side.EndBroken(peer);
      },
      [](Peer& peer) {
        InitiatingSide side(peer);
        EXPECT_EQ(side.Read(0, 64), DAT_DTO_SUCCESS);
        DAT_LMR_TRIPLET local = side.memory.Local(0, 8);
        Must(dat_ep_post_send_with_invalidate(side.ep, 1, &local, Cookie(2),
                                              DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE,
                                              side.remote.rmr_context));
        EXPECT_EQ(NextCompletion(side.request_evd).operation, DAT_DTO_SEND);
        peer.Await("again");
        EXPECT_EQ(side.Read(0, 64), DAT_DTO_ERR_REMOTE_ACCESS);
        peer.Await("end");
      });
}

TEST(Rmr, S_ParametersOfThePosts) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    const Memory memory(side, 256);
    DAT_LMR_TRIPLET local = memory.Local(0, 8);
    DAT_RMR_TRIPLET sink = memory.Remote(), remote = memory.Remote();
    const auto read = [&](const DAT_RMR_TRIPLET* to, const DAT_RMR_TRIPLET* from, int flags) {
      return dat_ep_post_rdma_read_to_rmr(ep, to, Cookie(1), from,
                                          static_cast<DAT_COMPLETION_FLAGS>(flags));
    };
    const auto send = [&](DAT_COUNT count, DAT_LMR_TRIPLET* from, int flags) {
      return dat_ep_post_send_with_invalidate(ep, count, from, Cookie(1),
                                              static_cast<DAT_COMPLETION_FLAGS>(flags), DAT_TRUE,
                                              memory.rmr_context);
    };
    EXPECT_TRUE(Fails(read(nullptr, &remote, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(read(&sink, nullptr, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(send(-1, &local, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(send(1, nullptr, 0), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    for (int flags : {int{DAT_COMPLETION_UNSIGNALLED_FLAG}, 0x100}) {
      EXPECT_TRUE(Fails(read(&sink, &remote, flags), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
      EXPECT_TRUE(Fails(send(1, &local, flags), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    }
    sink.segment_length = remote.segment_length - 1;
    EXPECT_TRUE(Fails(read(&sink, &remote, 0), DAT_LENGTH_ERROR));
  });
}

TEST(Rmr, S_ReadIntoAWindow) {
  if (kSeesThreadsOnly) GTEST_SKIP() << kOrderedByThePeer;
  RunPair(
      [](Peer& peer) {
        WindowSide side;
        side.Accept(peer);
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        const DAT_RMR_CONTEXT context = side.Bind(100, 64, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
        const DAT_RMR_TRIPLET sink = side.At(100, 64, context);
        Must(dat_ep_post_rdma_read_to_rmr(side.ep, &sink, Cookie(9), &remote,
                                          DAT_COMPLETION_SUPPRESS_FLAG));
        Must(dat_ep_post_rdma_read_to_rmr(side.ep, &sink, Cookie(1), &remote,
                                          DAT_COMPLETION_DEFAULT_FLAG));
        const DAT_DTO_COMPLETION_EVENT_DATA done = NextCompletion(side.request_evd);
        EXPECT_EQ(done.user_cookie.as_64, 1u) << "the other one's success is suppressed";
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(done.operation, DAT_DTO_RDMA_READ);
        EXPECT_EQ(done.transfered_length, 64u);
        EXPECT_EQ(side.memory.bytes[99], 0);
        EXPECT_EQ(side.memory.bytes[100], 0x11);
        EXPECT_EQ(side.memory.bytes[163], 0x11);
        DAT_UINT64 reads = 0, bytes = 0;
        Must(dat_ib_query_counters(side.ep, DCNT_EP_POST_READ, &reads, 0));
        Must(dat_ib_query_counters(side.ep, DCNT_EP_POST_READ_DATA, &bytes, 0));
        EXPECT_EQ(reads, 2u);
        EXPECT_EQ(bytes, 128u);
        peer.Tell("end");
      },
      [](Peer& peer) {
        ConnectingSide side(peer);
        Memory memory(side, 64);
        memory.bytes.assign(64, 0x11);
        peer.Send(memory.Remote());
        peer.Await("end");
      });
}

#endif

}  // namespace
}  // namespace viaduct::tests
