#include "verbs/soft/shm/message.h"

#include <netinet/in.h>

#include <cerrno>
#include <utility>

#include "verbs/soft/fd_datagram.h"

namespace viaduct::verbs::shm {
namespace {

constexpr size_t kMaxFds = 2;
static_assert(kMaxFds <= kMaxFdsToSend);

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
  const auto* bytes = reinterpret_cast<const uint8_t*>(message.data());
  if (SendDatagram(socket, {bytes, message.size()}, fds)) return SocketResult::kDone;
  return errno == EAGAIN || errno == ENOBUFS ? SocketResult::kAgain : SocketResult::kGone;
}

SocketResult ReceiveMessage(int socket, Message* message) {
  std::optional<Datagram> datagram = ReceiveDatagram(socket, kMaxMessage);
  if (!datagram.has_value()) return errno == EAGAIN ? SocketResult::kAgain : SocketResult::kGone;
  MessageHeader head;
  if (datagram->bytes.size() < sizeof head || datagram->fds.size() > kMaxFds) {
    return SocketResult::kGone;
  }
  std::memcpy(&head, datagram->bytes.data(), sizeof head);
  if (head.magic != kMessageMagic || head.length != datagram->bytes.size() - sizeof head) {
    return SocketResult::kGone;
  }
  message->type = head.type;
  message->connection = head.connection;
  message->bytes.assign(datagram->bytes.begin() + sizeof head, datagram->bytes.end());
  message->fds = std::move(datagram->fds);
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
