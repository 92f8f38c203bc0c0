#include "verbs/soft/iwarp/tcp.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr int kBacklog = 1024;

void SetOption(int fd, int level, int name, int value) {
  // A failure here (an option unknown to the kernel) leaves the connection usable.
  setsockopt(fd, level, name, &value, sizeof(value));
}

SocketName EndFrom(const sockaddr_storage& storage, socklen_t length) {
  const auto* any = reinterpret_cast<const sockaddr*>(&storage);
  SocketName end;
  end.address = Address::FromSockaddr(any, length).value_or(Address());
  if (storage.ss_family == AF_INET) {
    end.port = ntohs(reinterpret_cast<const sockaddr_in*>(&storage)->sin_port);
  } else if (storage.ss_family == AF_INET6) {
    end.port = ntohs(reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_port);
  }
  return end;
}

absl::Status ListenError(int error, const Address& address, uint16_t port) {
  const std::string text =
      absl::StrCat("listen on ", address.ToString(), " port ", port, ": ", strerror(error));
  Log(LogLevel::kInfo, text);
  switch (error) {
    case EADDRINUSE:
      return absl::AlreadyExistsError(text);
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(text);
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL:
      return absl::InvalidArgumentError(text);
    default:
      return absl::ResourceExhaustedError(text);
  }
}

}  // namespace

Socket NewTcpSocket(sa_family_t family) {
  Socket fd = OpenHighAs<Socket>(
      [family] { return socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP); });
  // Allows listening on a port that connections use on this side, perhaps still in TIME_WAIT. Both
  // the listening and the connected socket must have the option.
  if (fd.valid()) SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  return fd;
}

absl::StatusOr<Socket> ListenOn(const Address& address, uint16_t port) {
  Socket fd = NewTcpSocket(address.family());
  if (!fd.valid()) return ListenError(errno, address, port);
  if (address.family() == AF_INET6) SetOption(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 1);
  sockaddr_storage storage;
  const socklen_t length = address.ToSockaddr(port, &storage);
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&storage), length) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return ListenError(errno, address, port);
  }
  return fd;
}

SocketName LocalEnd(int fd) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return EndFrom(storage, length);
}

SocketName PeerEnd(int fd) {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &length) != 0) return {};
  return EndFrom(storage, length);
}

void SetConnectionOptions(int fd, Nanos silence) {
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  // A peer that is silent for a third of the time is probed, and again and again during the rest:
  // one answer is enough, so the network may lose some of them or be away for a while. The sum
  // stays below the time, since timers of the kernel are late by up to an eighth.
  const int seconds = static_cast<int>(std::clamp<Nanos>(silence / kNanosPerSecond, 2, 7200));
  const int idle = std::max(1, seconds / 3);
  const int interval = std::max(1, seconds / 10);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval);
  SetOption(fd, IPPROTO_TCP, TCP_KEEPCNT, std::min(6, (seconds - idle) / interval));
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

bool LimitBackOff(int fd, Nanos silence) {
  constexpr int kRtoMaxMs = 44;  // TCP_RTO_MAX_MS
  const int most = static_cast<int>(std::clamp<Nanos>(silence / 4 / kNanosPerMilli, 1000, 120'000));
  return setsockopt(fd, IPPROTO_TCP, kRtoMaxMs, &most, sizeof(most)) == 0;
}

size_t SegmentSize(int fd) {
  constexpr size_t kLeast = 536;  // what every TCP takes
  int size = 0;
  socklen_t length = sizeof(size);
  if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &size, &length) != 0 || size <= 0) return kLeast;
  return static_cast<size_t>(size);
}

size_t UnacknowledgedBytes(int fd) {
  int queued = 0;
  return ioctl(fd, SIOCOUTQ, &queued) == 0 ? static_cast<size_t>(queued) : 0;
}

Unacknowledged UnacknowledgedOf(int fd) {
  Unacknowledged sent;
  tcp_info info = {};
  socklen_t length = sizeof(info);
  // After a reset the number of bytes stays as it was.
  if (UnacknowledgedBytes(fd) == 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      info.tcpi_state == TCP_CLOSE) {
    return sent;
  }
  // One probe or its answer may get lost, and so may the next; the last of them is still in flight.
  constexpr int kUnansweredProbes = 3;
  sent.outstanding = true;
  sent.answer_due = info.tcpi_unacked > 0 || info.tcpi_probes >= kUnansweredProbes;
  sent.silent_for = Nanos{info.tcpi_last_ack_recv} * kNanosPerMilli;
  return sent;
}

ssize_t DiscardInput(int fd) {
  char piece[1024];  // the stack may be small
  ssize_t n;
  int pieces = 16;
  do {
    n = recv(fd, piece, sizeof piece, MSG_DONTWAIT);
  } while (n > 0 && --pieces > 0);
  return n;
}

bool IsUnreachable(int error) {
  switch (error) {
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ENETDOWN:
    case EHOSTDOWN:
    case ENONET:
    case EADDRNOTAVAIL:
    case EAFNOSUPPORT:
    case EINVAL:
    case EACCES:
    case EPERM:
      return true;
    default:
      return false;
  }
}

}  // namespace viaduct::verbs::iwarp
