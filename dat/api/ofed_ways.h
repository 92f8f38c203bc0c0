// What OFED's providers do otherwise than uDAPL says, where programs under a distribution's
// registry rely on it: Debian's dtest and dapltest among them. The plug-in alone does so.
//
// - dat_evd_dequeue, dat_evd_wait and dat_cno_wait say with the bare type that there is no event
//   (AnswersBare), which programs compare with.
// - The event of a request on a reserved service point shows that point unless it is freed already,
//   and dat_rsp_free takes it until then. In the engine it is gone with its request.
// - An adapter in an event is the registry's, which alone knows what its programs call it.
#ifndef VIADUCT_DAT_API_OFED_WAYS_H_
#define VIADUCT_DAT_API_OFED_WAYS_H_

#include "dat/api/abi.h"

namespace viaduct::dat {

// What the registry's programs know that adapter of ours by; outside of an EpochGuard.
DAT_IA_HANDLE RegistrysHandle(DAT_IA_HANDLE adapter);

// Puts the functions that differ into their slots.
void TakeOfedWays(DAT_PROVIDER* table);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_OFED_WAYS_H_
