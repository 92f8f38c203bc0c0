// What libmlx5 offers beyond the verbs: queue pairs without its short cut for short messages.
//
// Unless it is told otherwise (scatter to CQE), the device leaves an incoming message of up to 32
// bytes, or an equally short answer to a read or an atomic, in the completion. The library copies
// it when the completion is polled, to the address in the segment: nobody has checked the key, the
// memory may be gone, and a request that a fence held back was sent before the answer was in place.
#ifndef VIADUCT_VERBS_RDMA_MLX5_H_
#define VIADUCT_VERBS_RDMA_MLX5_H_

#include <infiniband/verbs.h>

struct mlx5dv_qp_init_attr;

namespace viaduct::verbs::rdma {

// Any thread.
class Mlx5 {
 public:
  // `device` is open, so libibverbs has loaded its library. Our library is not linked with libmlx5,
  // which a machine may not have.
  explicit Mlx5(ibv_device* device);
  // The device is one of libmlx5's.
  bool serves() const { return create_ != nullptr; }
  // As ibv_create_qp, for a device that it serves: short messages go into memory as the others do.
  ibv_qp* CreatePair(ibv_pd* domain, ibv_qp_init_attr* wanted) const;

 private:
  ibv_qp* (*create_)(ibv_context*, ibv_qp_init_attr_ex*, mlx5dv_qp_init_attr*) = nullptr;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_MLX5_H_
