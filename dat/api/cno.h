// What the files about notifiers have in common.
#ifndef VIADUCT_DAT_API_CNO_H_
#define VIADUCT_DAT_API_CNO_H_

#include "dat/api/abi.h"
#include "dat/api/return_code.h"
#include "dat/core/notifier.h"
#include "dat/core/object.h"

namespace viaduct::dat {

core::Ref<core::Notifier> ShareCno(DAT_CNO_HANDLE handle);
inline constexpr DAT_RETURN kBadCno = BadHandle(DAT_INVALID_HANDLE_CNO);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_CNO_H_
