// dat_ep_create, _query, _modify, _get_status, _reset, _free: the pages of those names; DAT
// checklist 70-75.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

TEST(EpCreate, C070_NothingGiven) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                       nullptr, &ep));
    const DAT_EP_PARAM param = ParametersOf(ep);
    EXPECT_EQ(param.ia_handle, side.ia);
    EXPECT_EQ(param.ep_state, DAT_EP_STATE_UNCONNECTED);
    EXPECT_EQ(param.pz_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(param.recv_evd_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(param.request_evd_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(param.connect_evd_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(param.srq_handle, DAT_HANDLE_NULL);
    EXPECT_EQ(param.remote_ia_address_ptr, nullptr);
    EXPECT_GT(param.ep_attr.max_recv_dtos, 0);
    EXPECT_GT(param.ep_attr.max_request_dtos, 0);
    EXPECT_GT(param.ep_attr.max_recv_iov, 0);
    EXPECT_GT(param.ep_attr.max_message_size, 0u);
    EXPECT_EQ(param.ep_attr.qos, DAT_QOS_BEST_EFFORT);
    Must(dat_ep_free(ep));
  });
}

TEST(EpCreate, S_PartsAreShown) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    const DAT_EP_PARAM param = ParametersOf(ep);
    EXPECT_EQ(param.pz_handle, side.pz);
    EXPECT_EQ(param.recv_evd_handle, side.receive_evd);
    EXPECT_EQ(param.request_evd_handle, side.request_evd);
    EXPECT_EQ(param.connect_evd_handle, side.connect_evd);
    DAT_EP_PARAM out;
    EXPECT_TRUE(Fails(dat_ep_query(ep, ~DAT_EP_PARAM_MASK{0}, &out), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_ep_query(ep, DAT_EP_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
    // MVAPICH2 asks like this, and does not check the result.
    Must(dat_ep_query(ep, 0xFFFF, &out));
    EXPECT_EQ(out.ep_state, DAT_EP_STATE_UNCONNECTED);
    EXPECT_TRUE(Fails(dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd,
                                    side.connect_evd, nullptr, nullptr),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7));
  });
}

