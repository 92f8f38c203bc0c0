// The version of DAT that this compilation tests, and what differs between the versions for a
// caller: the tests are compiled once for each.
#ifndef VIADUCT_TESTS_CONFORMANCE_DAT_DAT_H_
#define VIADUCT_TESTS_CONFORMANCE_DAT_DAT_H_

#if VIADUCT_TEST_DAT == 12
#include <dat/udat.h>
#elif VIADUCT_TEST_DAT == 20
#include <dat2/udat.h>
#else
#error "VIADUCT_TEST_DAT is 12 or 20"
#endif

#include <cstdint>

namespace viaduct::tests {

#if VIADUCT_TEST_DAT == 12

inline DAT_LMR_TRIPLET Triplet(const void* address, uint64_t length, DAT_LMR_CONTEXT context) {
  return {context, 0, reinterpret_cast<uintptr_t>(address), length};
}
inline DAT_RMR_TRIPLET RemoteTriplet(uint64_t address, uint64_t length, DAT_RMR_CONTEXT context) {
  return {context, 0, address, length};
}
// In 1.2 a reject has no private data.
inline DAT_RETURN Reject(DAT_CR_HANDLE cr, DAT_COUNT, const void*) { return dat_cr_reject(cr); }
inline DAT_RETURN CreateLmr(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                            DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                            DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* lmr_context,
                            DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                            DAT_VADDR* registered_address) {
  return dat_lmr_create(ia, type, region, length, pz, privileges, lmr, lmr_context, rmr_context,
                        registered_length, registered_address);
}
inline constexpr unsigned kLmrHandleArgument = 7;
inline DAT_RETURN BindRmr(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE, const DAT_LMR_TRIPLET& triplet,
                          DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                          DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) {
  return dat_rmr_bind(rmr, &triplet, privileges, ep, cookie, flags, context);
}

#else

inline DAT_LMR_TRIPLET Triplet(const void* address, uint64_t length, DAT_LMR_CONTEXT context) {
  return {reinterpret_cast<uintptr_t>(address), static_cast<DAT_SEG_LENGTH>(length), context};
}
inline DAT_RMR_TRIPLET RemoteTriplet(uint64_t address, uint64_t length, DAT_RMR_CONTEXT context) {
  return {address, static_cast<DAT_SEG_LENGTH>(length), context};
}
inline DAT_RETURN Reject(DAT_CR_HANDLE cr, DAT_COUNT size, const void* data) {
  return dat_cr_reject(cr, size, const_cast<void*>(data));
}
inline DAT_RETURN CreateLmr(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
                            DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges,
                            DAT_LMR_HANDLE* lmr, DAT_LMR_CONTEXT* lmr_context,
                            DAT_RMR_CONTEXT* rmr_context, DAT_VLEN* registered_length,
                            DAT_VADDR* registered_address) {
  return dat_lmr_create(ia, type, region, length, pz, privileges, DAT_VA_TYPE_VA, lmr, lmr_context,
                        rmr_context, registered_length, registered_address);
}
inline constexpr unsigned kLmrHandleArgument = 8;
inline DAT_RETURN BindRmr(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, const DAT_LMR_TRIPLET& triplet,
                          DAT_MEM_PRIV_FLAGS privileges, DAT_EP_HANDLE ep, DAT_RMR_COOKIE cookie,
                          DAT_COMPLETION_FLAGS flags, DAT_RMR_CONTEXT* context) {
  return dat_rmr_bind(rmr, lmr, &triplet, privileges, DAT_VA_TYPE_VA, ep, cookie, flags, context);
}

#endif

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_DAT_DAT_H_
