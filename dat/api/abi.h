// The version of the DAT interface that this compilation is for: the sources of this folder are
// compiled once for each, and differ in what these two headers (and abi_12.cc, abi_20.cc) say.
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
