#include "verbs/rdma/mlx5.h"

#include <dlfcn.h>
#include <infiniband/mlx5dv.h>

#include "verbs/base/log.h"

namespace viaduct::verbs::rdma {

// libibverbs opens libmlx5 by a path with another name; it is found by its SONAME, too.
Mlx5::Mlx5(ibv_device* device) {
  void* const library = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  // libmlx5 may have been loaded for another device than this one.
  const auto is_its =
      reinterpret_cast<decltype(&mlx5dv_is_supported)>(dlsym(library, "mlx5dv_is_supported"));
  const auto create =
      reinterpret_cast<decltype(&mlx5dv_create_qp)>(dlsym(library, "mlx5dv_create_qp"));
  if (is_its == nullptr || create == nullptr) {
    Log(LogLevel::kDebug, device->name,
        ": libmlx5 is too old to be told not to copy what is short");
    return;
  }
  if (is_its(device)) create_ = create;
}

ibv_qp* Mlx5::CreatePair(ibv_pd* domain, ibv_qp_init_attr* wanted) const {
  ibv_qp_init_attr_ex pair = {};
  pair.qp_context = wanted->qp_context;
  pair.send_cq = wanted->send_cq;
  pair.recv_cq = wanted->recv_cq;
  pair.srq = wanted->srq;
  pair.cap = wanted->cap;
  pair.qp_type = wanted->qp_type;
  pair.sq_sig_all = wanted->sq_sig_all;
  pair.comp_mask = IBV_QP_INIT_ATTR_PD;
  pair.pd = domain;
  mlx5dv_qp_init_attr more = {};
  more.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
  more.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
  ibv_qp* const made = create_(domain->context, &pair, &more);
  if (made != nullptr) wanted->cap = pair.cap;  // what is granted
  return made;
}

}  // namespace viaduct::verbs::rdma
