// iWARP as a wire of the soft device.
#ifndef VIADUCT_VERBS_SOFT_IWARP_WIRE_H_
#define VIADUCT_VERBS_SOFT_IWARP_WIRE_H_

#include <cstdint>
#include <memory>

#include "verbs/base/address.h"
#include "verbs/base/event_loop.h"
#include "verbs/frame_format.h"
#include "verbs/soft/iwarp/handoff.h"
#include "verbs/soft/iwarp/link_options.h"
#include "verbs/soft/iwarp/mpa_format.h"
#include "verbs/soft/wire.h"

namespace viaduct::verbs::iwarp {

struct LinkShared;

class IwarpWire final : public Wire {
 public:
  // In a request and in an answer: as much as every known iWARP peer takes. Linux irdma and cxgb4
  // count it, with the word before it, in eight bits.
  static constexpr uint32_t kMaxPrivateData = 255 - kMpaDepthsSize;
  // A message's length has 32 bits on the wire; Linux siw counts it in an int, and a frame may
  // precede the message.
  static constexpr uint32_t kMaxMessageBytes = 0x7FFFFFFF - kFrameBytes;
  // Reads in each direction; as many as Linux siw allows.
  static constexpr uint32_t kMaxReads = 128;

  struct Options : LinkOptions {
    Address address;             // listened on and connected from
    bool loopback_only = false;  // listen on loopback alone (VIADUCT_LISTEN)
  };

  // `loop` must outlive every link: it lasts as long as the process.
  IwarpWire(EventLoop& loop, const Options& options);
  ~IwarpWire() override;

  absl::string_view name() const override { return "iwarp"; }
  bool Reaches(const Address& address) const override;
  Link* Connect(SoftQueuePair& pair, const ConnectOptions& options) override;
  absl::StatusOr<std::unique_ptr<WireListener>> Listen(SoftContext& context, uint16_t port,
                                                       ListenerSink* sink) override;
  bool IsServed(uint16_t port) const override { return HasHandOffListener(port); }
  TakeAnswer WouldTake(uint16_t port, absl::Span<const uint8_t> note,
                       Deadline deadline) const override {
    return AnswerOf(AskToTake(port, {note.data(), note.size()}, deadline).status());
  }

 private:
  const Options options_;
  const std::shared_ptr<LinkShared> shared_;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_WIRE_H_
