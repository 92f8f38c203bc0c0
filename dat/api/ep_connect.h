// What the calls that connect have in common.
#ifndef VIADUCT_DAT_API_EP_CONNECT_H_
#define VIADUCT_DAT_API_EP_CONNECT_H_

#include <sys/socket.h>

#include <cstdint>

#include "dat/api/abi.h"
#include "dat/core/error.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"

namespace viaduct::dat {

// Returns false for a family other than AF_INET and AF_INET6.
bool ToAddress(const sockaddr* from, verbs::Address* out);

// Converts the remote address, parameter 2 of every call that connects. An address that is invalid
// or cannot be converted fails the call at once.
DAT_RETURN TakeAddress(const sockaddr* remote, verbs::Address* out);

// The port inside a socket address of either family.
uint16_t PortOf(const sockaddr* address);

// The return value of a call that connects. The only parameter that the engine may still reject is
// the private data, parameter number `argument`: too long together with what travels beside it.
DAT_RETURN ConnectReturn(core::Error error, unsigned argument);

// How long a request is repeated while nobody listens at its target. Some servers (OFED's dtestx)
// tell clients their address before they listen there; OFED's slower start made up for that.
verbs::Nanos ConnectGrace();

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_EP_CONNECT_H_
