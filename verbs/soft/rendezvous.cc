#include "verbs/soft/rendezvous.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/accept.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"

namespace viaduct::verbs {
namespace {

constexpr uid_t kOverflowUser = 65534;  // what users outside our namespace look like
constexpr int kBacklog = 1024;

socklen_t NameOf(absl::string_view service, uint16_t port, sockaddr_un* address) {
  const std::string name = absl::StrCat(service, "-", geteuid(), "-", port);
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

int NewSocket() {
  return MoveHigh(Fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))).Release();
}

}  // namespace

// System call filters may refuse a family of sockets, as systemd's RestrictAddressFamilies does;
// security modules may refuse names.
bool MayRendezvous() {
  const Fd probe(NewSocket());
  if (!probe.valid()) return IsShortage(errno);
  sockaddr_un address;
  const socklen_t length = NameOf("viaduct-probe", static_cast<uint16_t>(getpid()), &address);
  return bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0 ||
         errno == EADDRINUSE || IsShortage(errno);
}

ListeningFd NewListener() { return ListeningFd(NewSocket()); }

absl::Status ListenWith(int socket, absl::string_view service, uint16_t port) {
  sockaddr_un address;
  const socklen_t length = NameOf(service, port, &address);
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat(service, " port ", port, " is taken; ss -lxp may say by whom"));
    }
    return absl::ErrnoToStatus(errno, "binding a unix socket");
  }
  if (listen(socket, kBacklog) != 0) return absl::ErrnoToStatus(errno, "a unix socket");
  return absl::OkStatus();
}

ChannelFd Accepted(int listener) {
  if (TooManyToClose()) {
    errno = ENOBUFS;
    return ChannelFd();
  }
  ChannelFd fd(MoveHigh(Fd(accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC))));
  const int error = errno;
  if (!fd.valid() && !IsNobody(error)) {
    LogOnce(LogLevel::kWarn,
            absl::StrCat("cannot accept processes of this host: ", strerror(error)));
    errno = error;
  }
  return fd;
}

ChannelFd NewChannel() { return ChannelFd(NewSocket()); }

absl::Status DialWith(int socket, absl::string_view service, uint16_t port, pid_t* pid) {
  sockaddr_un address;
  const socklen_t length = NameOf(service, port, &address);
  // A unix socket connects at once or not at all.
  if (connect(socket, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EAGAIN) return absl::UnavailableError("too many wait there");
    return IsShortage(errno) ? absl::ResourceExhaustedError("no memory to connect")
                             : absl::NotFoundError("nobody there");
  }
  const std::optional<pid_t> peer = TrustedPeer(socket);
  if (!peer.has_value()) return absl::NotFoundError("nobody of this user");
  *pid = *peer;
  return absl::OkStatus();
}

bool IsServedAt(absl::string_view service, uint16_t port) {
  pid_t pid;
  const absl::Status dialled = DialTo(service, port, &pid).status();
  return dialled.ok() || absl::IsUnavailable(dialled);
}

bool AwaitInput(int socket, Deadline deadline) {
  using std::chrono::nanoseconds;
  pollfd wanted = {socket, POLLIN, 0};
  for (;;) {
    const nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
    const nanoseconds left = std::max(nanoseconds(deadline.at()) - now, nanoseconds::zero());
    const auto seconds = std::chrono::floor<std::chrono::seconds>(left);
    const timespec longest = {seconds.count(), (left - seconds).count()};
    const int ready = ppoll(&wanted, 1, &longest, nullptr);
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

std::optional<pid_t> TrustedPeer(int socket) {
  ucred credentials;
  socklen_t length = sizeof credentials;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 ||
      credentials.uid != geteuid() || credentials.uid == kOverflowUser || credentials.pid <= 0) {
    return std::nullopt;
  }
  return credentials.pid;
}

}  // namespace viaduct::verbs