// As dtest, dtestcm and MVAPICH2 ask: sizes and segments of 0 limit nothing.
TEST(EpCreate, C071_ZeroIsNoLimit) {
  constexpr size_t kBytes = 100000;
  DAT_EP_ATTR attributes = {};
  attributes.max_recv_dtos = 4;
  attributes.max_request_dtos = 4;
  attributes.max_recv_iov = 2;
  attributes.max_request_iov = 2;
  RunPair(
      [&](Peer& peer) {
        Side side;
        Memory memory(side, kBytes);
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        DAT_LMR_TRIPLET pieces[] = {memory.Local(0, 1000), memory.Local(1000, kBytes - 1000)};
        Must(dat_ep_post_recv(ep, 2, pieces, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
        side.AcceptFrom(peer, ep, Port(0));
        const auto done = NextCompletion(side.receive_evd);
        EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        EXPECT_EQ(done.transfered_length, kBytes);
        EXPECT_EQ(memory.bytes, Pattern(kBytes));
        peer.Tell("done");
      },
      [&](Peer& peer) {
        Side side;
        Memory memory(side, kBytes);
        const std::vector<uint8_t> pattern = Pattern(kBytes);
        std::copy(pattern.begin(), pattern.end(), memory.bytes.begin());
        DAT_EP_HANDLE ep = side.NewEp(&attributes);
        side.ConnectTo(peer, ep, Port(0));
        DAT_LMR_TRIPLET pieces[] = {memory.Local(0, 50000), memory.Local(50000, 50000)};
        Must(dat_ep_post_send(ep, 2, pieces, Cookie(2), DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        peer.Await("done");
      });
}

// The attributes that MVAPICH2 and NetPIPE ask for.
TEST(EpCreate, S_AttributesOfOldPrograms) {
  RunAlone([] {
    Side side;
    DAT_EP_ATTR mvapich2 = {};
    mvapich2.max_message_size = DAT_VLEN{1} << 31;
    mvapich2.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
    mvapich2.max_recv_dtos = mvapich2.max_request_dtos = 64;
    mvapich2.max_recv_iov = mvapich2.max_request_iov = 4;
    mvapich2.max_rdma_read_in = mvapich2.max_rdma_read_out = 4;
    DAT_EP_ATTR netpipe = {};
    netpipe.max_message_size = netpipe.max_rdma_size = 1 << 20;
    netpipe.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
    netpipe.max_recv_dtos = netpipe.max_request_dtos =
        std::min(20000, side.attributes.max_dto_per_ep);
    netpipe.max_recv_iov = netpipe.max_request_iov = 1;
    for (const DAT_EP_ATTR& attributes : {mvapich2, netpipe}) {
      DAT_EP_HANDLE ep = side.NewEp(&attributes);
      EXPECT_EQ(ParametersOf(ep).ep_attr.request_completion_flags,
                attributes.request_completion_flags);
      Must(dat_ep_free(ep));
    }
  });
}

TEST(EpCreate, S_Attributes) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep;
    auto create = [&](const DAT_EP_ATTR& attributes) {
      return dat_ep_create(side.ia, side.pz, side.receive_evd, side.request_evd, side.connect_evd,
                           &attributes, &ep);
    };
    DAT_EP_ATTR attributes = {};
    attributes.max_recv_dtos = side.attributes.max_dto_per_ep;
    attributes.max_request_dtos = side.attributes.max_dto_per_ep;
    Must(create(attributes));
    EXPECT_EQ(ParametersOf(ep).ep_attr.max_recv_dtos, side.attributes.max_dto_per_ep);
    attributes.max_recv_dtos = side.attributes.max_dto_per_ep + 1;
    EXPECT_TRUE(Fails(create(attributes), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    attributes = {};
    attributes.max_request_iov = side.attributes.max_iov_segments_per_dto + 1;
    EXPECT_TRUE(Fails(create(attributes), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
    attributes = {};
    attributes.qos = DAT_QOS_PREMIUM;
    EXPECT_TRUE(Fails(create(attributes), DAT_MODEL_NOT_SUPPORTED));
    attributes = {};
    attributes.request_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;  // for receives only
    EXPECT_TRUE(Fails(create(attributes), DAT_INVALID_PARAMETER, DAT_INVALID_ARG6));
  });
}

TEST(EpModify, C072_FixedMembers) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_EP_PARAM param = ParametersOf(ep);
    for (DAT_EP_PARAM_MASK field :
         {DAT_EP_FIELD_IA_HANDLE, DAT_EP_FIELD_EP_STATE, DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR,
          DAT_EP_FIELD_LOCAL_PORT_QUAL, DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR,
          DAT_EP_FIELD_REMOTE_PORT_QUAL}) {
      EXPECT_TRUE(Fails(dat_ep_modify(ep, field, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    }
    EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
  });
}

// An endpoint that was created without anything is given what it needs, and works.
TEST(EpModify, C072_Unconnected) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep;
        Must(dat_ep_create(side.ia, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
                           DAT_HANDLE_NULL, nullptr, &ep));
        DAT_EP_PARAM param = {};
        param.pz_handle = side.pz;
        param.recv_evd_handle = side.receive_evd;
        param.request_evd_handle = side.request_evd;
        param.connect_evd_handle = side.connect_evd;
        param.ep_attr.max_recv_dtos = 5;
        for (DAT_EP_PARAM_MASK field :
             {DAT_EP_FIELD_PZ_HANDLE, DAT_EP_FIELD_RECV_EVD_HANDLE, DAT_EP_FIELD_REQUEST_EVD_HANDLE,
              DAT_EP_FIELD_CONNECT_EVD_HANDLE, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS}) {
          Must(dat_ep_modify(ep, field, &param));
        }
        const DAT_EP_PARAM shown = ParametersOf(ep);
        EXPECT_EQ(shown.pz_handle, side.pz);
        EXPECT_EQ(shown.recv_evd_handle, side.receive_evd);
        EXPECT_EQ(shown.connect_evd_handle, side.connect_evd);
        EXPECT_EQ(shown.ep_attr.max_recv_dtos, 5);
        side.PostReceive(ep, 3);
        side.AcceptFrom(peer, ep, Port(0));
        EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, 3u);
        EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE));
        EXPECT_TRUE(
            Fails(dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param), DAT_INVALID_STATE));
        param.ep_attr.max_rdma_size = shown.ep_attr.max_rdma_size - 1;
        EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &param),
                          DAT_INVALID_STATE));
        EXPECT_EQ(ParametersOf(ep).ep_attr.max_rdma_size, shown.ep_attr.max_rdma_size);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        Must(side.TrySend(ep, 1));
        peer.Await("done");
      });
}

