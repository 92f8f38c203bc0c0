#include "verbs/soft/shm/message.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>

namespace viaduct::verbs::shm {
namespace {

constexpr size_t kMaxFds = 2;
// What does not fit the kernel would close, here. It lets a message have no more (SCM_MAX_FD).
constexpr size_t kMostSentFds = 253;

}  // namespace

std::string BuildMessage(MessageType type, uint32_t connection, absl::Span<const uint8_t> body,
                         absl::Span<const uint8_t> tail) {
  const MessageHeader header = {kMessageMagic, type, 0, connection,
                                static_cast<uint32_t>(body.size() + tail.size())};
  std::string message(reinterpret_cast<const char*>(&header), sizeof header);
  message.append(reinterpret_cast<const char*>(body.data()), body.size());
  message.append(reinterpret_cast<const char*>(tail.data()), tail.size());
  return message;
}

SocketResult SendMessage(int socket, const std::string& message, absl::Span<const int> fds) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  iovec part = {const_cast<char*>(message.data()), message.size()};
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
  for (;;) {
    if (sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return SocketResult::kDone;
    if (errno == EAGAIN || errno == ENOBUFS) return SocketResult::kAgain;
    if (errno != EINTR) return SocketResult::kGone;
  }
}

SocketResult ReceiveMessage(int socket, Message* message) {
  uint8_t buffer[kMaxMessage];
  alignas(cmsghdr) char control[CMSG_SPACE(kMostSentFds * sizeof(int))];
  iovec part = {buffer, sizeof buffer};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got;
  do {
    got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    // ECONNRESET comes once, before what is there to read: the other side closed with input unread.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0 && errno == EAGAIN) return SocketResult::kAgain;
  if (got < 0) return SocketResult::kGone;

  // First of all: whatever the message is, its descriptors are open here.
  message->fds.clear();
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      message->fds.emplace_back(fd);
    }
  }
  MessageHeader head;
  if (static_cast<size_t>(got) < sizeof head || message->fds.size() > kMaxFds ||
      (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
    return SocketResult::kGone;
  }
  std::memcpy(&head, buffer, sizeof head);
  if (head.magic != kMessageMagic || head.length != got - sizeof head) return SocketResult::kGone;
  message->type = head.type;
  message->connection = head.connection;
  message->bytes.assign(buffer + sizeof head, buffer + got);
  return SocketResult::kDone;
}

WireAddress ToWire(const Address& address) {
  WireAddress wire = {};
  sockaddr_storage storage = {};
  address.ToSockaddr(0, &storage);
  wire.family = storage.ss_family;
  if (storage.ss_family == AF_INET) {
    std::memcpy(wire.bytes, &reinterpret_cast<sockaddr_in&>(storage).sin_addr, 4);
  } else if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    std::memcpy(wire.bytes, &v6.sin6_addr, 16);
    wire.scope = v6.sin6_scope_id;
  }
  return wire;
}

std::optional<Address> FromWire(const WireAddress& wire) {
  if (wire.family == AF_INET) {
    sockaddr_in v4 = {};
    v4.sin_family = AF_INET;
    std::memcpy(&v4.sin_addr, wire.bytes, 4);
    return Address::FromSockaddr(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  if (wire.family == AF_INET6) {
    sockaddr_in6 v6 = {};
    v6.sin6_family = AF_INET6;
    std::memcpy(&v6.sin6_addr, wire.bytes, 16);
    v6.sin6_scope_id = wire.scope;
    return Address::FromSockaddr(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
  }
  return std::nullopt;
}

}  // namespace viaduct::verbs::shm
