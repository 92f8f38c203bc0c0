#include "verbs/soft/fd_datagram.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace viaduct::verbs {

bool SendDatagram(int socket, absl::Span<const uint8_t> bytes, absl::Span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFdsToSend * sizeof(int))] = {};
  iovec part = {const_cast<uint8_t*>(bytes.data()), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size() * sizeof(int));
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

std::optional<Datagram> ReceiveDatagram(int socket, size_t most) {
  Datagram datagram;
  datagram.bytes.resize(most);
  datagram.fds.reserve(kMaxFdsToSend);  // once descriptors have arrived nothing may fail
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFdsToSend * sizeof(int))];
  iovec part = {datagram.bytes.data(), datagram.bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    // Only a look at first: recvmsg itself closes the descriptors for which it finds no room, and
    // the close may take long if it is the last. As long as the datagram is there, it is not.
    got = recvmsg(socket, &header, MSG_PEEK | MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    // ECONNRESET comes once, before the data that can be read: the peer closed with input unread.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return std::nullopt;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      datagram.fds.emplace_back(fd);
    }
  }
  if ((header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    datagram.fds.clear();
    errno = EPROTO;
    return std::nullopt;
  }
  msghdr nothing = {};
  ssize_t taken;
  do {
    taken = recvmsg(socket, &nothing, MSG_DONTWAIT);
  } while (taken < 0 && (errno == EINTR || errno == ECONNRESET));
  if (taken < 0) {
    datagram.fds.clear();
    errno = EPROTO;
    return std::nullopt;
  }
  datagram.bytes.resize(static_cast<size_t>(got));
  return datagram;
}

}  // namespace viaduct::verbs
