// A claim on a name that one process of this host (of this network namespace) holds at a time.
//
// It is an abstract unix socket, so it ends with its holder, however that ends, and leaves nothing
// on disk. A forked child of the holder does not hold it.
#ifndef VIADUCT_VERBS_BASE_NAME_CLAIM_H_
#define VIADUCT_VERBS_BASE_NAME_CLAIM_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verbs/base/fd_table.h"

namespace viaduct::verbs {

class NameClaim {
 public:
  // `name`: at most 32 bytes of any value. AlreadyExists: a process holds it, perhaps this one;
  // ResourceExhausted: no descriptor or no memory; PermissionDenied: this process may have no unix
  // socket, or no such name. Any thread.
  static absl::StatusOr<NameClaim> Take(absl::string_view name);

 private:
  explicit NameClaim(TabledFd socket) : socket_(std::move(socket)) {}
  TabledFd socket_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_NAME_CLAIM_H_
