// Linux's siw listens on a TCP socket of the kernel. A connection that comes in the moment in which
// siw begins to listen is never accepted, and one that ends before siw has accepted it takes the
// socket along without any notification (Linux 6.1). So the socket is checked now and then.
#ifndef VIADUCT_VERBS_RDMA_SIW_LISTENING_H_
#define VIADUCT_VERBS_RDMA_SIW_LISTENING_H_

#include <cstdint>
#include <optional>

#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/rdma/patience.h"

namespace viaduct::verbs::rdma {

// How many connections wait to be accepted at the host's TCP socket that listens at `address` and
// `port`; also 0 if there is no /proc, or no descriptor to read it with. Null: no socket listens
// there.
std::optional<uint32_t> UnacceptedAt(const Address& address, uint16_t port);

// Judges the checks of one listener's socket. Not thread-safe.
class SiwListening {
 public:
  enum class Verdict {
    kWell,
    kLost,   // there is no socket
    kStuck,  // at each of the last checks a connection has waited, and few have come through
  };
  // A connection has come through, so that one that waits after it is not regarded as stuck.
  void NoteRequest() { ++requests_; }
  // Judges one more check. A listener that is not well must listen anew, and counts as well then.
  Verdict Note(std::optional<uint32_t> unaccepted);
  // The time until the next check.
  Nanos interval() const { return interval_; }

 private:
  Nanos interval_ = kFirstListenerLook;
  int lost_ = 0;
  int waiting_ = 0;
  uint32_t requests_ = 0;  // since none waited
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_SIW_LISTENING_H_
