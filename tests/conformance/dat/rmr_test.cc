// dat_rmr_*: the pages of those names; DAT checklist 22, 31, 37, 40-45, and what 2.0 adds.
#include <cstring>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

constexpr auto kBoth = static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_REMOTE_READ_FLAG |
                                                       DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
constexpr auto kLocal = static_cast<DAT_MEM_PRIV_FLAGS>(DAT_MEM_PRIV_LOCAL_READ_FLAG |
                                                        DAT_MEM_PRIV_LOCAL_WRITE_FLAG);

DAT_RMR_HANDLE NewRmr(const Side& side) {
  DAT_RMR_HANDLE rmr;
  Must(dat_rmr_create(side.pz, &rmr));
  return rmr;
}

// Binds and waits for the completion.
DAT_RMR_CONTEXT Bind(const Side& side, DAT_RMR_HANDLE rmr, const Memory& memory, size_t offset,
                     size_t length, DAT_EP_HANDLE ep, DAT_MEM_PRIV_FLAGS privileges = kBoth) {
  DAT_RMR_CONTEXT context = 0;
  Must(BindRmr(rmr, memory.lmr, memory.Local(offset, length), privileges, ep, Cookie(77),
               DAT_COMPLETION_DEFAULT_FLAG, &context));
  const DAT_EVENT event = Next(side.request_evd, DAT_RMR_BIND_COMPLETION_EVENT);
  const auto& data = event.event_data.rmr_completion_event_data;
  EXPECT_EQ(data.rmr_handle, rmr);
  EXPECT_EQ(data.user_cookie.as_64, 77u);
  EXPECT_EQ(data.status, DAT_RMR_BIND_SUCCESS);
  return context;
}

DAT_RMR_TRIPLET At(const Memory& memory, size_t offset, size_t length, DAT_RMR_CONTEXT context) {
  return RemoteTriplet(reinterpret_cast<uintptr_t>(memory.bytes.data() + offset), length, context);
}

