// DAT_EP_ATTR::max_message_size: uDAPL 1.2, dat_ep_create, dat_ep_post_send; DAT checklist 71.
#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

DAT_RETURN TrySend(DAT_EP_HANDLE ep, std::vector<DAT_LMR_TRIPLET> segments) {
  return dat_ep_post_send(ep, static_cast<DAT_COUNT>(segments.size()), segments.data(), Cookie(1),
                          DAT_COMPLETION_DEFAULT_FLAG);
}

TEST(EpPostSend, S_MaxMessageSize) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        Memory memory(side, 4096);
        DAT_LMR_TRIPLET all = memory.Local(0, 4096);
        for (uint64_t n = 0; n < 4; ++n) {
          Must(dat_ep_post_recv(ep, 1, &all, Cookie(n), DAT_COMPLETION_DEFAULT_FLAG));
        }
        side.AcceptFrom(peer, ep, Port(0));
        DAT_LMR_TRIPLET half = all;
        half.segment_length = ParametersOf(ep).ep_attr.max_message_size / 2 + 1;
        EXPECT_TRUE(Fails(TrySend(ep, {half, half}), DAT_LENGTH_ERROR)) << "the adapter's size";
        for (DAT_COUNT bytes : {100, 100, 0}) {
          EXPECT_EQ(NextCompletion(side.receive_evd).transfered_length,
                    static_cast<DAT_UINT32>(bytes));
        }
        peer.Tell("received");
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_ATTR attributes = ParametersOf(side.NewEp()).ep_attr;
        attributes.max_message_size = 100;
        const DAT_EP_HANDLE ep = side.NewEp(&attributes);
        EXPECT_EQ(ParametersOf(ep).ep_attr.max_message_size, 100u);
        Memory memory(side, 4096);
        side.ConnectTo(peer, ep, Port(0));
        EXPECT_TRUE(Fails(TrySend(ep, {memory.Local(0, 101)}), DAT_LENGTH_ERROR));
        EXPECT_TRUE(
            Fails(TrySend(ep, {memory.Local(0, 60), memory.Local(60, 41)}), DAT_LENGTH_ERROR));
#if VIADUCT_TEST_DAT == 20
        DAT_LMR_TRIPLET too_long = memory.Local(0, 101);
        EXPECT_TRUE(
            Fails(dat_ep_post_send_with_invalidate(ep, 1, &too_long, Cookie(1),
                                                   DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, 0),
                  DAT_LENGTH_ERROR));
#endif
        Must(TrySend(ep, {memory.Local(0, 100)}));
        Must(TrySend(ep, {memory.Local(0, 60), memory.Local(60, 40)}));
        Must(TrySend(ep, {}));
        for (int n = 0; n < 3; ++n) {
          EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        }
        EXPECT_TRUE(IsEmpty(side.request_evd)) << "what was refused completes nowhere";
        peer.Await("received");
        peer.Tell("done");
      });
}

// max_rdma_size is what the program needs at least: OFED's dtest asks for 64 KiB and writes more.
TEST(EpPostRdmaWrite, S_MaxRdmaSizeIsNoLimit) {
  RunPair(
      [](Peer& peer) {
        Side side;
        const DAT_EP_HANDLE ep = side.NewEp();
        Memory memory(side, 4096);
        peer.Send(memory.Remote());
        side.AcceptFrom(peer, ep, Port(0));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_ATTR attributes = ParametersOf(side.NewEp()).ep_attr;
        attributes.max_rdma_size = 100;
        const DAT_EP_HANDLE ep = side.NewEp(&attributes);
        EXPECT_EQ(ParametersOf(ep).ep_attr.max_rdma_size, 100u);
        Memory memory(side, 4096);
        auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        side.ConnectTo(peer, ep, Port(0));
        DAT_LMR_TRIPLET all = memory.Local(0, 4096);
        Must(dat_ep_post_rdma_write(ep, 1, &all, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        peer.Tell("done");
      });
}

}  // namespace
}  // namespace viaduct::tests
