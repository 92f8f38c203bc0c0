// What dat_rmr_bind does in both versions.
#ifndef VIADUCT_DAT_API_RMR_H_
#define VIADUCT_DAT_API_RMR_H_

#include <optional>

#include "dat/api/abi.h"
#include "verbs/device.h"

namespace viaduct::dat {

struct WindowRequest {
  DAT_RMR_HANDLE rmr;
  DAT_LMR_HANDLE lmr;  // NULL in 1.2, which names the region by the triplet's context
  const DAT_LMR_TRIPLET* triplet;
  DAT_MEM_PRIV_FLAGS privileges;
  std::optional<verbs::AddressBase> base;  // nullopt: the parameter after privileges is unknown
  DAT_EP_HANDLE ep;
  DAT_RMR_COOKIE cookie;
  DAT_COMPLETION_FLAGS flags;
  DAT_RMR_CONTEXT* context;
  // Parameter numbers that differ between the versions.
  unsigned triplet_argument;
  unsigned flags_argument;
};

DAT_RETURN BindWindow(const WindowRequest& request);

DAT_RETURN CreateWindow(DAT_PZ_HANDLE pz_handle, verbs::WindowScope scope,
                        DAT_RMR_HANDLE* rmr_handle);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_RMR_H_
