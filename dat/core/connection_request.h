// ConnectionRequest: DAT's CR, the connection handle of VipConnectWait.
#ifndef VIADUCT_DAT_CORE_CONNECTION_REQUEST_H_
#define VIADUCT_DAT_CORE_CONNECTION_REQUEST_H_

#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "dat/core/connection_header.h"
#include "dat/core/endpoint.h"
#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/service_name.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class InterfaceAdapter;

class ConnectionRequest final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kConnectionRequest;

  // Exactly one of these ends the request; each kills the handle when it succeeds and has no
  // effect at all when it fails.

  // `endpoint` null: the request's own (RSP, provider's). kInvalidHandle: one given although the
  // request has its own, or none although it has not. kInvalidState by the endpoint's table, or
  // when zone or connect dispatcher are missing; kInvalidParameter(3): private data too long.
  // The outcome is an event of the endpoint: kEstablished or kAcceptCompletionError.
  Error Accept(Endpoint* endpoint, absl::Span<const uint8_t> private_data);
  Error Reject(absl::Span<const uint8_t> private_data);
  // To the service point of `name` on this adapter, in this or another process of the host
  // and user; the requester's connection then counts as made to `name`.
  Error HandOff(const ServiceName& name);

  InterfaceAdapter& adapter() const { return *adapter_; }
  const verbs::Address& remote_address() const { return incoming_address_; }
  uint16_t remote_port() const { return remote_port_; }
  const ServiceName& name() const { return name_; }
  // What the consumer may see: the engine's header is taken off; empty if VIPL sent it.
  absl::Span<const uint8_t> private_data() const { return private_data_; }
  // The requester's engine header; null if it sent none (DAT or rdma_cm on a direct port).
  const std::optional<ConnectionHeader>& header() const { return header_; }
  Ref<Endpoint> endpoint() const { return endpoint_; }

  // The requester has given up already: accept will only report it.
  // (Found out at accept; no event.)

 private:
  friend class ConnectionManager;
  ConnectionRequest(InterfaceAdapter& adapter, std::unique_ptr<verbs::IncomingConnection> incoming);
  ~ConnectionRequest() override;

  const Ref<InterfaceAdapter> adapter_;
  verbs::Address incoming_address_;
  uint16_t remote_port_ = 0;
  ServiceName name_;
  std::optional<ConnectionHeader> header_;
  std::vector<uint8_t> private_data_;
  bool redirected_ = false;
  Ref<Endpoint> endpoint_;
  verbs::Mutex lock_;
  std::unique_ptr<verbs::IncomingConnection> incoming_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECTION_REQUEST_H_
