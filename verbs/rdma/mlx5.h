// What libmlx5 has beside the verbs: a pair that does without its short cut for what is short.
//
// Unless it is told otherwise (scatter to CQE), the device leaves an incoming message of up to 32
// bytes, and as short an answer of a read or an atomic, in the completion. The library copies it
// when that is polled, to the address that the segment says: nobody has looked at the key, the
// memory may have gone, and a request that a fence held back went out before the answer was there.
#ifndef VIADUCT_VERBS_RDMA_MLX5_H_
#define VIADUCT_VERBS_RDMA_MLX5_H_

#include <infiniband/verbs.h>

struct mlx5dv_qp_init_attr;

namespace viaduct::verbs::rdma {

// Any thread.
class Mlx5 {
 public:
  // `device` is open, so libibverbs has loaded its library. Ours does not need libmlx5 itself: a
  // machine may have none.
  explicit Mlx5(ibv_device* device);
  // The device is one of its.
  bool serves() const { return create_ != nullptr; }
  // As ibv_create_qp, of a device that it serves: what is short goes into memory as the rest does.
  ibv_qp* CreatePair(ibv_pd* domain, ibv_qp_init_attr* wanted) const;

 private:
  ibv_qp* (*create_)(ibv_context*, ibv_qp_init_attr_ex*, mlx5dv_qp_init_attr*) = nullptr;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_MLX5_H_
