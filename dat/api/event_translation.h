// The engine's events as DAT_EVENTs.
#ifndef VIADUCT_DAT_API_EVENT_TRANSLATION_H_
#define VIADUCT_DAT_API_EVENT_TRANSLATION_H_

#include "dat/api/abi.h"
#include "dat/core/event.h"
#include "verbs/base/address.h"

namespace viaduct::dat {

// `evd` is the dispatcher that the event was taken from, `local` the address of its adapter, to
// which the event of a connection request points. event_extension_data is written only for
// completions of extensions.
void ToDatEvent(const core::Event& event, DAT_EVD_HANDLE evd, const verbs::Address& local,
                DAT_EVENT* out);

DAT_DTO_COMPLETION_STATUS ToDatStatus(verbs::Status status);

// The same for the usual event, the completion of anything but a bind: it needs no address.
inline bool IsTransfer(const core::Event& event) {
  return event.type == core::EventType::kCompletion && event.opcode != verbs::Opcode::kBind;
}
inline void ToTransferEvent(const core::Event& event, DAT_EVD_HANDLE evd, DAT_EVENT* out) {
  out->evd_handle = evd;
  out->event_number = DAT_DTO_COMPLETION_EVENT;
  DAT_DTO_COMPLETION_EVENT_DATA& data = out->event_data.dto_completion_event_data;
  data.ep_handle = event.subject;
  data.user_cookie.as_64 = event.cookie;
  data.status =
      event.status == verbs::Status::kSuccess ? DAT_DTO_SUCCESS : ToDatStatus(event.status);
  data.transfered_length = event.length;
  SetVersionFields(event, out);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EVENT_TRANSLATION_H_
