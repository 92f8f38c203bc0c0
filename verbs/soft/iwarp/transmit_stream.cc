#include "verbs/soft/iwarp/transmit_stream.h"

#include <limits.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "verbs/base/uncancelled.h"

namespace viaduct::verbs::iwarp {
namespace {

// Returns the bytes taken, 0 if there is no room, -1 if the connection is lost.
ssize_t SendParts(int fd, std::span<const iovec> parts) {
  msghdr message = {};
  message.msg_iov = const_cast<iovec*>(parts.data());
  message.msg_iovlen = parts.size();
  for (;;) {
    const ssize_t n = uncancelled::SendMessage(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    return errno == EAGAIN || errno == ENOBUFS ? 0 : -1;
  }
}

size_t TotalOf(std::span<const iovec> parts) {
  size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
}

}  // namespace

bool TransmitStream::Send(std::span<const iovec> parts) {
  while (!parts.empty()) {
    const std::span<const iovec> some = parts.first(std::min<size_t>(parts.size(), IOV_MAX));
    const size_t total = TotalOf(some);
    size_t sent = 0;
    if (!blocked()) {
      const ssize_t n = SendParts(fd_, some);
      if (n < 0) return false;
      sent = static_cast<size_t>(n);
    }
    if (sent < total && !Keep(some, sent)) return false;
    parts = parts.subspan(some.size());
  }
  return true;
}

bool TransmitStream::Flush() {
  while (blocked()) {
    const iovec part{waiting_.data() + begin_, waiting_.size() - begin_};
    const ssize_t n = SendParts(fd_, {&part, 1});
    if (n < 0) return false;
    if (n == 0) return true;
    begin_ += static_cast<size_t>(n);
  }
  // An idle connection keeps no memory.
  if (waiting_.capacity() > 0) std::vector<uint8_t>().swap(waiting_);
  begin_ = 0;
  return true;
}

bool TransmitStream::Keep(std::span<const iovec> parts, size_t skip) {
  try {
    for (const iovec& part : parts) {
      if (skip >= part.iov_len) {
        skip -= part.iov_len;
        continue;
      }
      const auto* bytes = static_cast<const uint8_t*>(part.iov_base);
      waiting_.insert(waiting_.end(), bytes + skip, bytes + part.iov_len);
      skip = 0;
    }
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace viaduct::verbs::iwarp
