// A request without a peer, for tests of which process of the host takes it.
#ifndef VIADUCT_DAT_CORE_TESTING_REQUEST_H_
#define VIADUCT_DAT_CORE_TESTING_REQUEST_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "verbs/base/address.h"
#include "verbs/device.h"

namespace viaduct::core {

class TestingRequest final : public verbs::IncomingConnection {
 public:
  // Whether the process at this port takes the request, if it has until `until` to answer.
  using Takes = std::function<bool(uint16_t port, verbs::Deadline until)>;
  TestingRequest(const verbs::Address& address, Takes takes)
      : address_(address), takes_(std::move(takes)) {}
  const verbs::Address& peer_address() const override { return address_; }
  uint16_t peer_port() const override { return 1; }
  absl::Span<const uint8_t> private_data() const override { return {}; }
  absl::Status Accept(verbs::QueuePair&, absl::Span<const uint8_t>) override {
    return absl::ResourceExhaustedError("no pair");
  }
  void Reject(absl::Span<const uint8_t>) override {}
  void Refuse() override {}
  absl::Status HandOff(uint16_t port, absl::Span<const uint8_t>, verbs::Deadline until) override {
    return takes_(port, until) ? absl::OkStatus() : absl::NotFoundError("nobody");
  }
  absl::Span<const uint8_t> note() const override { return {}; }

 private:
  const verbs::Address& address_;
  const Takes takes_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_TESTING_REQUEST_H_