TEST(EpModify, C072_Reserved) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    DAT_EP_PARAM param = ParametersOf(ep);
    DAT_PZ_HANDLE other;
    Must(dat_pz_create(side.ia, &other));
    param.pz_handle = other;
    EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE));
    param.connect_evd_handle = side.NewEvd(DAT_EVD_CONNECTION_FLAG);
    Must(dat_ep_modify(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
    EXPECT_EQ(ParametersOf(ep).connect_evd_handle, param.connect_evd_handle);
  });
}

TEST(EpModify, C072_ActivePendingAndDisconnected) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        const DAT_EP_PARAM before = ParametersOf(ep);
        DAT_EP_PARAM param = before;
        Must(dat_pz_create(side.ia, &param.pz_handle));
        param.recv_evd_handle = side.NewEvd(DAT_EVD_DTO_FLAG);
        param.ep_attr.max_recv_dtos = 5;
        const auto refused = [&](DAT_EP_STATE state) {
          EXPECT_EQ(StateOf(ep), state);
          for (DAT_EP_PARAM_MASK field : {DAT_EP_FIELD_PZ_HANDLE, DAT_EP_FIELD_RECV_EVD_HANDLE,
                                          DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS}) {
            EXPECT_TRUE(Fails(dat_ep_modify(ep, field, &param), DAT_INVALID_STATE)) << field;
          }
          const DAT_EP_PARAM shown = ParametersOf(ep);
          EXPECT_EQ(shown.pz_handle, before.pz_handle);
          EXPECT_EQ(shown.recv_evd_handle, before.recv_evd_handle);
          EXPECT_EQ(shown.ep_attr.max_recv_dtos, before.ep_attr.max_recv_dtos);
        };
        peer.Await("listening");
        side.Connect(ep, Port(0));
        refused(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        refused(DAT_EP_STATE_DISCONNECTED);
        peer.Tell("done");
      });
}

// What may be modified while an endpoint's request waits for the accept; the zone of a provider's
// endpoint only.
TEST(EpModify, C072_PassiveAndTentative) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        side.Listen(Port(1), DAT_PSP_PROVIDER_FLAG);
        peer.Tell("listening");
        DAT_CR_HANDLE passive = DAT_HANDLE_NULL, tentative = DAT_HANDLE_NULL;
        for (int i = 0; i < 2; ++i) {
          const auto request = NextRequest(side.cr_evd);
          (request.conn_qual == Port(0) ? passive : tentative) = request.cr_handle;
        }
        DAT_CR_PARAM cr;
        Must(dat_cr_query(tentative, DAT_CR_FIELD_ALL, &cr));
        DAT_EP_HANDLE provided = cr.local_ep_handle;
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
        EXPECT_EQ(StateOf(provided), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
        DAT_EP_PARAM param = {};
        Must(dat_pz_create(side.ia, &param.pz_handle));
        param.recv_evd_handle = side.NewEvd(DAT_EVD_DTO_FLAG);
        param.request_evd_handle = side.request_evd;
        param.connect_evd_handle = side.connect_evd;
        param.ep_attr.max_recv_dtos = 7;
        const DAT_EP_PARAM_MASK fields =
            DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
            DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS;
        Must(dat_ep_modify(ep, fields, &param));
        EXPECT_EQ(ParametersOf(ep).recv_evd_handle, param.recv_evd_handle);
        EXPECT_EQ(ParametersOf(ep).ep_attr.max_recv_dtos, 7);
        EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE,
                          DAT_INVALID_STATE_EP_PASSCONNPENDING));
        Must(dat_ep_modify(provided, fields | DAT_EP_FIELD_PZ_HANDLE, &param));
        Must(side.TryAccept(passive, DAT_HANDLE_NULL));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        Must(side.TryAccept(tentative, DAT_HANDLE_NULL));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, provided);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        peer.Await("listening");
        for (int i = 0; i < 2; ++i) side.Connect(side.NewEp(), Port(i));
        for (int i = 0; i < 2; ++i) {
          Next(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        }
        peer.Tell("done");
      });
}

