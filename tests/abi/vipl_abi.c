/* Checks vipl.h against its table, as C or as C++. */
#include <vipl.h>

#include "tests/abi/abi_facts.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "tests/abi/vipl.inc"

VALUE(VIP_INFINITE, (VIP_ULONG)-1)

/* The test of the tables themselves puts a wrong line here. */
#ifdef VIADUCT_WRONG_LINE
VIADUCT_WRONG_LINE
#endif

#ifdef __cplusplus
}
#endif
