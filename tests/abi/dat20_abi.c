/* Checks the uDAPL 2.0 headers against its table, as C or as C++. */
/* Debian's own headers, which this file checks too, want them in this order. */
/* clang-format off */
#include <netinet/in.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
/* clang-format on */

#include "tests/abi/abi_facts.h"

#ifdef __cplusplus
extern "C" {
#endif
#include "tests/abi/dat20_extensions.inc"
#include "tests/abi/dat20_functions.inc"
#include "tests/abi/dat20_layout.inc"
#include "tests/abi/dat20_values.inc"
#ifdef __cplusplus
}
#endif
