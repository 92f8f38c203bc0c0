/* Checks the uDAPL 1.2 headers against its table, as C or as C++. */
#include <dat/dat_registry.h>
#include <dat/udat.h>

#include "tests/abi/abi_facts.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "tests/abi/dat12_functions.inc"
#include "tests/abi/dat12_layout.inc"
#include "tests/abi/dat12_values.inc"
#ifdef __cplusplus
}
#endif
