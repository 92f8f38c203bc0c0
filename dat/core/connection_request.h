// ConnectionRequest: DAT's CR, the connection handle of VipConnectWait.
#ifndef VIADUCT_DAT_CORE_CONNECTION_REQUEST_H_
#define VIADUCT_DAT_CORE_CONNECTION_REQUEST_H_

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/types/span.h"
#include "dat/core/connection_header.h"
#include "dat/core/endpoint.h"
#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/service_name.h"
#include "dat/core/service_point.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class InterfaceAdapter;

// A request as it came from the device, without its engine header.
struct Arrival {
  std::unique_ptr<verbs::IncomingConnection> incoming;
  ServiceName name;
  std::optional<ConnectionHeader> header;
  std::vector<uint8_t> private_data;  // the consumer's; empty if VIPL sent the request
  bool redirected = false;
};

class ConnectionRequest final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kConnectionRequest;

  // Exactly one of these ends the request. Each kills the handle if it succeeds, and has no effect
  // at all if it fails.

  // `endpoint` null: the request's own (RSP, provider's). kInvalidHandle: an endpoint was given
  // although the request has its own, or none although it has none. kInvalidState by the endpoint's
  // table, or if its zone or connect dispatcher is missing; kInvalidParameter(3): private data too
  // long. kInsufficientResources: if the device has refused the requester, every later Accept is
  // kTimeout. The outcome is an event of the endpoint: kEstablished or kAcceptCompletionError.
  Error Accept(Endpoint* endpoint, absl::Span<const uint8_t> private_data);
  // The same for a consumer (VIPL) that keeps the handle until it knows the outcome, and then calls
  // EndAccept. Until then nobody can end the request: kInvalidHandle.
  Error BeginAccept(Endpoint* endpoint, absl::Span<const uint8_t> private_data);
  // Established: the handle is dead. Otherwise the requester has gone: from now on every Accept is
  // kTimeout, and Reject kills the handle.
  void EndAccept(bool established);
  Error Reject(absl::Span<const uint8_t> private_data);
  // Passes the request to the service point of `name` on this adapter, in this or another process
  // of the host and user; the requester's connection then counts as made to `name`.
  Error HandOff(const ServiceName& name);
  // Passes the request to another process of the host and user where somebody has waited for the
  // name longer than `waiter`. True: the request has ended here. Blocks; not on the executor.
  bool PassToEarlierWaiter(const ServicePoint::Options& waiter);

  InterfaceAdapter& adapter() const { return *adapter_; }
  const verbs::Address& remote_address() const { return remote_address_; }
  uint16_t remote_port() const { return remote_port_; }
  const ServiceName& name() const { return arrival_.name; }
  // The consumer's private data, without the engine's header; empty if VIPL sent the request.
  absl::Span<const uint8_t> private_data() const { return arrival_.private_data; }
  // The requester's engine header; null if it sent none (DAT or rdma_cm on a direct port).
  const std::optional<ConnectionHeader>& header() const { return arrival_.header; }
  const Ref<Endpoint>& endpoint() const { return endpoint_; }  // its own, if it has one

  // Ends the request without a decision of the consumer: the requester sees a refusal.
  void Destroy() override;

 private:
  friend class ConnectionManager;
  friend class Endpoint;
  ConnectionRequest(InterfaceAdapter& adapter, Arrival arrival, Ref<Endpoint> endpoint);
  ~ConnectionRequest() override;
  // Kills the handle: nobody else can end the request.
  void Finish();
  void GiveEndpointBack();
  void SendReject(absl::Span<const uint8_t> private_data) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  const Ref<InterfaceAdapter> adapter_;
  const Ref<Endpoint> endpoint_;
  const verbs::Address remote_address_;
  const uint16_t remote_port_;
  verbs::Mutex lock_;  // before the endpoint's
  // `incoming` is null once the request has ended.
  Arrival arrival_;
  bool lapsed_ ABSL_GUARDED_BY(lock_) = false;  // EndAccept: the requester has gone
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECTION_REQUEST_H_
