// Selects the version of the DAT interface that this compilation is for. The sources of this folder
// are compiled once for each version, and only these two headers (and abi_12.cc, abi_20.cc) differ.
#ifndef VIADUCT_DAT_API_ABI_H_
#define VIADUCT_DAT_API_ABI_H_

#if VIADUCT_DAT_ABI == 12
#include "dat/api/abi_12.h"
#elif VIADUCT_DAT_ABI == 20
#include "dat/api/abi_20.h"
#else
#error "VIADUCT_DAT_ABI is 12 or 20"
#endif

#endif  // VIADUCT_DAT_API_ABI_H_