// An endpoint whose zone was taken away is like one made without, and no longer uses what it had.
TEST(EpModify, S_ZoneTakenAway) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE first = side.NewEvd(DAT_EVD_DTO_FLAG), second = side.NewEvd(DAT_EVD_DTO_FLAG);
    DAT_PZ_HANDLE pz;
    Must(dat_pz_create(side.ia, &pz));
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, pz, first, first, side.connect_evd, nullptr, &ep));
    DAT_EP_PARAM param = {};
    param.pz_handle = DAT_HANDLE_NULL;
    param.recv_evd_handle = second;
    param.request_evd_handle = second;
    Must(dat_ep_modify(
        ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE,
        &param));
    EXPECT_EQ(ParametersOf(ep).pz_handle, DAT_HANDLE_NULL);
    Must(dat_evd_free(first));
    Must(dat_pz_free(pz));
    uint8_t byte;
    DAT_LMR_TRIPLET local = Triplet(&byte, 1, 1);
    EXPECT_TRUE(Fails(dat_ep_post_recv(ep, 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG),
                      DAT_INVALID_STATE));
    EXPECT_TRUE(Fails(side.TryConnect(ep, Port(0)), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
    // With a zone again the endpoint works; once a receive is posted, the zone must stay.
    param.pz_handle = side.pz;
    Must(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
    side.PostReceive(ep, 2);
    param.pz_handle = DAT_HANDLE_NULL;
    EXPECT_TRUE(Fails(dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param), DAT_INVALID_STATE));
    EXPECT_EQ(ParametersOf(ep).pz_handle, side.pz);
    side.PostReceive(ep, 3);
    Must(dat_ep_free(ep));
    Must(dat_evd_free(second));
  });
}

// A receive that another thread posts meanwhile is in one queue or in the other; none is lost.
TEST(EpModify, S_BesideAPost) {
  RunAlone([] {
    Side side;
    DAT_EVD_HANDLE evds[2];
    for (DAT_EVD_HANDLE& evd : evds) evd = side.NewEvd(DAT_EVD_DTO_FLAG);
    uint8_t byte;
    DAT_LMR_TRIPLET local = Triplet(&byte, 1, 1);
    for (int round = 0; round < 1000; ++round) {
      DAT_EP_HANDLE ep;
      Must(dat_ep_create(side.ia, side.pz, evds[0], side.request_evd, side.connect_evd, nullptr,
                         &ep));
      std::atomic<bool> begun{false};
      DAT_RETURN posted = DAT_SUCCESS;
      std::thread other([&] {
        begun = true;
        // Waits until about the time when the modification begins.
        for (int i = 0; i < round % 100 * 20; ++i)
          std::atomic_signal_fence(std::memory_order_seq_cst);
        posted = dat_ep_post_recv(ep, 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG);
      });
      while (!begun) sched_yield();
      DAT_EP_PARAM param = {};
      param.recv_evd_handle = evds[1];
      const DAT_RETURN modified = dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param);
      other.join();
      Must(posted);
      DAT_BOOLEAN idle = DAT_FALSE;
      Must(dat_ep_get_status(ep, nullptr, &idle, nullptr));
      if (idle == DAT_TRUE) {
        Must(modified);
        EXPECT_EQ(NextCompletion(evds[0], 0).status, DAT_DTO_ERR_FLUSHED) << round;
      }
      Must(dat_ep_free(ep));
    }
  });
}

