#include "tests/rdma_mock/mlx5.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tests/rdma_mock/objects.h"

namespace viaduct::rdma_mock {
namespace {

ibv_qp* CreatePair(const ibv_qp_init_attr_ex& wanted, const mlx5dv_qp_init_attr& more,
                   ibv_qp_cap* granted) {
  if (wanted.comp_mask != IBV_QP_INIT_ATTR_PD ||
      more.comp_mask != MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) {
    errno = EINVAL;
    return nullptr;
  }
  ibv_qp_init_attr plain = {};
  plain.qp_context = wanted.qp_context;
  plain.send_cq = wanted.send_cq;
  plain.recv_cq = wanted.recv_cq;
  plain.srq = wanted.srq;
  plain.cap = wanted.cap;
  plain.qp_type = wanted.qp_type;
  plain.sq_sig_all = wanted.sq_sig_all;
  ibv_qp* const pair = MakePair(wanted.pd, &plain,
                                (more.create_flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE) == 0);
  *granted = plain.cap;
  return pair;
}

}  // namespace

void OpenMlx5Library(const ibv_device& device) {
  void* const library = dlopen(std::getenv("RDMA_MOCK_MLX5"), RTLD_NOW);
  void* const told = library != nullptr ? dlsym(library, "rdma_mock_mlx5") : nullptr;
  if (told == nullptr) {
    fprintf(stderr, "rdma_mock: RDMA_MOCK_MLX5: %s\n", dlerror());
    abort();
  }
  *static_cast<Mlx5Device*>(told) = {&device, CreatePair};
}

}  // namespace viaduct::rdma_mock
