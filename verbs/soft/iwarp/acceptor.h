// The passive side up to the MPA request: listening sockets, and connections whose request has not
// arrived yet.
#ifndef VIADUCT_VERBS_SOFT_IWARP_ACCEPTOR_H_
#define VIADUCT_VERBS_SOFT_IWARP_ACCEPTOR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/soft/iwarp/mpa.h"
#include "verbs/soft/iwarp/socket.h"
#include "verbs/soft/iwarp/tcp.h"

namespace viaduct::verbs::iwarp {

// A connection whose request frame has been read, and nothing after it. The socket is not watched.
struct ReceivedRequest {
  Socket socket;
  std::unique_ptr<MpaParser> request;  // kComplete, without markers
  SocketName peer;                     // known, though the socket may be reset meanwhile
};

struct AcceptorOptions {
  // Time limit from the TCP connection to a complete request; also for SetConnectionOptions.
  Nanos silence = 10 * kNanosPerSecond;
  // The most connections without a request, in all acceptors of the process. At this number no
  // other is accepted until one of them completes or ends, or the oldest has had `patience` and
  // gives way, at whatever port: so a burst of honest clients only waits.
  // The same number of rejected connections may wait for their peers to close.
  size_t max_half_open = 256;
  Nanos patience = kNanosPerSecond;
  // An acceptor that has fewer than these accepts another all the same: so strangers at one port do
  // not shut the others, however fast they take the places that become free.
  size_t own_places = 4;
};

// Listens on one port until destroyed. Garbage, silence and requests that cannot be accepted end
// the connection that they came on, and nothing else.
class Acceptor {
 public:
  using Handler = std::function<void(ReceivedRequest)>;

  // Binds `port` (0: one that is free on all addresses) on the first address, and on those of the
  // others that belong to this host. `handler` runs on the loop, from Start on. Fails as ListenOn
  // does. Any thread.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Open(EventLoop& loop,
                                                        absl::Span<const Address> addresses,
                                                        uint16_t port,
                                                        const AcceptorOptions& options,
                                                        Handler handler);
  void Start();

  // Closes the connections that have no request yet. The handler is not called again; off the loop
  // this waits for a call in progress, unless Start was never called.
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  uint16_t port() const { return port_; }

 private:
  class Core;
  Acceptor(std::shared_ptr<Core> core, uint16_t port) : core_(std::move(core)), port_(port) {}

  const std::shared_ptr<Core> core_;
  const uint16_t port_;
  bool started_ = false;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_ACCEPTOR_H_