// Two threads change an endpoint at once, each its own member, and neither undoes what the other
// did: otherwise a dispatcher that nobody uses any more would be used again.
TEST(EpModify, S_BesideAnother) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    constexpr int kRounds = 10000;
    DAT_EVD_HANDLE evds[2];
    for (DAT_EVD_HANDLE& evd : evds) evd = side.NewEvd(DAT_EVD_DTO_FLAG);
    int undone[2] = {};
    std::thread other([&] {
      DAT_EVD_HANDLE connects[2];
      for (DAT_EVD_HANDLE& evd : connects) evd = side.NewEvd(DAT_EVD_CONNECTION_FLAG);
      DAT_EP_PARAM param = {};
      for (int round = 0; round < kRounds; ++round) {
        param.connect_evd_handle = connects[round % 2];
        Must(dat_ep_modify(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
        if (ParametersOf(ep).connect_evd_handle != param.connect_evd_handle) ++undone[0];
      }
    });
    DAT_EP_PARAM param = {};
    for (int round = 0; round < kRounds; ++round) {
      param.recv_evd_handle = evds[round % 2];
      Must(dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
      if (ParametersOf(ep).recv_evd_handle != param.recv_evd_handle) ++undone[1];
    }
    other.join();
    EXPECT_EQ(undone[0], 0);
    EXPECT_EQ(undone[1], 0);
  });
}

// A modification that comes too late lets go of what it has made.
TEST(EpFree, S_BesideAModification) {
  RunAlone([] {
    Side side;
    for (int round = 0; round < 300; ++round) {
      DAT_EVD_HANDLE evd = side.NewEvd(DAT_EVD_DTO_FLAG);
      DAT_EP_HANDLE ep;
      Must(dat_ep_create(side.ia, side.pz, evd, evd, side.connect_evd, nullptr, &ep));
      std::atomic<bool> begun{false};
      std::thread other([&] {
        DAT_EP_PARAM param = {};
        DAT_RETURN modified;
        do {
          param.ep_attr.max_recv_dtos = param.ep_attr.max_recv_dtos % 2 + 7;
          modified = dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param);
          begun = true;
        } while (modified == DAT_SUCCESS);
        EXPECT_TRUE(Fails(modified, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
      });
      while (!begun) sched_yield();
      Must(dat_ep_free(ep));
      DAT_RETURN freed;
      while ((freed = dat_evd_free(evd)) != DAT_SUCCESS) {
        ASSERT_TRUE(Fails(freed, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE));
        sched_yield();
      }
      other.join();
    }
  });
}

TEST(EpGetStatus, C073_Idle) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_EP_STATE state = DAT_EP_STATE_CONNECTED;
    DAT_BOOLEAN receive = DAT_FALSE, request = DAT_FALSE;
    Must(dat_ep_get_status(ep, &state, &receive, &request));
    EXPECT_EQ(state, DAT_EP_STATE_UNCONNECTED);
    EXPECT_EQ(receive, DAT_TRUE);
    EXPECT_EQ(request, DAT_TRUE);
    side.PostReceive(ep, 1);
    Must(dat_ep_get_status(ep, nullptr, &receive, nullptr));
    EXPECT_EQ(receive, DAT_FALSE);
    Must(dat_ep_get_status(ep, nullptr, nullptr, &request));
    EXPECT_EQ(request, DAT_TRUE);
    Must(dat_ep_get_status(ep, nullptr, nullptr, nullptr));
  });
}

TEST(EpReset, C074_UnconnectedKeepsReceives) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 11);
        Must(dat_ep_reset(ep));
        EXPECT_TRUE(IsEmpty(side.receive_evd));
        side.AcceptFrom(peer, ep, Port(0));
        EXPECT_TRUE(Fails(dat_ep_reset(ep), DAT_INVALID_STATE));
        EXPECT_EQ(NextCompletion(side.receive_evd).user_cookie.as_64, 11u);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        Must(side.TrySend(ep, 1));
        peer.Await("done");
      });
}

TEST(EpReset, C074_PendingIsInvalid) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    EXPECT_TRUE(Fails(dat_ep_reset(ep), DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED));
  });
}

TEST(EpFree, C075_ConnectedDisconnectsThePeer) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 1);
        side.AcceptFrom(peer, ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        side.ExpectFlushedReceives(ep, 1, 1);
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        Must(dat_ep_free(ep));
        EXPECT_TRUE(Fails(dat_ep_free(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
        Must(dat_evd_free(side.connect_evd));  // nothing feeds it any more
        peer.Tell("done");
      });
}

TEST(EpFree, C075_WhileConnecting) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
        peer.Tell("arrived");
        peer.Await("freed");
        DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(cr, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, ep);
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        peer.Await("arrived");
        Must(dat_ep_free(ep));
        peer.Tell("freed");
      });
}

}  // namespace
}  // namespace viaduct::tests
