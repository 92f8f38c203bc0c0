#include "dat/core/connection_request.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/core/connection_manager.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::core {

using verbs::MutexLock;

ConnectionRequest::ConnectionRequest(InterfaceAdapter& adapter, Arrival arrival,
                                     Ref<Endpoint> endpoint)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      endpoint_(std::move(endpoint)),
      remote_address_(arrival.incoming->peer_address()),
      remote_port_(arrival.incoming->peer_port()),
      arrival_(std::move(arrival)) {}

ConnectionRequest::~ConnectionRequest() = default;

void ConnectionRequest::Finish() {
  if (!HandleTable::Erase(handle(), kType)) return;
  adapter_->RemoveChild(this);
  DropReference();
}

// A reserved endpoint is the consumer's again; one that was made for this request ends with it.
void ConnectionRequest::GiveEndpointBack() {
  if (!endpoint_) return;
  const bool made_for_this = endpoint_->state() == EndpointState::kTentativePending;
  endpoint_->DropRequest();
  if (made_for_this) endpoint_->Destroy();
}

Error ConnectionRequest::Accept(Endpoint* endpoint, absl::Span<const uint8_t> private_data) {
  const Error error = BeginAccept(endpoint, private_data);
  if (error.ok()) Finish();
  return error;
}

void ConnectionRequest::EndAccept(bool established) {
  if (established) return Finish();
  MutexLock lock(&lock_);
  lapsed_ = true;
}

Error ConnectionRequest::BeginAccept(Endpoint* endpoint, absl::Span<const uint8_t> private_data) {
  if ((endpoint == nullptr) != static_cast<bool>(endpoint_)) return InvalidHandle<Endpoint>();
  if (private_data.size() > adapter_->max_private_data()) return InvalidParameter(3);
  EndpointInput input =
      endpoint == nullptr ? EndpointInput::kAcceptImplicit : EndpointInput::kAcceptExplicit;
  Endpoint& target = endpoint == nullptr ? *endpoint_ : *endpoint;
  if (&target.adapter().context() != &adapter_->context()) return InvalidHandle<Endpoint>();
  std::unique_ptr<verbs::IncomingConnection> decided;  // outside the lock: its end may wait
  {
    MutexLock lock(&lock_);
    if (lapsed_) return Code::kTimeout;
    if (arrival_.incoming == nullptr) return InvalidHandle<ConnectionRequest>();
    std::vector<uint8_t> answer(private_data.begin(), private_data.end());
    if (arrival_.redirected) {
      std::vector<uint8_t> trailer = EncodeTrailer(arrival_.name);
      answer.insert(answer.end(), trailer.begin(), trailer.end());
    }
    Error error = target.BeginAccept(input, *this, answer, *arrival_.incoming);
    if (!error.ok()) return error;
    decided = std::move(arrival_.incoming);
    adapter_->CountConnection(AdapterCount::kAccepted);
  }
  return Ok();
}

void ConnectionRequest::SendReject(absl::Span<const uint8_t> private_data) {
  std::vector<uint8_t> answer;
  if (arrival_.header.has_value()) {
    ConnectionHeader header;
    header.kind = HeaderKind::kReject;
    answer = EncodeHeader(header);
  }
  answer.insert(answer.end(), private_data.begin(), private_data.end());
  arrival_.incoming->Reject(answer);
  adapter_->CountConnection(AdapterCount::kRejected);
}

Error ConnectionRequest::Reject(absl::Span<const uint8_t> private_data) {
  if (private_data.size() > adapter_->max_private_data()) return InvalidParameter(2);
  std::unique_ptr<verbs::IncomingConnection> decided;  // as above
  {
    MutexLock lock(&lock_);
    if (arrival_.incoming != nullptr) {
      SendReject(private_data);
      decided = std::move(arrival_.incoming);
    } else if (!std::exchange(lapsed_, false)) {
      return InvalidHandle<ConnectionRequest>();
    }
  }
  GiveEndpointBack();
  Finish();
  return Ok();
}

Error ConnectionRequest::HandOff(const ServiceName& name) {
  Arrival moved;
  {
    MutexLock lock(&lock_);
    if (arrival_.incoming == nullptr) return InvalidHandle<ConnectionRequest>();
    moved.header = arrival_.header;
    moved.private_data = arrival_.private_data;
    moved.incoming = std::move(arrival_.incoming);
  }
  absl::Cleanup put_back = [&] {
    MutexLock lock(&lock_);
    arrival_.incoming = std::move(moved.incoming);
  };
  moved.name = name;
  moved.redirected = true;
  ConnectionManager& connections = adapter_->connections();
  Error error = Ok();
  switch (connections.Deliver(&moved, /*may_wait=*/false)) {
    case ConnectionManager::Delivery::kTaken:
      break;
    case ConnectionManager::Delivery::kNobody:
      error = connections.HandOff(*moved.incoming, name);
      break;
    case ConnectionManager::Delivery::kFull:
      error = OutOf(Resource::kNone);
      break;
  }
  if (!error.ok()) return error;
  std::move(put_back).Cancel();
  GiveEndpointBack();
  Finish();
  return Ok();
}

bool ConnectionRequest::PassToEarlierWaiter(const ServicePoint::Options& waiter) {
  std::unique_ptr<verbs::IncomingConnection> incoming;
  {
    MutexLock lock(&lock_);
    // A process that was chosen by a hand-off does not pass the request on.
    if (arrival_.redirected) return false;
    incoming = std::move(arrival_.incoming);
  }
  if (incoming == nullptr) return false;
  absl::Cleanup put_back = [&] {
    MutexLock lock(&lock_);
    arrival_.incoming = std::move(incoming);
  };
  if (!adapter_->connections().PassToEarlierWaiter(*incoming, waiter)) return false;
  std::move(put_back).Cancel();
  Finish();
  return true;
}

void ConnectionRequest::Destroy() {
  std::unique_ptr<verbs::IncomingConnection> undecided;  // as above
  {
    MutexLock lock(&lock_);
    undecided = std::move(arrival_.incoming);
  }
  if (undecided != nullptr) undecided->Refuse();
  undecided.reset();
  GiveEndpointBack();
  Finish();
}

}  // namespace viaduct::core
