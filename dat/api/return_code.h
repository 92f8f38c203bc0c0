// The engine's errors as DAT_RETURN values, with the subtype numbers of the version.
#ifndef VIADUCT_DAT_API_RETURN_CODE_H_
#define VIADUCT_DAT_API_RETURN_CODE_H_

#include "dat/api/abi.h"
#include "dat/core/error.h"

namespace viaduct::dat {

// Every failure carries the class ERROR.
constexpr DAT_RETURN Failure(DAT_UINT32 type, DAT_UINT32 subtype = DAT_NO_SUBTYPE) {
  return DAT_CLASS_ERROR | type | subtype;
}
// For the n-th parameter of the function, counted from 1.
constexpr DAT_RETURN BadParameter(unsigned n) {
  return Failure(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1 + n - 1);
}
constexpr DAT_RETURN BadHandle(DAT_UINT32 subtype) { return Failure(DAT_INVALID_HANDLE, subtype); }
// For the types of handles that several files take.
inline constexpr DAT_RETURN kBadIa = BadHandle(DAT_INVALID_HANDLE_IA);
inline constexpr DAT_RETURN kBadPz = BadHandle(DAT_INVALID_HANDLE_PZ);
inline constexpr DAT_RETURN kBadEp = BadHandle(DAT_INVALID_HANDLE_EP);
inline constexpr DAT_RETURN kBadLmr = BadHandle(DAT_INVALID_HANDLE_LMR);
inline constexpr DAT_RETURN kBadSrq = BadHandle(DAT_INVALID_HANDLE_SRQ);

// For an error that is not Ok.
DAT_RETURN FailureOf(core::Error error);
inline DAT_RETURN ToReturn(core::Error error) {
  return error.ok() ? DAT_RETURN{DAT_SUCCESS} : FailureOf(error);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_RETURN_CODE_H_
