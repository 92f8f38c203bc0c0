// What dat_lmr_create does in both versions.
#ifndef VIADUCT_DAT_API_LMR_H_
#define VIADUCT_DAT_API_LMR_H_

#include <cstdint>
#include <optional>

#include "dat/api/abi.h"
#include "verbs/device.h"

namespace viaduct::dat {

// Parameters 1 to 6 are the same in both versions.
struct RegionRequest {
  DAT_IA_HANDLE ia;
  DAT_MEM_TYPE type;
  DAT_REGION_DESCRIPTION description;
  DAT_VLEN length;
  DAT_PZ_HANDLE zone;
  DAT_MEM_PRIV_FLAGS privileges;
  std::optional<verbs::AddressBase> base;  // nullopt: parameter 7 is an unknown value
};

// Each pointer may be NULL except the first, which is parameter number `first_argument`.
struct RegionResults {
  unsigned first_argument;
  DAT_LMR_HANDLE* lmr;
  DAT_LMR_CONTEXT* lmr_context;
  DAT_RMR_CONTEXT* rmr_context;
  DAT_VLEN* registered_size;
  DAT_VADDR* registered_address;
};

struct Privilege {
  unsigned flag;
  verbs::Access access;
};
inline constexpr Privilege kPrivileges[] = {
    {DAT_MEM_PRIV_LOCAL_READ_FLAG, verbs::kLocalRead},
    {DAT_MEM_PRIV_LOCAL_WRITE_FLAG, verbs::kLocalWrite},
    {DAT_MEM_PRIV_REMOTE_READ_FLAG, verbs::kRemoteRead},
    {DAT_MEM_PRIV_REMOTE_WRITE_FLAG, verbs::kRemoteWrite},
    {kAtomicPrivilege, verbs::kRemoteAtomic},
};
inline constexpr unsigned kPrivilegeFlags = DAT_MEM_PRIV_ALL_FLAG | kAtomicPrivilege;

constexpr uint32_t ToAccess(unsigned privileges) {
  uint32_t access = 0;
  for (const Privilege& p : kPrivileges) {
    if ((privileges & p.flag) != 0) access |= p.access;
  }
  return access;
}
constexpr uint32_t RemoteAccess(unsigned privileges) {
  return ToAccess(privileges) & (verbs::kRemoteRead | verbs::kRemoteWrite | verbs::kRemoteAtomic);
}
inline DAT_MEM_PRIV_FLAGS ToPrivileges(uint32_t access) {
  unsigned privileges = DAT_MEM_PRIV_NONE_FLAG;
  for (const Privilege& p : kPrivileges) {
    if ((access & p.access) != 0) privileges |= p.flag;
  }
  return static_cast<DAT_MEM_PRIV_FLAGS>(privileges);
}

DAT_RETURN CreateRegion(const RegionRequest& request, const RegionResults& results);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_LMR_H_
