// dat_ep_recv_query, dat_ep_set_watermark, the watermark of dat_ep_create's attributes: the pages
// of those names; DAT checklist 132.
#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

constexpr DAT_COUNT kNone = DAT_WATERMARK_INFINITE;

constexpr DAT_COUNT kPosted = 20;

DAT_COUNT Open(DAT_EP_HANDLE ep) {
  DAT_COUNT buffers = -5, span = -5;
  Must(dat_ep_recv_query(ep, &buffers, &span));
  EXPECT_GE(span, buffers);
  return buffers;
}
// How many receives messages have taken.
DAT_COUNT Taken(DAT_EP_HANDLE ep) { return kPosted - Open(ep); }

// A server with kPosted receives whose client sends as many messages as it is asked for. They have
// arrived when Ask returns.
class Asker {
 public:
  explicit Asker(Peer& peer) : ep(side.NewEp()), peer_(peer) {
    for (uint64_t i = 0; i < kPosted; ++i) side.PostReceive(ep, i);
    side.AcceptFrom(peer, ep, Port(0));
  }
  void Ask(int messages) {
    peer_.Send(messages);
    peer_.Await("sent");
  }
  void End() { peer_.Send(-1); }

  Side side;
  const DAT_EP_HANDLE ep;

 private:
  Peer& peer_;
};

void Answer(Peer& peer) {
  Side side;
  DAT_EP_HANDLE ep = side.NewEp();
  side.ConnectTo(peer, ep, Port(0));
  DAT_RMR_TRIPLET nothing = RemoteTriplet(0, 0, 0);
  for (;;) {
    const int messages = peer.Receive<int>();
    if (messages < 0) return;
    for (int i = 0; i < messages; ++i) Must(side.TrySend(ep, 1));
    // A read completes when all before it has arrived; it fails if the connection broke.
    if (dat_ep_post_rdma_read(ep, 0, nullptr, Cookie(99), &nothing, DAT_COMPLETION_DEFAULT_FLAG) ==
        DAT_SUCCESS) {
      while (NextCompletion(side.request_evd).user_cookie.as_64 != 99) {
      }
    }
    peer.Tell("sent");
  }
}

// The next asynchronous event must be that of `ep`'s soft watermark.
void ExpectSoft(const Side& side, DAT_EP_HANDLE ep) {
  const DAT_EVENT event = Next(side.async_evd);
  EXPECT_EQ(event.event_data.asynch_error_event_data.dat_handle, ep);
  EXPECT_EQ(event.event_data.asynch_error_event_data.reason,
            static_cast<DAT_COUNT>(DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT));
}

TEST(EpRecvQuery, S_CountsWhatHasNotCompleted) {
  RunPair(
      [](Peer& peer) {
        Asker asker(peer);
        EXPECT_EQ(Open(asker.ep), kPosted);
        asker.Ask(3);
        EXPECT_EQ(Open(asker.ep), kPosted - 3);
        EXPECT_EQ(NextCompletion(asker.side.receive_evd).user_cookie.as_64, 0u);
        EXPECT_EQ(Open(asker.ep), kPosted - 3);
        asker.Ask(1);
        EXPECT_EQ(Open(asker.ep), kPosted - 4);
        for (uint64_t i = 1; i < 4; ++i) {
          EXPECT_EQ(NextCompletion(asker.side.receive_evd).user_cookie.as_64, i);
        }
        asker.side.PostReceive(asker.ep, kPosted);
        EXPECT_EQ(Open(asker.ep), kPosted - 3);
        Must(dat_ep_recv_query(asker.ep, nullptr, nullptr));
        asker.End();
      },
      Answer);
}

