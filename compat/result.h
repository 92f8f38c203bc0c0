// The engine's answers as VIP_RETURN: the one place where they are translated.
#ifndef VIADUCT_COMPAT_RESULT_H_
#define VIADUCT_COMPAT_RESULT_H_

#include <vipl.h>

#include "dat/core/error.h"
#include "dat/core/event.h"
#include "dat/core/peer_match.h"

namespace viaduct::compat {

// An object in use is VIP_ERROR_RESOURCE, any other wrong state VIP_INVALID_STATE. An object that
// was destroyed under a waiting thread is VIP_INVALID_PARAMETER: its handle is invalid by then.
VIP_RETURN ResultOf(core::Error error);

// The same for a call that passes on the zone of a tag: if the tag was destroyed since it was
// found, VIP_INVALID_PTAG.
VIP_RETURN ResultOfZoneUse(core::Error error);

// Why two peer-to-peer requests do not match; kNone: VIP_REJECT, the peer's rejection.
VIP_RETURN ResultOf(core::PeerMismatch mismatch);

// The outcome of an attempt to connect or to accept, as the endpoint's event reports it.
VIP_RETURN ResultOf(core::EventType outcome);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_RESULT_H_
