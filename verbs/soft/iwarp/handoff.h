// Moves a request to another process of this host and user: the connected socket and the request
// frame are passed over a unix socket beside each listening port. FORMAT.md has the messages.
#ifndef VIADUCT_VERBS_SOFT_IWARP_HANDOFF_H_
#define VIADUCT_VERBS_SOFT_IWARP_HANDOFF_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbs/base/clock.h"
#include "verbs/base/event_loop.h"
#include "verbs/soft/iwarp/acceptor.h"
#include "verbs/soft/iwarp/mpa.h"
#include "verbs/soft/iwarp/socket.h"

namespace viaduct::verbs::iwarp {

// Receives the requests that other processes hand over. Both callbacks run on the loop.
class HandOffListener {
 public:
  // Would a request with this note be taken?
  using Ask = std::function<bool(std::span<const uint8_t> note)>;
  using Take = std::function<void(ReceivedRequest received, std::vector<uint8_t> note)>;

  // The result takes nothing until Start. Fails with AlreadyExists (a process of this user listens
  // there) or ResourceExhausted. Any thread.
  static absl::StatusOr<std::unique_ptr<HandOffListener>> Open(EventLoop& loop, uint16_t port,
                                                               Nanos silence, Ask ask, Take take);
  void Start();
  // Neither callback is called any more; off the loop this waits for a call in progress, unless
  // Start was never called.
  ~HandOffListener();
  HandOffListener(const HandOffListener&) = delete;
  HandOffListener& operator=(const HandOffListener&) = delete;

 private:
  class Core;
  explicit HandOffListener(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  const std::shared_ptr<Core> core_;
  bool started_ = false;
};

// Does a process of this user listen there?
bool HasHandOffListener(uint16_t port);

// Asks the process that listens at `port` whether it takes a request with this note; if so, the
// request may be sent on the result. Fails as IncomingConnection::HandOff. Blocks; not on the loop.
absl::StatusOr<Socket> AskToTake(uint16_t port, std::span<const uint8_t> note, Deadline deadline);

// Asks as AskToTake does and, if the answer is yes, hands the request over: the caller then closes
// its own socket.
absl::Status HandOver(uint16_t port, std::span<const uint8_t> note, Deadline deadline,
                      const MpaParser& request, const Socket& socket);

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_HANDOFF_H_
