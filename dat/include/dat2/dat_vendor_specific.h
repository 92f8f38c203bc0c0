/*
 * Viaduct: uDAPL 2.0, the place for a vendor's own definitions. There are none.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef VIADUCT_DAT2_DAT_VENDOR_SPECIFIC_H_
#define VIADUCT_DAT2_DAT_VENDOR_SPECIFIC_H_

#endif /* VIADUCT_DAT2_DAT_VENDOR_SPECIFIC_H_ */
