// Startup frames on a socket. Nothing here blocks.
#ifndef VIADUCT_VERBS_SOFT_IWARP_STARTUP_IO_H_
#define VIADUCT_VERBS_SOFT_IWARP_STARTUP_IO_H_

#include <cstdint>

#include "verbs/soft/iwarp/mpa.h"

namespace viaduct::verbs::iwarp {

enum class FrameProgress : uint8_t {
  kWaiting,   // more must come
  kComplete,  // and nothing behind the frame was taken from the socket
  kFailed,    // parser->error() tells why
  kClosed,    // the peer's FIN came first
  kReset,     // the connection is gone; errno tells why
};

// Receives what is there towards a whole frame.
FrameProgress ReceiveFrame(int fd, MpaParser* parser);

// Sends the frame in one piece: siw reads a startup frame well only if it comes in one segment.
// False if the socket did not take it whole; a fresh connection always has the room.
bool SendFrame(int fd, const MpaFrame& frame);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_STARTUP_IO_H_
