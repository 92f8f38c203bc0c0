#include "verbs/rdma/listener.h"

#include <arpa/inet.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/queue_pair.h"

namespace viaduct::verbs::rdma {
namespace {

Address AddressOf(const sockaddr* address) {
  return Address::FromSockaddr(address, sizeof(sockaddr_storage)).value_or(Address());
}

// The status that says why nothing listens at the port.
absl::Status RefusalOf(int error, uint16_t port) {
  const std::string what = absl::StrCat("listen at port ", port);
  // From rdma_bind_addr: the host, or its RDMA devices, do not have the address any more.
  if (error == EADDRNOTAVAIL || error == ENODEV) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", std::strerror(error)));
  }
  return ErrnoStatus(error, what);
}

}  // namespace

bool ServedPorts::Add(uint16_t port) {
  MutexLock lock(&mutex_);
  try {
    ++ports_[port];
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ServedPorts::Remove(uint16_t port) {
  MutexLock lock(&mutex_);
  if (--ports_[port] == 0) ports_.erase(port);
}

bool ServedPorts::Has(uint16_t port) {
  MutexLock lock(&mutex_);
  return ports_.contains(port);
}

absl::StatusOr<std::unique_ptr<Listener>> RdmaListener::Make(Device& device, ServedPorts& served,
                                                             const Address& address, uint16_t port,
                                                             ListenerSink* sink) {
  std::unique_ptr<RdmaListener> listener(new RdmaListener(device, served, address, sink));
  // This may run out of memory, so it comes before anything at the device.
  if (device.manager() == Manager::kSiw) listener->LookIn(listener->siw_.interval());
  if (!(port != 0 ? listener->Open(port) : listener->OpenAnywhere())) {
    const int error = errno;
    // It never listened, so no request is under way. Nothing waits here, since the caller may hold
    // what a sink needs; but the control thread may just be telling the listener that the device
    // goes, so that thread deletes it.
    RdmaListener* const failed = listener.release();
    failed->deletion_errand_.Post(device.loop(), failed);
    if (error == EADDRINUSE) {
      LogOnce(LogLevel::kInfo,
              absl::StrCat(device.name(), ": port ", port, " of ", address.ToString(),
                           " is taken; rdma resource show cm_id, or ss -ltnp, may say by whom"));
    }
    return RefusalOf(error, port);
  }
  listener->made_ = true;
  return listener;
}

bool RdmaListener::Open(uint16_t port) {
  if (rdma_create_id(device_.connections(), &id_, static_cast<CmHandler*>(this), RDMA_PS_TCP) !=
      0) {
    id_ = nullptr;
    return false;
  }
  sockaddr_storage at;
  address_.ToSockaddr(port, &at);
  if (rdma_bind_addr(id_, reinterpret_cast<sockaddr*>(&at)) == 0 && Serve()) return true;
  const int error = errno;
  rdma_destroy_id(std::exchange(id_, nullptr));
  errno = error;
  return false;
}

// siw asks TCP for the port that rdma_cm has chosen only when it begins to listen there.
bool RdmaListener::OpenAnywhere() {
  for (int tries = kPortTries; tries > 0; --tries) {
    if (Open(0)) return true;
    if (errno != EADDRINUSE) return false;
    port_ = 0;
  }
  return false;
}

bool RdmaListener::Serve() {
  // A request may come before rdma_listen returns.
  if (port_ == 0) port_ = ntohs(rdma_get_src_port(id_));
  if (!served_.Add(port_)) {
    errno = ENOMEM;
    return false;
  }
  if (rdma_listen(id_, kBacklog) == 0) return true;
  served_.Remove(port_);
  return false;
}

// After its id is destroyed librdmacm reports nothing more for it, and after RunAndWait the control
// thread is not in the middle of a call.
RdmaListener::~RdmaListener() {
  if (made_) device_.loop().RunAndWait([this] { Close(); });
}

// When a listener goes, the kernel answers the requests that are still with it as if a program had
// rejected them. So those that can be read are refused here first.
void RdmaListener::Close() {
  LookNoMore();
  for (const CmEvent& event : device_.TakeEventsOf(*this)) {
    if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) RdmaRequest(device_, event);
  }
  Shut();
}

void RdmaListener::Shut() {
  if (id_ == nullptr) return;
  served_.Remove(port_);
  rdma_destroy_id(std::exchange(id_, nullptr));
}

void RdmaListener::LookNoMore() {
  MutexLock lock(&look_mutex_);
  if (look_ != 0) device_.loop().Cancel(look_);
}

void RdmaListener::LookIn(Nanos interval) {
  MutexLock lock(&look_mutex_);
  look_ = device_.loop().RunAt(device_.loop().Now() + interval, [this] { Look(); });
}

void RdmaListener::Look() {
  {
    MutexLock lock(&look_mutex_);
    look_ = 0;
  }
  if (device_.gone()) return;
  if (!made_) return LookIn(siw_.interval());
  if (id_ == nullptr) {
    if (Open(port_)) {
      Log(LogLevel::kInfo, device_.name(), ": port ", port_, " of ", address_.ToString(),
          " is served again");
    }
  } else if (const SiwListening::Verdict verdict = siw_.Note(UnacceptedAt(address_, port_));
             verdict != SiwListening::Verdict::kWell) {
    ListenAnew(verdict == SiwListening::Verdict::kLost ? "does not listen any more"
                                                       : "does not accept a connection");
  }
  LookIn(id_ != nullptr ? siw_.interval() : kListenerLook);
}

void RdmaListener::ListenAnew(absl::string_view why) {
  device_.ReadAhead();
  Shut();
  const bool listens = Open(port_);
  Log(listens ? LogLevel::kInfo : LogLevel::kError, device_.name(), ": port ", port_, " of ",
      address_.ToString(), ": siw ", why,
      "; to listen anew: ", listens ? "done" : std::strerror(errno));
}

void RdmaListener::Delete() {
  LookNoMore();
  device_.Forget(*this);
  delete this;
}

void RdmaListener::OnCmEvent(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST) {
    siw_.NoteRequest();
    sink_->OnRequest(std::make_unique<RdmaRequest>(device_, event));
  } else if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) {
    Log(LogLevel::kWarn, device_.name(), ": the device is being removed; port ", port_,
        " is served no more");
  }
}

