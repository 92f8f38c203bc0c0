/*
 * Viaduct: uDAPL 1.2, the place for a vendor's own definitions. There are none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT_UDAT_VENDOR_SPECIFIC_H_
#define VIADUCT_DAT_UDAT_VENDOR_SPECIFIC_H_

#include <dat/dat_vendor_specific.h>

#endif /* VIADUCT_DAT_UDAT_VENDOR_SPECIFIC_H_ */
