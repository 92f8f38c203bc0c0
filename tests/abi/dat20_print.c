/* Prints every value, size and offset of the uDAPL 2.0 tables, whosever headers it is compiled
 * with. */
/* clang-format off */
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <dat2/udat.h>
#include <dat2/dat_registry.h>
#include <dat2/dat_ib_extensions.h>
/* clang-format on */

#define VALUE(expression, value) \
  printf("%s = %#llx\n", #expression, (unsigned long long)(expression));
#define SIZE(type, size) printf("sizeof(%s) = %lu\n", #type, (unsigned long)sizeof(type));
#define OFFSET(type, member, offset) \
  printf("%s: %s at %lu\n", #type, #member, (unsigned long)offsetof(type, member));

int main(void) {
#include "tests/abi/dat20_extensions.inc"
#include "tests/abi/dat20_layout.inc"
#include "tests/abi/dat20_values.inc"
  return 0;
}
