#include "verbs/soft/iwarp/startup_io.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <span>

namespace viaduct::verbs::iwarp {

FrameProgress ReceiveFrame(int fd, MpaParser* parser) {
  std::array<uint8_t, kMpaMaxFrameSize> bytes;
  while (parser->missing() > 0) {
    const ssize_t n = recv(fd, bytes.data(), parser->missing(), MSG_DONTWAIT);
    if (n == 0) return FrameProgress::kClosed;
    if (n < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? FrameProgress::kWaiting : FrameProgress::kReset;
    }
    parser->Feed(std::span<const uint8_t>(bytes).first(static_cast<size_t>(n)));
  }
  return parser->state() == MpaParser::State::kComplete ? FrameProgress::kComplete
                                                        : FrameProgress::kFailed;
}

bool SendFrame(int fd, const MpaFrame& frame) {
  std::array<uint8_t, kMpaMaxFrameSize> bytes;
  const size_t size = EncodeMpa(frame, bytes);
  ssize_t n;
  do {
    n = send(fd, bytes.data(), size, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

}  // namespace viaduct::verbs::iwarp
