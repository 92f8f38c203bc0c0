// Datagrams that carry descriptors (SCM_RIGHTS) between processes of one host. Neither call blocks.
#ifndef VIADUCT_VERBS_SOFT_FD_DATAGRAM_H_
#define VIADUCT_VERBS_SOFT_FD_DATAGRAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "verbs/soft/foreign_fd.h"

namespace viaduct::verbs {

inline constexpr size_t kMaxFdsToSend = 2;

// False with sendmsg's errno.
bool SendDatagram(int socket, absl::Span<const uint8_t> bytes, absl::Span<const int> fds);

struct Datagram {
  std::vector<uint8_t> bytes;  // empty: the peer has closed, or an empty datagram
  std::vector<GivenFd> fds;
};

// Null with recvmsg's errno, or with EPROTO if the datagram cannot be taken: it is longer than
// `most` bytes, or has more descriptors than may be sent or than this process has room for. Then it
// stays in the socket, which the caller closes (ChannelFd).
std::optional<Datagram> ReceiveDatagram(int socket, size_t most);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_FD_DATAGRAM_H_