// The client of every pair: writes to what it is told until that is refused.
void WriteWhereTold(Peer& peer) {
  Side side;
  Memory memory(side, 256);
  memory.bytes.assign(256, 0x5c);
  DAT_EP_HANDLE ep = side.NewEp();
  side.ConnectTo(peer, ep, Port(0));
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

// The server tells it what; true if that was in place.
bool Reaches(Peer& peer, const DAT_RMR_TRIPLET& remote) {
  peer.Send(remote);
  return peer.Receive<DAT_DTO_COMPLETION_STATUS>() == DAT_DTO_SUCCESS;
}

TEST(Rmr, C040_EachBindHasANewContext) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        side.AcceptFrom(peer, ep, Port(0));
        const DAT_RMR_CONTEXT first = Bind(side, rmr, memory, 0, 64, ep);
        EXPECT_TRUE(Reaches(peer, At(memory, 0, 64, first)));
        EXPECT_EQ(memory.bytes[63], 0x5c);
        EXPECT_EQ(memory.bytes[64], 0);
        const DAT_RMR_CONTEXT second = Bind(side, rmr, memory, 128, 64, ep);
        EXPECT_NE(first, second);
        DAT_RMR_PARAM param;
        Must(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
        EXPECT_EQ(param.ia_handle, side.ia);
        EXPECT_EQ(param.pz_handle, side.pz);
        EXPECT_EQ(param.rmr_context, second);
        EXPECT_EQ(param.mem_priv, kBoth);
        EXPECT_EQ(param.lmr_triplet.lmr_context, memory.lmr_context);
        EXPECT_EQ(param.lmr_triplet.segment_length, 64u);
        EXPECT_TRUE(Reaches(peer, At(memory, 128, 64, second)));
        EXPECT_FALSE(Reaches(peer, At(memory, 0, 64, first)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Tell("end");
      },
      WriteWhereTold);
}

TEST(Rmr, C041_LengthZeroUnbinds) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        side.AcceptFrom(peer, ep, Port(0));
        const DAT_RMR_CONTEXT context = Bind(side, rmr, memory, 0, 64, ep);
        EXPECT_TRUE(Reaches(peer, At(memory, 0, 64, context)));
        Bind(side, rmr, memory, 0, 0, ep);
        DAT_RMR_PARAM param;
        Must(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
        EXPECT_EQ(param.rmr_context, 0u);
        memory.bytes.assign(256, 0);
        EXPECT_FALSE(Reaches(peer, At(memory, 0, 64, context)));
        EXPECT_EQ(memory.bytes, std::vector<uint8_t>(256, 0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Tell("end");
      },
      WriteWhereTold);
}

TEST(Rmr, C037_C042_WhatMayNotBeBound) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        Memory unreadable(side, 256, DAT_MEM_PRIV_LOCAL_READ_FLAG);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        side.AcceptFrom(peer, ep, Port(0));
        DAT_RMR_CONTEXT context;
        auto bind = [&](const Memory& of, size_t offset, size_t length, int privileges) {
          return BindRmr(rmr, of.lmr, of.Local(offset, length),
                         static_cast<DAT_MEM_PRIV_FLAGS>(privileges), ep, Cookie(1),
                         DAT_COMPLETION_DEFAULT_FLAG, &context);
        };
        EXPECT_TRUE(Fails(bind(memory, 1, 256, kBoth), DAT_INVALID_PARAMETER));
        EXPECT_TRUE(Fails(bind(memory, 0, 64, 0x1000), DAT_INVALID_PARAMETER));
        EXPECT_TRUE(Fails(bind(unreadable, 0, 64, DAT_MEM_PRIV_REMOTE_WRITE_FLAG),
                          DAT_PRIVILEGES_VIOLATION));
        EXPECT_TRUE(Fails(BindRmr(rmr, memory.lmr, memory.Local(0, 64), kBoth, ep, Cookie(1),
                                  DAT_COMPLETION_SOLICITED_WAIT_FLAG, &context),
                          DAT_INVALID_PARAMETER));
        // Zones differ: the window's, the region's.
        DAT_PZ_HANDLE pz;
        Must(dat_pz_create(side.ia, &pz));
        DAT_RMR_HANDLE other;
        Must(dat_rmr_create(pz, &other));
        EXPECT_TRUE(Fails(BindRmr(other, memory.lmr, memory.Local(0, 64), kBoth, ep, Cookie(1),
                                  DAT_COMPLETION_DEFAULT_FLAG, &context),
                          DAT_PROTECTION_VIOLATION));
        Must(dat_rmr_free(other));
        std::swap(pz, side.pz);
        {
          Memory elsewhere(side, 64, kLocal);
          EXPECT_TRUE(Fails(bind(elsewhere, 0, 64, kBoth), DAT_PROTECTION_VIOLATION));
        }
        std::swap(pz, side.pz);
        EXPECT_TRUE(IsEmpty(side.request_evd));
        // 37: a region with a window is in use.
        Bind(side, rmr, memory, 0, 64, ep);
        EXPECT_TRUE(
            Fails(dat_lmr_free(memory.lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE));
        Bind(side, rmr, memory, 0, 0, ep);
        Must(dat_lmr_free(memory.lmr));
        peer.Tell("end");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.Await("end");
      });
}

TEST(Rmr, C043_ABindPrecedesWhatIsPostedBehindIt) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        Memory message(side, sizeof(DAT_RMR_TRIPLET));
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        side.AcceptFrom(peer, ep, Port(0));
        for (int i = 0; i < 50; ++i) {
          peer.Await("go");
          DAT_RMR_CONTEXT context = 0;
          Must(BindRmr(rmr, memory.lmr, memory.Local(i, 64), kBoth, ep, Cookie(1),
                       DAT_COMPLETION_SUPPRESS_FLAG, &context));
          const DAT_RMR_TRIPLET remote = At(memory, i, 64, context);
          std::memcpy(message.bytes.data(), &remote, sizeof remote);
          DAT_LMR_TRIPLET local = message.Local(0, sizeof remote);
          Must(dat_ep_post_send(ep, 1, &local, Cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
          EXPECT_EQ(NextCompletion(side.request_evd).user_cookie.as_64, 2u);
          peer.Await("read");
        }
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        for (int i = 0; i < 50; ++i) {
          DAT_LMR_TRIPLET local = memory.Local(0, sizeof(DAT_RMR_TRIPLET));
          Must(dat_ep_post_recv(ep, 1, &local, Cookie(3), DAT_COMPLETION_DEFAULT_FLAG));
          peer.Tell("go");
          EXPECT_EQ(NextCompletion(side.receive_evd).status, DAT_DTO_SUCCESS);
          DAT_RMR_TRIPLET remote;
          std::memcpy(&remote, memory.bytes.data(), sizeof remote);
          local = memory.Local(64, 64);
          Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(4), &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG));
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS) << i;
          peer.Tell("read");
        }
      });
}

