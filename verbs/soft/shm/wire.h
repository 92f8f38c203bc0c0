// The wire between processes of one host, and the doorbell of a context that uses it.
#ifndef VIADUCT_VERBS_SOFT_SHM_WIRE_H_
#define VIADUCT_VERBS_SOFT_SHM_WIRE_H_

#include <memory>
#include <optional>

#include "verbs/base/event_loop.h"
#include "verbs/device.h"
#include "verbs/soft/doorbell.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/wire.h"

namespace viaduct::verbs::shm {

class ShmWire final : public Wire {
 public:
  static constexpr Nanos kSilence = 10'000'000'000;

  // `address` is the context's own: peers see it, and the context's listeners are there. `silence`:
  // VIADUCT_SILENCE_MS, here how long a requester may leave an accept unanswered; one value for the
  // whole process.
  ShmWire(EventLoop& loop, const Address& address, Nanos silence = kSilence);
  ~ShmWire() override;

  absl::string_view name() const override { return "shm"; }
  // True for an address of this host, or if that cannot be found out now.
  bool Reaches(const Address& address) const override;
  Link* Connect(SoftQueuePair& pair, const ConnectOptions& options) override;
  absl::StatusOr<std::unique_ptr<WireListener>> Listen(SoftContext& context, uint16_t port,
                                                       ListenerSink* sink) override;
  bool IsServed(uint16_t port) const override;
  TakeAnswer WouldTake(uint16_t port, absl::Span<const uint8_t> note,
                       Deadline deadline) const override;

 private:
  // Whether `address` is this host's. Null: no descriptor or memory to find out.
  std::optional<bool> IsOurs(const Address& address) const;

  Host& host_;
  const Address address_;
};

class ShmDoorbell final : public Doorbell {
 public:
  ShmDoorbell(EventLoop& loop, Nanos spin_time) : host_(Host::Get(loop)), spin_time_(spin_time) {}
  Nanos SpinTime() const override { return spin_time_; }
  void Collect() override { host_.Collect(); }
  WaitResult Sleep(std::atomic<uint32_t>& word, uint32_t seen, Deadline deadline) override {
    return host_.Sleep(word, seen, deadline);
  }
  void Expect() override { host_.Expect(); }
  void Wake(std::atomic<uint32_t>& word) override;
  void HeavyFence() override;

 private:
  Host& host_;
  const Nanos spin_time_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_WIRE_H_
