#include "tests/lab/event_names.h"

const char *name_of_event(DAT_EVENT_NUMBER number) {
  switch (number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      return "ESTABLISHED";
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      return "PEER_REJECTED";
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      return "NON_PEER_REJECTED";
    case DAT_CONNECTION_EVENT_DISCONNECTED:
      return "DISCONNECTED";
    case DAT_CONNECTION_EVENT_BROKEN:
      return "BROKEN";
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      return "TIMED_OUT";
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      return "UNREACHABLE";
    case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
      return "IA_CATASTROPHIC";
    default:
      return "another event";
  }
}
