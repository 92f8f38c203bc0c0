// Our functions as the table of a provider of uDAPL 2.0; routes.py generates the definition.
#ifndef VIADUCT_DAT_API_PROVIDER_TABLE_H_
#define VIADUCT_DAT_API_PROVIDER_TABLE_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// Fills all slots except device_name, extension and the functions that only the plug-in has:
// ia_open, ia_ha_related. handle_extendedop gets HandleExtendedOp.
void FillTable(DAT_PROVIDER* table);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_PROVIDER_TABLE_H_
