// The passive side up to the request: listening sockets, and connections that have not said yet
// what they want.
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

namespace viaduct::verbs::iwarp {

// A connection whose request frame has been read; nothing behind it has. The socket is not watched.
struct ReceivedRequest {
  Socket socket;
  std::unique_ptr<MpaParser> request;  // kComplete, without markers
};

struct AcceptorOptions {
  // From the TCP connection to a whole request, and SetConnectionOptions.
  Nanos silence = 10 * kNanosPerSecond;
  // Connections without a request. At this number the oldest gives way once it has had `patience`;
  // until then, or until one of them has spoken, no other is accepted, so that a burst of honest
  // ones only waits.
  // As many that were rejected may wait for their peers to close.
  size_t max_half_open = 256;
  Nanos patience = kNanosPerSecond;
};

// Listens on one port until destroyed. Garbage, silence and requests that cannot be accepted end
// the connection that they came on, and nothing else.
class Acceptor {
 public:
  using Handler = std::function<void(ReceivedRequest)>;

  // Binds `port` (0: one that is free on all) on the first address and on those of the others that
  // this host has. `handler` runs on the loop, from Start on. The errors are those of ListenOn. Any
  // thread.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Open(EventLoop& loop,
                                                        absl::Span<const Address> addresses,
                                                        uint16_t port,
                                                        const AcceptorOptions& options,
                                                        Handler handler);
  void Start();

  // Closes what has no request yet. The handler is not called again; off the loop this waits for a
  // call in progress, unless it was never started.
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
