// Requests and completions: what a device's library does without the kernel.
#ifndef VIADUCT_TESTS_RDMA_MOCK_POSTING_H_
#define VIADUCT_TESTS_RDMA_MOCK_POSTING_H_

#include <infiniband/verbs.h>

namespace viaduct::rdma_mock {

// As libibverbs passes commands to the drivers of devices, and libsiw and librxe their requests:
// by write(), a cancellation point.
void CallDriver(const ibv_context& context);

// The functions for ibv_context_ops.
int PostSend(ibv_qp* pair, ibv_send_wr* work, ibv_send_wr** bad);
int PostReceive(ibv_qp* pair, ibv_recv_wr* work, ibv_recv_wr** bad);
int PostSharedReceive(ibv_srq* queue, ibv_recv_wr* work, ibv_recv_wr** bad);
int BindWindow(ibv_qp* pair, ibv_mw* window, ibv_mw_bind* bind);
int PollCq(ibv_cq* queue, int n, ibv_wc* out);
int RequestNotify(ibv_cq* queue, int solicited_only);

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_POSTING_H_
