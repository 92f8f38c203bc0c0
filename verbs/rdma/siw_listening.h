// Linux's siw listens at a TCP socket of the kernel's. A connection that comes in the moment in
// which it begins is never accepted, and one that goes before siw has accepted it takes the socket
// along, of which nobody is told (Linux 6.1). So the socket is looked at now and then.
#ifndef VIADUCT_VERBS_RDMA_SIW_LISTENING_H_
#define VIADUCT_VERBS_RDMA_SIW_LISTENING_H_

#include <cstdint>
#include <optional>

#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/rdma/patience.h"

namespace viaduct::verbs::rdma {

// How many connections nobody has accepted yet at the host's TCP socket that listens at `address`
// and `port`; 0 too where there is no /proc or no descriptor to look with. Null: none listens
// there.
std::optional<uint32_t> UnacceptedAt(const Address& address, uint16_t port);

// What the looks at one listener's socket come to. Not thread-safe.
class SiwListening {
 public:
  enum class Verdict {
    kWell,
    kLost,   // there is no socket
    kStuck,  // at each of the last looks a connection has waited, and few have come through
  };
  // A connection has come through: one that waits behind it is not stuck for that.
  void NoteRequest() { ++requests_; }
  // Of one look more. A listener that is not well listens anew, and is well then.
  Verdict Note(std::optional<uint32_t> unaccepted);
  // Until the next look.
  Nanos interval() const { return interval_; }

 private:
  Nanos interval_ = kFirstListenerLook;
  int lost_ = 0;
  int waiting_ = 0;
  uint32_t requests_ = 0;  // since none waited
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_SIW_LISTENING_H_
