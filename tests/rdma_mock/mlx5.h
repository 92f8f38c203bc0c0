// The library of mlx5's devices. The mock opens it as libibverbs would, from the path in
// RDMA_MOCK_MLX5.
#ifndef VIADUCT_TESTS_RDMA_MOCK_MLX5_H_
#define VIADUCT_TESTS_RDMA_MOCK_MLX5_H_

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

namespace viaduct::rdma_mock {

// What the mock gives the library when it opens it: the library's symbol rdma_mock_mlx5 is an
// Mlx5Device.
struct Mlx5Device {
  const ibv_device* device;
  // As mlx5dv_create_qp.
  ibv_qp* (*create_pair)(const ibv_qp_init_attr_ex& wanted, const mlx5dv_qp_init_attr& more,
                         ibv_qp_cap* granted);
};

void OpenMlx5Library(const ibv_device& device);

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_MLX5_H_
