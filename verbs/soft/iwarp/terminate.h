#ifndef VIADUCT_VERBS_SOFT_IWARP_TERMINATE_H_
#define VIADUCT_VERBS_SOFT_IWARP_TERMINATE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/ddp_format.h"
#include "verbs/soft/iwarp/wire_error.h"

// The payload of RDMAP's Terminate message: written exactly as in RFC 5040 4.8, read also in the
// bit order of Linux siw.

namespace viaduct::verbs::iwarp {

// Writes the payload that reports `error` in the segment `ulpdu` (empty: none to show) and returns
// its size. The segment's header is attached to DDP errors and to RDMAP's errors of protection and
// operation, the header of a Read Request to RDMAP's protection errors (iWARP reference 3.4).
size_t EncodeTerminate(const WireError& error, std::span<const uint8_t> ulpdu,
                       std::span<uint8_t, kMaxTerminateSize> out);

struct Terminate {
  WireError error;
  std::optional<DdpHeader> segment;  // the header of what the peer refused, if it is shown
};

// Decodes a peer's payload. Nothing in a Terminate is refused, since it ends the connection
// whatever it says: a header that does not parse is left out. `started` says whether FPDUs have
// been exchanged before, in either direction, not counting the initiator's silent first one; it
// decides the few codes that are the same bytes in both orders.
// nullopt: fewer than the four control bytes.
std::optional<Terminate> DecodeTerminate(std::span<const uint8_t> payload, bool started);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_TERMINATE_H_
