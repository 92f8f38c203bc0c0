// libmlx5, as far as verbs/rdma calls it.
#include <infiniband/mlx5dv.h>

#include "tests/rdma_mock/mlx5.h"

#pragma GCC visibility push(default)

extern "C" {

viaduct::rdma_mock::Mlx5Device rdma_mock_mlx5;

bool mlx5dv_is_supported(ibv_device* device) { return device == rdma_mock_mlx5.device; }

ibv_qp* mlx5dv_create_qp(ibv_context*, ibv_qp_init_attr_ex* wanted, mlx5dv_qp_init_attr* more) {
  return rdma_mock_mlx5.create_pair(*wanted, *more, &wanted->cap);
}
}

#pragma GCC visibility pop
