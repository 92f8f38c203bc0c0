// What the ways to connect have in common.
#ifndef VIADUCT_DAT_API_EP_CONNECT_H_
#define VIADUCT_DAT_API_EP_CONNECT_H_

#include <sys/socket.h>

#include <cstdint>

#include "dat/api/abi.h"
#include "dat/core/error.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"

namespace viaduct::dat {

// False for another family than the two of the Internet.
bool ToAddress(const sockaddr* from, verbs::Address* out);

// The remote address, parameter 2, of every call that connects: one that is invalid, or that cannot
// be converted, fails at once.
DAT_RETURN TakeAddress(const sockaddr* remote, verbs::Address* out);

// The port inside a socket address of either family.
uint16_t PortOf(const sockaddr* address);

// The answer of a call that connects. What the engine may still find wrong is the private data,
// parameter `argument`: too long beside what goes with it.
DAT_RETURN ConnectReturn(core::Error error, unsigned argument);

// How long a request is repeated where nobody listens. Servers tell clients their place before they
// listen there (OFED's dtestx does): OFED's slower start made up for it.
verbs::Nanos ConnectGrace();

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EP_CONNECT_H_
