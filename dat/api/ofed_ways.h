// Where OFED's providers deviate from uDAPL and programs under a distribution's registry rely on it
// (Debian's dtest and dapltest among them). Only the plug-in does the same.
//
// - When there is no event, dat_evd_dequeue, dat_evd_wait and dat_cno_wait return the bare type
//   without its class (AnswersBare): programs compare with it.
// - The event of a request on a reserved service point shows that point unless it is freed already,
//   and dat_rsp_free accepts the point until then. In the engine it ends with its request.
// - An adapter in an event has the registry's handle: only the registry knows which one that is.
#ifndef VIADUCT_DAT_API_OFED_WAYS_H_
#define VIADUCT_DAT_API_OFED_WAYS_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// The handle by which the registry's programs know that adapter of ours. Not inside an EpochGuard.
DAT_IA_HANDLE RegistrysHandle(DAT_IA_HANDLE adapter);

// The table's dat_ia_close.
DAT_RETURN CloseAsOfed(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags);

// Puts the functions that differ into their slots.
void TakeOfedWays(DAT_PROVIDER* table);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_OFED_WAYS_H_
