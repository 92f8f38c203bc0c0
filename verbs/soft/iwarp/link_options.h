// The user's settings for the connections of an adapter.
#ifndef VIADUCT_VERBS_SOFT_IWARP_LINK_OPTIONS_H_
#define VIADUCT_VERBS_SOFT_IWARP_LINK_OPTIONS_H_

#include "verbs/base/clock.h"

namespace viaduct::verbs::iwarp {

struct LinkOptions {
  // How long a peer may owe an acknowledgement or the next step of a handshake, or take nothing at
  // the end of a connection (VIADUCT_SILENCE_MS).
  Nanos silence = 10 * kNanosPerSecond;
  // How long an initiator that has not promised a first FPDU may keep a responder waiting
  // (VIADUCT_FIRST_WORD_MS); 0: for ever.
  Nanos first_word = 300 * kNanosPerMilli;
  // How long after connecting an initiator nudges a peer that is not a soft device; it does so once
  // more after ten times as long. 0: never.
  Nanos nudge = 100 * kNanosPerMilli;
  bool crc = true;  // ask for the CRC (VIADUCT_CRC); a peer that asks gets it
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_LINK_OPTIONS_H_
