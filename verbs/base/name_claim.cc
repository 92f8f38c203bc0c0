#include "verbs/base/name_claim.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs {
namespace {

constinit FdTable g_claims;

const AtFork g_at_fork(nullptr, nullptr, [] { g_claims.CloseInForkChild(); });

absl::Status FailureOf(int error) {
  if (IsShortage(error)) return absl::ResourceExhaustedError(std::strerror(error));
  return absl::PermissionDeniedError(std::strerror(error));
}

// The socket is in the table before it has the name, which a forked child would otherwise keep.
TabledFd NewSocket() {
  const FdChange change;
  return TabledFd(g_claims, MoveHigh(Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))));
}

}  // namespace

absl::StatusOr<NameClaim> NameClaim::Take(absl::string_view name) {
  if (!g_at_fork.registered()) {
    return absl::ResourceExhaustedError("no memory for a handler of forks");
  }
  TabledFd socket = NewSocket();
  if (!socket.valid()) return FailureOf(errno);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // The leading zero byte makes it abstract.
  const std::string path =
      absl::StrCat(absl::string_view("\0", 1), "viaduct-name-", absl::BytesToHexString(name));
  if (path.size() > sizeof(address.sun_path)) return absl::InvalidArgumentError("name too long");
  std::memcpy(address.sun_path, path.data(), path.size());
  const socklen_t length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno == EADDRINUSE) return absl::AlreadyExistsError("the name is claimed");
    return FailureOf(errno);
  }
  return NameClaim(std::move(socket));
}

}  // namespace viaduct::verbs
