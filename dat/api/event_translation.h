// The engine's events as DAT_EVENTs.
#ifndef VIADUCT_DAT_API_EVENT_TRANSLATION_H_
#define VIADUCT_DAT_API_EVENT_TRANSLATION_H_

#include "dat/api/abi.h"
#include "dat/core/event.h"
#include "verbs/base/address.h"

namespace viaduct::dat {

// `evd` is the dispatcher that the event was taken from, `local` the address of its adapter,
// which a connection request points to. event_extension_data is not touched: no event here has
// any.
void ToDatEvent(const core::Event& event, DAT_EVD_HANDLE evd, const verbs::Address& local,
                DAT_EVENT* out);

DAT_DTO_COMPLETION_STATUS ToDatStatus(verbs::Status status);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EVENT_TRANSLATION_H_