RdmaRequest::RdmaRequest(Device& device, const CmEvent& event)
    : connection_(Connection::ForRequest(device, event.id)),
      peer_(AddressOf(rdma_get_peer_addr(event.id))),
      peer_port_(ntohs(rdma_get_dst_port(event.id))),
      responder_resources_(event.responder_resources),
      initiator_depth_(event.initiator_depth),
      private_data_(event.private_data.begin(), event.private_data.end()) {}

absl::Status RdmaRequest::Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) {
  if (connection_ == nullptr) return absl::FailedPreconditionError("the request is decided");
  absl::Status status = static_cast<RdmaQueuePair&>(pair).Accept(*connection_, responder_resources_,
                                                                 initiator_depth_, private_data);
  if (!absl::IsFailedPrecondition(status)) connection_ = nullptr;
  return status;
}

void RdmaRequest::Reject(absl::Span<const uint8_t> private_data) {
  if (connection_ == nullptr) return;
  rdma_reject(connection_->id(), private_data.data(), static_cast<uint8_t>(private_data.size()));
  Close();
}

void RdmaRequest::Refuse() {
  if (connection_ == nullptr) return;
  connection_->Refuse();
  Close();
}

void RdmaRequest::Close() {
  connection_->Bury();
  connection_ = nullptr;
}

absl::Status RdmaRequest::HandOff(uint16_t /*port*/, absl::Span<const uint8_t> /*note*/,
                                  Deadline /*deadline*/) {
  return absl::NotFoundError("a connection of an RDMA device stays in its process");
}

}  // namespace viaduct::verbs::rdma
