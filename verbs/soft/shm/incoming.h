// A connection request that has arrived from another process.
#ifndef VIADUCT_VERBS_SOFT_SHM_INCOMING_H_
#define VIADUCT_VERBS_SOFT_SHM_INCOMING_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "verbs/base/event_loop.h"
#include "verbs/device.h"
#include "verbs/soft/shm/link.h"
#include "verbs/soft/shm/message_format.h"

namespace viaduct::verbs::shm {

class ShmIncoming final : public IncomingConnection {
 public:
  ShmIncoming(EventLoop& loop, std::shared_ptr<ShmLink> link, const Address& from,
              const RequestBody& body, std::vector<uint8_t> note,
              std::vector<uint8_t> private_data);
  ~ShmIncoming() override;

  const Address& peer_address() const override { return from_; }
  uint16_t peer_port() const override { return body_.from_port; }
  absl::Span<const uint8_t> private_data() const override { return private_data_; }
  absl::Status Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) override;
  void Reject(absl::Span<const uint8_t> private_data) override;
  void Refuse() override;
  absl::Status HandOff(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline) override;
  absl::Span<const uint8_t> note() const override { return note_; }

 private:
  void TurnDown(MessageType type, absl::Span<const uint8_t> private_data);

  EventLoop& loop_;
  const std::shared_ptr<ShmLink> link_;
  const Address from_;
  const RequestBody body_;
  const std::vector<uint8_t> note_;
  const std::vector<uint8_t> private_data_;
  bool decided_ = false;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_INCOMING_H_
