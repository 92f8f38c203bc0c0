// Building and parsing messages (message_format.h).
#ifndef VIADUCT_VERBS_SOFT_SHM_MESSAGE_H_
#define VIADUCT_VERBS_SOFT_SHM_MESSAGE_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "verbs/base/address.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/shm/message_format.h"

namespace viaduct::verbs::shm {

// The header, `body` and `tail` as one message.
std::string BuildMessage(MessageType type, uint32_t connection, absl::Span<const uint8_t> body,
                         absl::Span<const uint8_t> tail);

template <typename Body>
std::string BuildMessage(MessageType type, uint32_t connection, const Body& body,
                         absl::Span<const uint8_t> tail = {}) {
  return BuildMessage(
      type, connection,
      absl::Span<const uint8_t>(reinterpret_cast<const uint8_t*>(&body), sizeof body), tail);
}

// A received message. Every length has been checked.
struct Message {
  MessageType type;
  uint32_t connection;
  std::vector<uint8_t> bytes;  // body and tail
  std::vector<GivenFd> fds;

  // Null if it is too short for a Body.
  template <typename Body>
  std::optional<Body> body() const {
    if (bytes.size() < sizeof(Body)) return std::nullopt;
    Body body;
    std::memcpy(&body, bytes.data(), sizeof body);
    return body;
  }
  template <typename Body>
  absl::Span<const uint8_t> tail() const {
    return absl::Span<const uint8_t>(bytes).subspan(sizeof(Body));
  }
};

enum class SocketResult { kDone, kAgain, kGone };

// One datagram, with up to two descriptors. Never blocks.
SocketResult SendMessage(int socket, const std::string& message, absl::Span<const int> fds);
// kGone: end, error or nonsense. Received descriptors are closed elsewhere (GivenFd).
SocketResult ReceiveMessage(int socket, Message* message);

WireAddress ToWire(const Address& address);
std::optional<Address> FromWire(const WireAddress& address);

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_MESSAGE_H_
