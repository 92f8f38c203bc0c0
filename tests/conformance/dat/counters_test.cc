// The counters of dat_extension_op of 2.0.
#include "tests/conformance/dat/side.h"

#if VIADUCT_TEST_DAT == 20
#include <dat2/dat_ib_extensions.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace viaduct::tests {
namespace {

DAT_UINT64 Counter(DAT_HANDLE handle, int counter, int reset = 0) {
  DAT_UINT64 value = 12345678;
  Must(dat_ib_query_counters(handle, counter, &value, reset));
  return value;
}

// The counters that differ from 0.
using Values = std::map<int, DAT_UINT64>;
Values All(DAT_HANDLE handle, int all, int reset = 0) {
  std::vector<DAT_UINT64> values(static_cast<size_t>(all), 12345678);
  Must(dat_ib_query_counters(handle, all, values.data(), reset));
  Values result;
  for (int i = 0; i < all; ++i) {
    if (values[static_cast<size_t>(i)] != 0) result[i] = values[static_cast<size_t>(i)];
  }
  return result;
}

TEST(Counters, S_Endpoint) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        Memory memory(side, 4096);
        for (uint64_t i = 0; i < 3; ++i) {
          DAT_LMR_TRIPLET room = memory.Local(1000 * i, 1000);
          Must(dat_ep_post_recv(ep, 1, &room, Cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
        }
        peer.Send(memory.Remote());
        side.AcceptFrom(peer, ep, Port(0));
        EXPECT_EQ(NextCompletion(side.receive_evd).transfered_length, 100u);
        EXPECT_EQ(NextCompletion(side.receive_evd).transfered_length, 50u);
        Next(side.receive_evd, static_cast<DAT_EVENT_NUMBER>(DAT_IB_DTO_EVENT));
        EXPECT_EQ(All(ep, DCNT_EP_ALL_COUNTERS), (Values{{DCNT_EP_POST_RECV, 3},
                                                         {DCNT_EP_POST_RECV_DATA, 3000},
                                                         {DCNT_EP_RECV, 2},
                                                         {DCNT_EP_RECV_DATA, 150},
                                                         {DCNT_EP_RECV_RDMA_IMM, 1},
                                                         {DCNT_EP_RECV_RDMA_IMM_DATA, 20}}));
        EXPECT_EQ(Counter(ep, DCNT_EP_RECV_DATA, /*reset=*/1), 150u);
        EXPECT_EQ(Counter(ep, DCNT_EP_RECV_DATA), 0u);
        EXPECT_EQ(Counter(ep, DCNT_EP_RECV), 2u);
        peer.Tell("done");
        peer.Await("disconnected");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        Memory memory(side, 4096);
        DAT_RMR_TRIPLET remote = peer.Receive<DAT_RMR_TRIPLET>();
        side.ConnectTo(peer, ep, Port(0));
        DAT_LMR_TRIPLET local = memory.Local(0, 100);
        Must(dat_ep_post_send(ep, 1, &local, Cookie(1), DAT_COMPLETION_DEFAULT_FLAG));
        local.segment_length = 50;
        Must(dat_ep_post_send_with_invalidate(ep, 1, &local, Cookie(2), DAT_COMPLETION_DEFAULT_FLAG,
                                              DAT_FALSE, 0));
        Must(
            dat_ep_post_rdma_write(ep, 1, &local, Cookie(3), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        local.segment_length = 20;
        Must(dat_ib_post_rdma_write_immed(ep, 1, &local, Cookie(4), &remote, 7,
                                          DAT_COMPLETION_DEFAULT_FLAG));
        local.segment_length = 4096;
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(5), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        remote.segment_length = 1;
        EXPECT_TRUE(Fails(
            dat_ep_post_rdma_write(ep, 1, &local, Cookie(6), &remote, DAT_COMPLETION_DEFAULT_FLAG),
            DAT_LENGTH_ERROR));
        EXPECT_EQ(All(ep, DCNT_EP_ALL_COUNTERS, /*reset=*/1),
                  (Values{{DCNT_EP_CONNECT, 1},
                          {DCNT_EP_POST_SEND, 2},
                          {DCNT_EP_POST_SEND_DATA, 150},
                          {DCNT_EP_POST_WRITE, 1},
                          {DCNT_EP_POST_WRITE_DATA, 50},
                          {DCNT_EP_POST_WRITE_IMM, 1},
                          {DCNT_EP_POST_WRITE_IMM_DATA, 20},
                          {DCNT_EP_POST_READ, 1},
                          {DCNT_EP_POST_READ_DATA, 4096}}));
        EXPECT_EQ(All(ep, DCNT_EP_ALL_COUNTERS), Values());
        peer.Await("done");
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        EXPECT_EQ(Counter(ep, DCNT_EP_DISCONNECT), 1u);
        peer.Tell("disconnected");
      });
}

TEST(Counters, S_Dispatcher) {
  RunAlone([] {
    Side side;
    const DAT_EVD_HANDLE evd = side.NewEvd(DAT_EVD_SOFTWARE_FLAG, 8);
    DAT_EVENT event = {};
    event.event_number = DAT_SOFTWARE_EVENT;
    DAT_COUNT more = 0;
    Must(dat_evd_post_se(evd, &event));
    Must(dat_evd_post_se(evd, &event));
    Must(dat_evd_dequeue(evd, &event));
    Must(dat_evd_wait(evd, kPatience, 1, &event, &more));
    EXPECT_TRUE(IsEmpty(evd));
    EXPECT_TRUE(Fails(dat_evd_wait(evd, 1000, 1, &event, &more), DAT_TIMEOUT_EXPIRED));
    EXPECT_EQ(All(evd, DCNT_EVD_ALL_COUNTERS), (Values{{DCNT_EVD_WAIT, 2},
                                                       {DCNT_EVD_WAIT_BLOCKED, 1},
                                                       {DCNT_EVD_DEQUEUE, 2},
                                                       {DCNT_EVD_DEQUEUE_FOUND, 1},
                                                       {DCNT_EVD_DEQUEUE_NOT_FOUND, 1}}));
  });
}

TEST(Counters, S_Adapter) {
  RunPair(
      [](Peer& peer) {
        Side side;
        All(side.ia, DCNT_IA_ALL_COUNTERS, /*reset=*/1);
        side.Listen(Port(0));
        peer.Tell("listening");
        Must(Reject(NextRequest(side.cr_evd).cr_handle, 0, nullptr));
        DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_EQ(All(side.ia, DCNT_IA_ALL_COUNTERS), (Values{{DCNT_IA_PSP_CREATE, 1},
                                                              {DCNT_IA_EP_CREATE, 1},
                                                              {DCNT_IA_SP_CR, 2},
                                                              {DCNT_IA_SP_CR_ACCEPTED, 1},
                                                              {DCNT_IA_SP_CR_REJECTED, 1},
                                                              {DCNT_IA_CM_REQ_RX, 2},
                                                              {DCNT_IA_CM_REP_TX, 1},
                                                              {DCNT_IA_CM_RTU_RX, 1},
                                                              {DCNT_IA_CM_USER_REJ_TX, 1},
                                                              {DCNT_IA_CM_PASSIVE_EST, 1},
                                                              {DCNT_IA_CM_DREQ_RX, 1}}));
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        All(side.ia, DCNT_IA_ALL_COUNTERS, /*reset=*/1);
        peer.Await("listening");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_PEER_REJECTED, ep);
        Must(dat_ep_free(ep));
        ep = side.NewEp();
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        // A stopped counter keeps its value, and starts again at 0.
        Must(dat_ib_stop_counter(side.ia, DCNT_IA_CM));
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        EXPECT_EQ(All(side.ia, DCNT_IA_ALL_COUNTERS), (Values{{DCNT_IA_EP_CREATE, 1},
                                                              {DCNT_IA_EP_FREE, 1},
                                                              {DCNT_IA_CM_REQ_TX, 2},
                                                              {DCNT_IA_CM_REP_RX, 1},
                                                              {DCNT_IA_CM_RTU_TX, 1},
                                                              {DCNT_IA_CM_USER_REJ_RX, 1},
                                                              {DCNT_IA_CM_ACTIVE_EST, 1}}));
        Must(dat_ib_start_counter(side.ia, DCNT_IA_CM));
        EXPECT_EQ(Counter(side.ia, DCNT_IA_CM_REQ_TX), 0u);
      });
}

TEST(Counters, S_OneOfTheAdaptersBeginsAnewAlone) {
  RunAlone([] {
    Side side;
    const DAT_UINT64 made = Counter(side.ia, DCNT_IA_EVD_CREATE);
    ASSERT_NE(made, 0u);
    EXPECT_EQ(Counter(side.ia, DCNT_IA_PZ_CREATE, /*reset=*/1), 1u);
    EXPECT_EQ(Counter(side.ia, DCNT_IA_PZ_CREATE), 0u);
    EXPECT_EQ(Counter(side.ia, DCNT_IA_EVD_CREATE), made);
  });
}

TEST(Counters, S_Parameters) {
  RunAlone([] {
    Side side;
    DAT_UINT64 value;
    const std::pair<DAT_HANDLE, int> kinds[] = {{side.ia, DCNT_IA_ALL_COUNTERS},
                                                {side.NewEp(), DCNT_EP_ALL_COUNTERS},
                                                {side.receive_evd, DCNT_EVD_ALL_COUNTERS}};
    for (const auto& [handle, all] : kinds) {
      for (int counter : {-1, all + 1}) {
        EXPECT_TRUE(Fails(dat_ib_query_counters(handle, counter, &value, 0), DAT_INVALID_PARAMETER,
                          DAT_INVALID_ARG2));
        EXPECT_TRUE(Fails(dat_ib_print_counters(handle, counter, 0), DAT_INVALID_PARAMETER,
                          DAT_INVALID_ARG2));
      }
      EXPECT_TRUE(Fails(dat_ib_query_counters(handle, 0, nullptr, 0), DAT_INVALID_PARAMETER,
                        DAT_INVALID_ARG3));
    }
    for (DAT_HANDLE bad : {DAT_HANDLE_NULL, side.pz}) {
      EXPECT_TRUE(Fails(dat_ib_query_counters(bad, 0, &value, 0), DAT_INVALID_HANDLE));
      EXPECT_TRUE(Fails(dat_ib_start_counter(bad, DCNT_IA_CM), DAT_INVALID_HANDLE));
    }
    for (auto group : {DCNT_IA_LNK, DCNT_IA_DIAG}) {
      EXPECT_TRUE(Fails(dat_ib_start_counter(side.ia, group), DAT_MODEL_NOT_SUPPORTED));
      EXPECT_TRUE(Fails(dat_ib_stop_counter(side.ia, group), DAT_MODEL_NOT_SUPPORTED));
    }
    EXPECT_TRUE(Fails(dat_ib_start_counter(side.ia, 3), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
  });
}

TEST(Counters, S_Print) {
  RunAlone([] {
    Side side;
    EXPECT_TRUE(IsEmpty(side.receive_evd));
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    std::fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    const DAT_RETURN one = dat_ib_print_counters(side.ia, DCNT_IA_PZ_CREATE, 0);
    const DAT_RETURN all = dat_ib_print_counters(side.receive_evd, DCNT_EVD_ALL_COUNTERS, 0);
    std::fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(ends[1]);
    Must(one);
    Must(all);
    std::string printed(4096, 0);
    const ssize_t got = read(ends[0], printed.data(), printed.size());
    ASSERT_GT(got, 0);
    printed.resize(static_cast<size_t>(got));
    EXPECT_EQ(printed,
              "DCNT_IA_PZ_CREATE                1\n"
              "DCNT_EVD_DEQUEUE                 1\n"
              "DCNT_EVD_DEQUEUE_NOT_FOUND       1\n"
              "DCNT_EVD_DEQUEUE_POLL            1\n");
    close(ends[0]);
    close(before);
  });
}

}  // namespace
}  // namespace viaduct::tests
#endif
