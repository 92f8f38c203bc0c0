// A way to reach other processes, used by SoftContext. A context tries its wires in order (shm,
// then iwarp) until one finds a listener; a simulated context has one wire.
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

// A listener that holds its port but delivers no request before Start. Destruction off the executor
// waits for a sink call in progress; a listener that was not started does not wait.
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

  // Begins an attempt. Called in the consumer's thread, with the pair's state locked: of the calls
  // that change the pair it may make SetLocalPort, NotePeerHeard, NoteNoResources and
  // NoteBacklogFull only. Null: nobody listens on this wire, or an error occurred that the next
  // wire may not meet. Otherwise the wire later makes exactly one of these calls on the executor:
  // pair.Established, pair.ConnectFailed, pair.NotHere (then the next wire is tried) or
  // pair.StartAgain, unless the pair calls Link::Disconnect first.
  virtual Link* Connect(SoftQueuePair& pair, const ConnectOptions& options) = 0;

  // The result hands requests to `sink` on the executor, from its Start to its end. Port 0 takes a
  // free one. A Listen that fails waits for no other thread: its caller may hold a lock that a sink
  // needs. The errors are those of Context::Listen.
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
  // Translates the status of a question to a listener: OK is yes, Unavailable means no answer came.
  static TakeAnswer AnswerOf(const absl::Status& asked) {
    if (asked.ok()) return TakeAnswer::kYes;
    return absl::IsUnavailable(asked) ? TakeAnswer::kSilent : TakeAnswer::kNo;
  }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_WIRE_H_
