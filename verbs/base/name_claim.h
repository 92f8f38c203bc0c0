// A claim on a name that one process of this host (of this network namespace) holds at a time.
//
// Made of an abstract unix socket, so it ends with its holder however that ends, and nothing is
// left on disk.
#ifndef VIADUCT_VERBS_BASE_NAME_CLAIM_H_
#define VIADUCT_VERBS_BASE_NAME_CLAIM_H_

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verbs/base/fd.h"

namespace viaduct::verbs {

class NameClaim {
 public:
  // `name`: at most 32 bytes of any value. AlreadyExists: somebody holds it, this process
  // included; ResourceExhausted: no descriptor.
  static absl::StatusOr<NameClaim> Take(absl::string_view name);

 private:
  explicit NameClaim(Fd socket) : socket_(std::move(socket)) {}
  Fd socket_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_NAME_CLAIM_H_
