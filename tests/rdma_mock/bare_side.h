// Bare verbs as a side of tests/bench: the costs of a program that uses libibverbs directly.
#ifndef VIADUCT_TESTS_RDMA_MOCK_BARE_SIDE_H_
#define VIADUCT_TESTS_RDMA_MOCK_BARE_SIDE_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <vector>

#include "tests/bench/side.h"

namespace viaduct::bench {

class BareSide {
 public:
  static constexpr const char* kName = "bare";

  explicit BareSide(const SideOptions& options);
  BareSide(const BareSide&) = delete;
  BareSide& operator=(const BareSide&) = delete;

  void Listen(uint16_t port);
  void Accept();
  void Connect(uint16_t port);

  uint32_t depth() const { return options_.depth; }
  char* in() const { return block_.start(); }
  char* out() const { return block_.start() + Block::RoundUp(options_.bytes); }
  uint64_t received() const { return received_; }
  uint64_t completed() const { return completed_; }

  void PostReceive(size_t c = 0) {
    ibv_sge segment = {reinterpret_cast<uint64_t>(in()), options_.bytes, region_->lkey};
    ibv_recv_wr work = {};
    work.wr_id = kReceive;
    work.sg_list = &segment;
    work.num_sge = 1;
    ibv_recv_wr* bad;
    if (ibv_post_recv(pairs_[c], &work, &bad) != 0) Die("ibv_post_recv", 0);
  }

  void PostSend(uint32_t bytes, size_t c = 0) {
    ibv_sge segment = {reinterpret_cast<uint64_t>(out()), bytes, region_->lkey};
    ibv_send_wr work = {};
    work.wr_id = kSend;
    work.sg_list = &segment;
    work.num_sge = 1;
    work.opcode = IBV_WR_SEND;
    work.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
    ibv_send_wr* bad;
    if (ibv_post_send(pairs_[c], &work, &bad) != 0) Die("ibv_post_send", 0);
  }

  void Poll() {
    ibv_wc batch[16];
    const int n = ibv_poll_cq(queue_, 16, batch);
    for (int i = 0; i < n; ++i) {
      if (batch[i].status != IBV_WC_SUCCESS) Die("completion", batch[i].status);
      ++(batch[i].wr_id == kReceive ? received_ : completed_);
    }
  }

 private:
  enum Kind : uint64_t { kSend, kReceive };
  rdma_cm_id* Await(rdma_cm_event_type type);
  void MakePair(rdma_cm_id* id);

  const SideOptions options_;
  Block block_;
  rdma_event_channel* channel_;
  rdma_cm_id* listener_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_mr* region_ = nullptr;
  ibv_cq* queue_ = nullptr;
  std::vector<ibv_qp*> pairs_;
  uint64_t received_ = 0;
  uint64_t completed_ = 0;
};

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_RDMA_MOCK_BARE_SIDE_H_
