// The DAT that dat_side is compiled for: VIADUCT_BENCH_DAT is 12 or 20.
#ifndef VIADUCT_TESTS_BENCH_DAT_VERSION_H_
#define VIADUCT_TESTS_BENCH_DAT_VERSION_H_

#if VIADUCT_BENCH_DAT == 12
#include <dat/udat.h>
#else
#include <dat2/udat.h>
#endif

#include <cstddef>
#include <cstdint>

namespace viaduct::bench {

#if VIADUCT_BENCH_DAT == 12

inline constexpr const char* kDatName = "dat1";

inline void SetTarget(DAT_RMR_TRIPLET* triplet, uint64_t address) {
  triplet->target_address = address;
}
inline DAT_RETURN CreateLmr(DAT_IA_HANDLE ia, void* start, size_t bytes, DAT_PZ_HANDLE zone,
                            DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* local, DAT_RMR_CONTEXT* remote) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = start;
  DAT_VLEN length;
  DAT_VADDR address;
  return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes, zone, DAT_MEM_PRIV_ALL_FLAG, lmr,
                        local, remote, &length, &address);
}

#else

inline constexpr const char* kDatName = "dat2";

inline void SetTarget(DAT_RMR_TRIPLET* triplet, uint64_t address) {
  triplet->virtual_address = address;
}
inline DAT_RETURN CreateLmr(DAT_IA_HANDLE ia, void* start, size_t bytes, DAT_PZ_HANDLE zone,
                            DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* local, DAT_RMR_CONTEXT* remote) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = start;
  DAT_VLEN length;
  DAT_VADDR address;
  return dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes, zone, DAT_MEM_PRIV_ALL_FLAG,
                        DAT_VA_TYPE_VA, lmr, local, remote, &length, &address);
}

#endif

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_DAT_VERSION_H_
