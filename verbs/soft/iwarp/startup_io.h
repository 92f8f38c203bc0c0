// Startup frames on a socket. Nothing here blocks.
#ifndef VIADUCT_VERBS_SOFT_IWARP_STARTUP_IO_H_
#define VIADUCT_VERBS_SOFT_IWARP_STARTUP_IO_H_

#include <cstdint>

#include "verbs/soft/iwarp/mpa.h"

namespace viaduct::verbs::iwarp {

enum class FrameProgress : uint8_t {
  kWaiting,   // more must come
  kComplete,  // and nothing after the frame was taken from the socket
  kFailed,    // parser->error() tells why
  kClosed,    // the peer's FIN came first
  kReset,     // the connection is gone; errno tells why
};

// Receives as much of the frame as is there.
FrameProgress ReceiveFrame(int fd, MpaParser* parser);

// Sends the frame in one piece: siw reads a startup frame correctly only if it comes in one
// segment. False if the socket did not take it whole; a fresh connection always has the room.
bool SendFrame(int fd, const MpaFrame& frame);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_STARTUP_IO_H_