TEST(Rmr, C044_States) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        DAT_RMR_CONTEXT context;
        auto bind = [&] {
          return BindRmr(rmr, memory.lmr, memory.Local(0, 64), kBoth, ep, Cookie(9),
                         DAT_COMPLETION_DEFAULT_FLAG, &context);
        };
        EXPECT_TRUE(Fails(bind(), DAT_INVALID_STATE));
        side.AcceptFrom(peer, ep, Port(0));
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        Must(bind());
        const DAT_EVENT event = Next(side.request_evd, DAT_RMR_BIND_COMPLETION_EVENT);
        EXPECT_EQ(event.event_data.rmr_completion_event_data.status, DAT_DTO_ERR_FLUSHED);
        EXPECT_EQ(event.event_data.rmr_completion_event_data.user_cookie.as_64, 9u);
        // Nothing is bound: the region is free to go.
        Must(dat_lmr_free(memory.lmr));
        peer.Tell("end");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.Await("end");
      });
}

TEST(Rmr, C045_FreeUnbinds) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        side.AcceptFrom(peer, ep, Port(0));
        const DAT_RMR_CONTEXT context = Bind(side, rmr, memory, 0, 64, ep);
        Must(dat_rmr_free(rmr));
        EXPECT_TRUE(Fails(dat_rmr_free(rmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR));
        Must(dat_lmr_free(memory.lmr));
        EXPECT_FALSE(Reaches(peer, At(memory, 0, 64, context)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Tell("end");
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
        Side side;
        Memory memory(side, 256, kLocal);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr;
        Must(dat_rmr_create_for_ep(side.pz, &rmr));
        side.AcceptFrom(peer, ep, Port(0));
        const DAT_RMR_CONTEXT context = Bind(side, rmr, memory, 0, 64, ep);
        DAT_RMR_PARAM param;
        Must(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
        EXPECT_EQ(param.rmr_scope, DAT_RMR_SCOPE_EP);
        DAT_LMR_TRIPLET local = memory.Local(128, 64);
        Must(dat_ep_post_recv(ep, 1, &local, Cookie(5), DAT_COMPLETION_DEFAULT_FLAG));
        peer.Send(At(memory, 0, 64, context));
        const DAT_DTO_COMPLETION_EVENT_DATA received = NextCompletion(side.receive_evd);
        EXPECT_EQ(received.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(received.operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
        EXPECT_EQ(received.rmr_context, context);
        EXPECT_EQ(received.transfered_length, 8u);
        peer.Tell("again");
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, ep);
        peer.Tell("end");
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, 64);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        local = memory.Local(0, 8);
        Must(dat_ep_post_send_with_invalidate(ep, 1, &local, Cookie(2), DAT_COMPLETION_DEFAULT_FLAG,
                                              DAT_TRUE, remote.rmr_context));
        EXPECT_EQ(NextCompletion(side.request_evd).operation, DAT_DTO_SEND);
        peer.Await("again");
        local = memory.Local(0, 64);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(3), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_ERR_REMOTE_ACCESS);
        peer.Await("end");
      });
}

TEST(Rmr, S_ReadIntoAWindow) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 256, kLocal);
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RMR_HANDLE rmr = NewRmr(side);
        side.AcceptFrom(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        const DAT_RMR_CONTEXT context =
            Bind(side, rmr, memory, 100, 64, ep, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
        const DAT_RMR_TRIPLET sink = At(memory, 100, 64, context);
        Must(dat_ep_post_rdma_read_to_rmr(ep, &sink, Cookie(1), &remote,
                                          DAT_COMPLETION_DEFAULT_FLAG));
        const DAT_DTO_COMPLETION_EVENT_DATA done = NextCompletion(side.request_evd);
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(done.operation, DAT_DTO_RDMA_READ);
        EXPECT_EQ(done.transfered_length, 64u);
        EXPECT_EQ(memory.bytes[99], 0);
        EXPECT_EQ(memory.bytes[100], 0x11);
        EXPECT_EQ(memory.bytes[163], 0x11);
        peer.Tell("end");
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, 64);
        memory.bytes.assign(64, 0x11);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        peer.Send(memory.Remote());
        peer.Await("end");
      });
}

#endif

}  // namespace
}  // namespace viaduct::tests