TEST(EpSetWatermark, C132_SoftTellsOnceForEachArming) {
  RunPair(
      [](Peer& peer) {
        Asker asker(peer);
        Must(dat_ep_set_watermark(asker.ep, 2, kNone));
        asker.Ask(2);
        EXPECT_EQ(Taken(asker.ep), 2);
        EXPECT_TRUE(IsEmpty(asker.side.async_evd));
        asker.Ask(1);
        ExpectSoft(asker.side, asker.ep);
        asker.Ask(3);
        EXPECT_EQ(Taken(asker.ep), 6);
        EXPECT_TRUE(IsEmpty(asker.side.async_evd)) << "once";
        // Armed again, it reports at once, because more receives are taken already.
        Must(dat_ep_set_watermark(asker.ep, 2, kNone));
        ExpectSoft(asker.side, asker.ep);
        Must(dat_ep_set_watermark(asker.ep, kNone, kNone));
        asker.Ask(1);
        EXPECT_TRUE(IsEmpty(asker.side.async_evd));
        EXPECT_EQ(StateOf(asker.ep), DAT_EP_STATE_CONNECTED);
        for (uint64_t i = 0; i < 7; ++i) {
          EXPECT_EQ(NextCompletion(asker.side.receive_evd).user_cookie.as_64, i);
        }
        asker.End();
      },
      Answer);
}

// DAT_EP_ATTR::srq_soft_hw arms the watermark when an endpoint with a shared queue is created.
TEST(EpSetWatermark, C132_SoftOfTheAttributes) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 8);
        DAT_SRQ_ATTR queue = {8, 1, DAT_SRQ_LW_DEFAULT};
        DAT_SRQ_HANDLE srq;
        Must(dat_srq_create(side.ia, side.pz, &queue, &srq));
        DAT_LMR_TRIPLET local = memory.Local(0, 1);
        for (uint64_t i = 0; i < 8; ++i) Must(dat_srq_post_recv(srq, 1, &local, Cookie(i)));
        DAT_EP_ATTR attributes = {};
        attributes.srq_soft_hw = 2;
        DAT_EP_HANDLE ep;
        Must(dat_ep_create_with_srq(side.ia, side.pz, side.receive_evd, side.request_evd,
                                    side.connect_evd, srq, &attributes, &ep));
        EXPECT_EQ(ParametersOf(ep).ep_attr.srq_soft_hw, 2);
        side.AcceptFrom(peer, ep, Port(0));
        auto ask = [&](int messages) {
          peer.Send(messages);
          peer.Await("sent");
        };
        ask(2);
        EXPECT_EQ(Open(ep), 0) << "what is posted is the queue's";
        EXPECT_TRUE(IsEmpty(side.async_evd));
        ask(1);
        ExpectSoft(side, ep);
        peer.Send(-1);
      },
      Answer);
}

// dat_ep_modify and dat_ep_set_watermark set the same limit: the attribute shows the last value,
// and setting the same value arms the watermark anew. Here the limit is exceeded already.
TEST(EpSetWatermark, C132_SoftOfTheAttributesArmsAnew) {
  RunPair(
      [](Peer& peer) {
        Asker asker(peer);
        const auto modify = [&](DAT_COUNT soft) {
          DAT_EP_PARAM param = {};
          param.ep_attr.srq_soft_hw = soft;
          Must(dat_ep_modify(asker.ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param));
        };
        const auto shown = [&] { return ParametersOf(asker.ep).ep_attr.srq_soft_hw; };
        asker.Ask(3);
        Must(dat_ep_set_watermark(asker.ep, 2, kNone));
        ExpectSoft(asker.side, asker.ep);
        EXPECT_EQ(shown(), 2);
        asker.End();
        Must(dat_ep_disconnect(asker.ep, DAT_CLOSE_ABRUPT_FLAG));
        NextConnection(asker.side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, asker.ep);
        Must(dat_ep_reset(asker.ep));
        EXPECT_TRUE(IsEmpty(asker.side.async_evd));
        modify(2);
        ExpectSoft(asker.side, asker.ep);
        modify(2);
        ExpectSoft(asker.side, asker.ep);
        Must(dat_ep_set_watermark(asker.ep, 0, kNone));
        ExpectSoft(asker.side, asker.ep);
        EXPECT_EQ(shown(), 0);
        Must(dat_ep_set_watermark(asker.ep, kNone, kNone));
        EXPECT_EQ(shown(), static_cast<DAT_COUNT>(DAT_HW_DEFAULT));
        modify(2);
        ExpectSoft(asker.side, asker.ep);
        modify(static_cast<DAT_COUNT>(DAT_HW_DEFAULT));
        EXPECT_EQ(shown(), static_cast<DAT_COUNT>(DAT_HW_DEFAULT));
        EXPECT_TRUE(IsEmpty(asker.side.async_evd));
      },
      Answer);
}

