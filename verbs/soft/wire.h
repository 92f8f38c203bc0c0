// A way to other processes, used by SoftContext. A context tries its wires in order until one
// finds somebody (shm, then iwarp); a simulated context has one.
#ifndef VIADUCT_VERBS_SOFT_WIRE_H_
#define VIADUCT_VERBS_SOFT_WIRE_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verbs/device.h"

namespace viaduct::verbs {

class Link;
class SoftContext;
class SoftQueuePair;

// A port that is taken, and brings no request before Start. Destruction off the executor waits for
// a sink call in progress; one that was not started waits for nobody.
class WireListener : public Listener {
 public:
  // Once. Requests may come before it returns.
  virtual void Start() = 0;
};

class Wire {
 public:
  virtual ~Wire() = default;
  virtual absl::string_view name() const = 0;  // for the log: "shm", "iwarp", "sim"

  // Could anybody at `address` be reached this way? Any thread.
  virtual bool Reaches(const Address& address) const = 0;

  // Begins an attempt; called in the consumer's thread, with the pair's state locked: it may set
  // the pair's local port, that the host was heard, that resources were short and that there was no
  // room, and calls nothing else of it. Null: nobody is here, or an error that the next wire may
  // not meet. Otherwise the wire answers on the executor, later, with exactly one of
  // pair.Established, pair.ConnectFailed, pair.NotHere (then the next wire is tried) and
  // pair.StartAgain, unless the pair calls Link::Disconnect first.
  virtual Link* Connect(SoftQueuePair& pair, const ConnectOptions& options) = 0;

  // The result hands requests to `sink` on the executor, from its Start to its end. Port 0 takes a
  // free one. One that fails waits for nobody: its caller may hold what a sink needs. The errors
  // are those of Context::Listen.
  virtual absl::StatusOr<std::unique_ptr<WireListener>> Listen(SoftContext& context, uint16_t port,
                                                               ListenerSink* sink) = 0;

  // As Context::IsServed. Any thread; does not block.
  virtual bool IsServed(uint16_t port) const = 0;

  // As Context::WouldTake.
  virtual TakeAnswer WouldTake(uint16_t /*port*/, absl::Span<const uint8_t> /*note*/,
                               Deadline /*deadline*/) const {
    return TakeAnswer::kNo;
  }

 protected:
  // What it means to have asked somebody: OK is yes, Unavailable that no answer came.
  static TakeAnswer AnswerOf(const absl::Status& asked) {
    if (asked.ok()) return TakeAnswer::kYes;
    return absl::IsUnavailable(asked) ? TakeAnswer::kSilent : TakeAnswer::kNo;
  }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_WIRE_H_
