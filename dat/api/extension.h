// The extensions of 2.0: dat2/dat_ib_extensions.h.
#ifndef VIADUCT_DAT_API_EXTENSION_H_
#define VIADUCT_DAT_API_EXTENSION_H_

#include <cstdarg>

#include "dat/api/abi.h"

namespace viaduct::dat {

// What dat_extension_op does with a handle of ours, and our function for the slot of that name in a
// provider's table.
DAT_RETURN HandleExtendedOp(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list arguments);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EXTENSION_H_