// MVAPICH2 does not initialize this member.
TEST(EpCreate, S_WithoutASharedQueueItsWatermarkMeansNothing) {
  RunAlone([] {
    Side side;
    DAT_EP_ATTR attributes = {};
    for (DAT_COUNT garbage : {2, -2, 0x5a5a5a5a}) {
      attributes.srq_soft_hw = garbage;
      EXPECT_EQ(ParametersOf(side.NewEp(&attributes)).ep_attr.srq_soft_hw,
                static_cast<DAT_COUNT>(DAT_HW_DEFAULT));
    }
  });
}

TEST(EpSetWatermark, C132_HardBreaks) {
  RunPair(
      [](Peer& peer) {
        Asker asker(peer);
        Must(dat_ep_set_watermark(asker.ep, kNone, 3));
        asker.Ask(3);
        EXPECT_EQ(Taken(asker.ep), 3);
        EXPECT_EQ(StateOf(asker.ep), DAT_EP_STATE_CONNECTED);
        asker.Ask(1);
        NextConnection(asker.side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, asker.ep);
        EXPECT_EQ(StateOf(asker.ep), DAT_EP_STATE_DISCONNECTED);
        // Messages that had arrived are there, the rest is flushed.
        for (uint64_t i = 0; i < 20; ++i) {
          const auto done = NextCompletion(asker.side.receive_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_EQ(done.status, i < 4 ? DAT_DTO_SUCCESS : DAT_DTO_ERR_FLUSHED) << i;
        }
        asker.End();
      },
      Answer);
}

// "The soft and hard high watermark asynchronous event generation and setting are independent of
// each other": messages that exceed both limits cause both events.
TEST(EpSetWatermark, C132_SoftTellsBesideHard) {
  RunPair(
      [](Peer& peer) {
        Asker asker(peer);
        asker.Ask(3);
        EXPECT_EQ(Taken(asker.ep), 3);
        Must(dat_ep_set_watermark(asker.ep, 1, 2));
        ExpectSoft(asker.side, asker.ep);
        NextConnection(asker.side.connect_evd, DAT_CONNECTION_EVENT_BROKEN, asker.ep);
        EXPECT_TRUE(IsEmpty(asker.side.async_evd));
        asker.End();
      },
      Answer);
}

// The count of receives that a new limit asks for runs while the endpoint changes its dispatcher.
TEST(EpSetWatermark, S_WhileTheDispatcherChanges) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    const DAT_EVD_HANDLE evds[] = {side.NewEvd(DAT_EVD_DTO_FLAG), side.NewEvd(DAT_EVD_DTO_FLAG)};
    DAT_EP_PARAM param = {};
    for (int i = 0; i < 500; ++i) {
      Must(dat_ep_set_watermark(ep, 5, 10));
      param.recv_evd_handle = evds[i % 2];
      Must(dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &param));
    }
    EXPECT_EQ(ParametersOf(ep).recv_evd_handle, evds[1]);
    Must(dat_evd_free(evds[0]));
    EXPECT_EQ(Open(ep), 0);
  });
}

TEST(EpSetWatermark, C132_EveryState) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    EXPECT_EQ(Open(ep), 0);
    Must(dat_ep_set_watermark(ep, 5, 10));
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    Must(dat_ep_set_watermark(ep, 0, 0));
    EXPECT_TRUE(
        Fails(dat_ep_set_watermark(ep, -2, kNone), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(
        Fails(dat_ep_set_watermark(ep, kNone, -7), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    Must(dat_rsp_free(rsp));
    Must(dat_ep_free(ep));
    DAT_COUNT count;
    for (DAT_HANDLE bad : {DAT_HANDLE_NULL, ep, side.pz}) {  // C029
      EXPECT_TRUE(
          Fails(dat_ep_set_watermark(bad, 1, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
      EXPECT_TRUE(
          Fails(dat_ep_recv_query(bad, &count, &count), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
    }
    // An endpoint without a dispatcher for receives has no receives.
    Must(dat_ep_create(side.ia, side.pz, DAT_HANDLE_NULL, side.request_evd, side.connect_evd,
                       nullptr, &ep));
    Must(dat_ep_set_watermark(ep, 1, 1));
    EXPECT_EQ(Open(ep), 0);
  });
}

}  // namespace
}  // namespace viaduct::tests
