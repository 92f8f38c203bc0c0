#include "dat/core/connection_manager.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "dat/core/endpoint.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/probes.h"
#include "verbs/base/log.h"
#include "verbs/base/per_process.h"
#include "verbs/base/settings.h"
#include "verbs/open_device.h"

namespace viaduct::core {
namespace {

using verbs::MutexLock;

// At most so many requests are held for the next point of a lingering service.
constexpr size_t kMostHeld = 256;

// The devices that are open in this process, by address and name. A forked child begins with none,
// since the devices that it inherits are dead.
struct Registry {
  verbs::Mutex lock;
  std::map<std::pair<std::string, std::string>, std::weak_ptr<ConnectionManager>> managers
      ABSL_GUARDED_BY(lock);
};

}  // namespace

// A listener and the way from its requests to the manager.
class ConnectionManager::Port final : private verbs::ListenerSink {
 public:
  static absl::StatusOr<std::shared_ptr<Port>> Open(ConnectionManager& manager, uint16_t port) {
    auto opened = std::make_shared<Port>(manager);
    opened->number_ = port;  // a request may come before Listen returns
    auto listener = manager.context_->Listen(port, opened.get());
    if (!listener.ok()) return listener.status();
    opened->listener_ = *std::move(listener);
    opened->number_ = opened->listener_->port();
    return opened;
  }
  explicit Port(ConnectionManager& manager) : manager_(manager) {}
  ~Port() {
    if (listener_ == nullptr) return;  // the port was never open
    listener_.reset();
    manager_.OnClosed(number_);
  }
  uint16_t number() const { return number_; }

 private:
  void OnRequest(std::unique_ptr<verbs::IncomingConnection> incoming) override {
    manager_.OnRequest(number_, std::move(incoming));
  }
  bool TakesHandOff(absl::Span<const uint8_t> note) override {
    const std::optional<ServiceName> name = ParseTrailer(note);
    if (!name.has_value()) return false;
    const std::optional<LineNote> line = ParseLineNote(note);
    return line.has_value() ? manager_.TakesFromLine(*name, *line) : manager_.Serves(*name);
  }

  ConnectionManager& manager_;
  std::atomic<uint16_t> number_{0};
  std::unique_ptr<verbs::Listener> listener_;
};

Error ConnectionManager::Get(const verbs::Address& address, const std::string& device_name,
                             std::shared_ptr<ConnectionManager>* out) {
  auto& registry = verbs::PerProcess<Registry>::Get();
  MutexLock lock(&registry.lock);
  std::weak_ptr<ConnectionManager>& known = registry.managers[{address.ToString(), device_name}];
  *out = known.lock();
  if (*out != nullptr) return Ok();
  auto context = verbs::OpenDevice(address, device_name);
  if (!context.ok()) {
    verbs::Log(verbs::LogLevel::kError, "cannot open an adapter at ", address.ToString(), ": ",
               context.status().message());
    return absl::IsNotFound(context.status()) ? Error(Code::kNotFound) : OutOf(Resource::kDevice);
  }
  const verbs::DeviceAttributes& device = (*context)->attributes();
  verbs::Log(verbs::LogLevel::kInfo, "adapter at ", address.ToString(), " uses device ",
             device.device, ": ", device.reason);
  Ports ports;
  ports.base = static_cast<uint16_t>(verbs::NumberSetting(verbs::SettingId::kPortBase));
  ports.range = static_cast<uint16_t>(verbs::NumberSetting(verbs::SettingId::kPortCount));
  ports.claim_names = true;
  *out = std::make_shared<ConnectionManager>(*std::move(context), ports);
  known = *out;
  return Ok();
}

ConnectionManager::ConnectionManager(std::unique_ptr<verbs::Context> context, Ports ports)
    : context_(std::move(context)), ports_(ports) {}

ConnectionManager::~ConnectionManager() {
  Services ended;
  {
    MutexLock lock(&lock_);
    std::swap(ended, services_);
    for (auto& [name, service] : ended) CancelTimers(service);
  }
  // A task that is running there finds no service. After the drain it has also ended any port of
  // which it was the last owner.
  context_->executor().Drain();
  for (auto& [name, service] : ended) {
    for (Arrival& arrival : service.held) arrival.incoming->Refuse();  // needs no memory
  }
}

// ---------------------------------------------------------------------- who serves what

absl::Status ConnectionManager::OpenPort(uint16_t number, std::shared_ptr<Port>* port) {
  if (auto known = open_ports_.find(number); known != open_ports_.end()) {
    if (std::shared_ptr<Port> open = known->second.lock()) {
      *port = std::move(open);
      return absl::OkStatus();
    }
    return absl::AbortedError("the port is being closed");
  }
  auto opened = Port::Open(*this, number);
  if (!opened.ok()) return opened.status();
  *port = *std::move(opened);
  open_ports_[(*port)->number()] = *port;
  return absl::OkStatus();
}

Error ConnectionManager::OpenFirst(const std::vector<uint16_t>& ports, std::vector<uint16_t>* ahead,
                                   std::shared_ptr<Port>* port, bool* closing) {
  Error why = Code::kConnQualInUse;
  ahead->clear();
  for (uint16_t number : ports) {
    const absl::Status opened = OpenPort(number, port);
    if (opened.ok()) return Ok();
    *closing = absl::IsAborted(opened);
    if (*closing) break;
    if (absl::IsResourceExhausted(opened)) {
      why = OutOf(Resource::kDevice);
    } else if (!absl::IsAlreadyExists(opened)) {
      why = Code::kConnQualUnavailable;
    }
    ahead->push_back(number);
  }
  return why;
}

Error ConnectionManager::RetryWhileClosing(absl::FunctionRef<Error(bool* closing)> attempt) {
  for (;;) {
    bool closing = false;
    const Error error = attempt(&closing);
    if (!closing) return error;
    context_->executor().Drain();  // the thread that closes the port waits for the executor, too
  }
}

void ConnectionManager::OnClosed(uint16_t number) {
  MutexLock lock(&lock_);
  const auto closed = open_ports_.find(number);
  // Whoever asked for any free port may have got this very port meanwhile: then it is not expired.
  if (closed != open_ports_.end() && closed->second.expired()) open_ports_.erase(closed);
}

Error ConnectionManager::ClaimName(const ServicePoint::Options& options,
                                   std::optional<verbs::NameClaim>* claim) {
  if (!ports_.claim_names || options.shared || options.name.direct_port().has_value()) return Ok();
  auto taken = verbs::NameClaim::Take(options.name.bytes());
  if (absl::IsPermissionDenied(taken.status())) {
    // Another process may serve the same name, too: it then takes the next port.
    verbs::LogOnce(verbs::LogLevel::kWarn,
                   absl::StrCat("names of services are not claimed: ", taken.status().message()));
    return Ok();
  }
  if (!taken.ok()) {
    return absl::IsAlreadyExists(taken.status()) ? Error(Code::kConnQualInUse)
                                                 : OutOf(Resource::kDevice);
  }
  claim->emplace(*std::move(taken));
  return Ok();
}

Error ConnectionManager::OpenService(ServicePoint& point, const std::vector<uint16_t>& ports,
                                     std::vector<uint16_t>* ahead, std::shared_ptr<Port>* port,
                                     bool* closing) {
  Service service;
  if (Error error = ClaimName(point.options(), &service.claim); !error.ok()) return error;
  if (Error error = OpenFirst(ports, ahead, port, closing); !error.ok()) {
    if (error.code == Code::kConnQualInUse && service.claim.has_value() && !*closing) {
      verbs::Log(verbs::LogLevel::kWarn, "service ", point.options().name.ToString(), ": all ",
                 ports.size(), " ports that it is hashed to are taken by others; there are more ",
                 "with a lower VIADUCT_PORT_BASE and a higher VIADUCT_PORT_COUNT");
    }
    return error;
  }
  service.serial = ++last_serial_;
  service.port = *port;
  service.place = ahead->size();
  service.points.push_back(&point);
  const ServiceName& name = point.options().name;
  Service& entered = services_[name] = std::move(service);
  // If there is no memory for the timer, this throws, and the point can be withdrawn.
  if (entered.place != 0 && point.options().shared) MoveUpLater(name, entered);
  return Ok();
}

Error ConnectionManager::Serve(ServicePoint& point) {
  if (point.options().shared) return JoinLine(point);
  std::vector<uint16_t> ahead;
  return ServeAt(point, PortsOf(point.options().name), &ahead);
}

Error ConnectionManager::ServeAt(ServicePoint& point, const std::vector<uint16_t>& ports,
                                 std::vector<uint16_t>* ahead) {
  return RetryWhileClosing(
      [&](bool* closing) { return TryToServeAt(point, ports, ahead, closing); });
}

Error ConnectionManager::TryToServeAt(ServicePoint& point, const std::vector<uint16_t>& ports,
                                      std::vector<uint16_t>* ahead, bool* closing) {
  const ServicePoint::Options& options = point.options();
  std::shared_ptr<Port> port, left;  // all outside the lock
  Ref<ServicePoint> spent;
  std::deque<Arrival> too_many;
  Delivery why = Delivery::kFull;
  {
    MutexLock lock(&lock_);
    auto known = services_.find(options.name);
    if (known == services_.end()) return OpenService(point, ports, ahead, &port, closing);
    Service& service = known->second;
    for (ServicePoint* other : service.points) {
      if (!options.shared || !other->options().shared) return Code::kConnQualInUse;
    }
    if (service.points.empty()) {  // it lingers
      // Another process is at the name's own port, where a point that does not share the name
      // belongs.
      if (!options.shared && service.place != 0 && options.name.direct_port().has_value()) {
        return Code::kConnQualInUse;
      }
      if (Error error = ClaimName(options, &service.claim); !error.ok()) return error;
    }
    const auto first_later = std::find_if(
        service.points.begin(), service.points.end(),
        [&](const ServicePoint* other) { return options.since < other->options().since; });
    service.points.insert(first_later, &point);
    while (!service.held.empty() && DeliverTo(service, &service.held.front(), &spent)) {
      service.held.pop_front();
      if (service.points.empty()) break;
    }
    // If the name is not shared, no other point will come for the held requests.
    if (!options.shared) std::swap(too_many, service.held);
    if (service.points.empty()) {
      why = Delivery::kNobody;
      left = LingerOrRemove(known, options.shared);
    }
  }
  for (Arrival& arrival : too_many) TurnAway(std::move(arrival), why);
  if (spent) spent->Destroy();
  return Ok();
}

Error ConnectionManager::ServeAny(ServicePoint& point, uint64_t* qualifier) {
  std::shared_ptr<Port> port, named;  // outside the lock
  MutexLock lock(&lock_);
  for (;;) {
    const absl::Status opened = OpenPort(0, &port);
    if (absl::IsResourceExhausted(opened)) return OutOf(Resource::kDevice);
    if (!opened.ok()) return Code::kConnQualUnavailable;
    *qualifier = port->number();
    point.options_.name = ServiceName::FromQualifier(*qualifier);
    if (!services_.contains(point.options_.name)) break;
    if (named != nullptr) return Code::kConnQualUnavailable;
    named = std::move(port);  // a waiter in a line has this name: hold the port, try another
  }
  Service& service = services_[point.options_.name];
  service.serial = ++last_serial_;
  service.port = port;
  service.points.push_back(&point);
  return Ok();
}

bool ConnectionManager::Withdraw(ServicePoint& point) {
  std::shared_ptr<Port> closing;  // outside the lock: it waits for a request being delivered
  MutexLock lock(&lock_);
  auto service = services_.find(point.options().name);
  if (service == services_.end()) return false;
  std::deque<ServicePoint*>& points = service->second.points;
  auto place = std::find(points.begin(), points.end(), &point);
  if (place == points.end()) return false;
  points.erase(place);
  if (!points.empty()) return true;
  const verbs::Nanos waited = context_->executor().Now() - point.options().since;
  service->second.linger = waited < kShortWait ? kShortWaitLinger : kLinger;
  closing = LingerOrRemove(service, point.options().shared);
  return true;
}

verbs::Nanos ConnectionManager::LingersUntil(const Service& service) const {
  return context_->executor().Now() +
         std::max(service.linger, context_->attributes().listener_rest);
}

std::shared_ptr<ConnectionManager::Port> ConnectionManager::LingerOrRemove(
    Services::iterator service, bool shared) {
  Service& left = service->second;
  if (shared) {
    left.lingers_until = LingersUntil(left);
    if (left.timer != 0) {
      // A timer task that is running already checks lingers_until itself when it gets the lock.
      if (left.timer_at <= left.lingers_until || !context_->executor().Cancel(left.timer)) {
        return nullptr;
      }
      left.timer = 0;
    }
    try {
      LingerLater(service->first, left);
      return nullptr;
    } catch (const std::bad_alloc&) {  // an end must not need memory: so it does not linger
    }
  }
  CancelTimers(left);
  std::shared_ptr<Port> port = std::move(left.port);
  services_.erase(service);
  return port;
}

void ConnectionManager::LingerLater(const ServiceName& name, Service& service) {
  service.timer = context_->executor().RunAt(
      service.lingers_until, [this, name, serial = service.serial] { OnLingered(name, serial); });
  service.timer_at = service.lingers_until;
}

void ConnectionManager::CancelTimers(const Service& service) {
  for (const verbs::Executor::TimerId timer : {service.timer, service.move_up_timer}) {
    if (timer != 0) context_->executor().Cancel(timer);
  }
}

void ConnectionManager::OnLingered(const ServiceName& name, uint64_t serial) {
  Service ended;
  {
    MutexLock lock(&lock_);
    auto found = services_.find(name);
    if (found == services_.end() || found->second.serial != serial) return;
    Service& service = found->second;
    service.timer = 0;
    if (!service.points.empty()) return;
    const verbs::Nanos now = context_->executor().Now();
    if (service.passing != 0) service.lingers_until = now + kLinger;
    if (service.lingers_until > now) {
      LingerLater(name, service);
      return;
    }
    CancelTimers(service);
    ended = std::move(service);
    services_.erase(found);
  }
  for (Arrival& arrival : ended.held) TurnAway(std::move(arrival), Delivery::kNobody);
}

// ------------------------------------------------------------------------ what arrives

void ConnectionManager::OnRequest(uint16_t port,
                                  std::unique_ptr<verbs::IncomingConnection> incoming) {
  Arrival arrival;
  absl::Span<const uint8_t> data = incoming->private_data();
  size_t size = 0;
  arrival.header = ParseHeader(data, &size);
  arrival.incoming = std::move(incoming);
  bool known = true;
  if (arrival.header.has_value()) {
    known = arrival.header->kind == HeaderKind::kDatRequest ||
            arrival.header->kind == HeaderKind::kViplRequest;
    arrival.name = arrival.header->remote;
  } else {
    arrival.name = ServiceName::FromQualifier(port);
  }
  if (arrival.header.has_value() && arrival.header->kind == HeaderKind::kViplPeerRequest &&
      OfferToPeers(&arrival)) {
    return;
  }
  const absl::Span<const uint8_t> note = arrival.incoming->note();
  if (!note.empty()) {
    std::optional<ServiceName> handed_off_to = ParseTrailer(note);
    known = known && handed_off_to.has_value();
    arrival.name = handed_off_to.value_or(ServiceName());
    // Within a line the name is the one that was asked for.
    arrival.redirected = !ParseLineNote(note).has_value();
  }
  if (!arrival.header.has_value() || arrival.header->kind == HeaderKind::kDatRequest) {
    absl::Span<const uint8_t> consumers = data.subspan(size);
    arrival.private_data.assign(consumers.begin(), consumers.end());
  }
  const Delivery delivery =
      known ? Deliver(&arrival, /*may_wait=*/note.empty()) : Delivery::kNobody;
  if (delivery == Delivery::kTaken) return;
  verbs::Log(verbs::LogLevel::kDebug, "nobody takes a request for ", arrival.name.ToString(),
             " on port ", port);
  TurnAway(std::move(arrival), delivery);
}

bool ConnectionManager::IsOpen(uint16_t port) const {
  const auto known = open_ports_.find(port);
  return known != open_ports_.end() && !known->second.expired();
}

bool ConnectionManager::OthersServe(const ServiceName& name) {
  for (uint16_t port : PortsOf(name)) {
    if (!IsOpen(port) && context_->IsServed(port)) return true;
  }
  return false;
}

bool ConnectionManager::Serves(const ServiceName& name) {
  MutexLock lock(&lock_);
  auto found = services_.find(name);
  return found != services_.end() && !found->second.points.empty();
}

Error ConnectionManager::HandOff(verbs::IncomingConnection& incoming, const ServiceName& name) {
  std::vector<uint16_t> served = PortsOf(name);
  std::erase_if(served, [this](uint16_t port) { return !context_->IsServed(port); });
  if (served.empty()) served = PortsOf(name);  // without free descriptors no port looks served
  const auto answer = verbs::Deadline::After(context_->executor(), kLongestAnswer);
  const absl::Status status = HandToFirst(incoming, served, EncodeTrailer(name), answer);
  if (status.ok()) return Ok();
  return absl::IsResourceExhausted(status) ? OutOf(Resource::kDevice) : InvalidParameter(2);
}

absl::Status ConnectionManager::HandToFirst(verbs::IncomingConnection& incoming,
                                            absl::Span<const uint16_t> ports,
                                            absl::Span<const uint8_t> note,
                                            verbs::Deadline answer) {
  absl::Status status = absl::NotFoundError("nobody takes it");
  for (size_t i = 0; i < ports.size(); ++i) {
    // A process that answers does so at once. One that is stopped uses up only half of the time
    // that is left, so that the others get the rest.
    const verbs::Nanos now = context_->executor().Now();
    const verbs::Nanos left = std::max<verbs::Nanos>(answer.at() - now, 0);
    const verbs::Nanos share = i + 1 == ports.size() ? left : left / 2;
    absl::Status handed = incoming.HandOff(ports[i], note, verbs::Deadline::At(now + share));
    if (handed.ok()) return handed;
    if (absl::IsResourceExhausted(handed)) status = std::move(handed);
  }
  return status;
}

void ConnectionManager::TurnAway(Arrival arrival, Delivery why) {
  if (!arrival.header.has_value()) {
    arrival.incoming->Refuse();
    return;
  }
  ConnectionHeader answer;
  answer.kind = why == Delivery::kFull ? HeaderKind::kBusy : HeaderKind::kNotMine;
  arrival.incoming->Reject(EncodeHeader(answer));
}

ConnectionManager::Delivery ConnectionManager::Deliver(Arrival* arrival, bool may_wait) {
  // A reserved point ends with its request, outside the lock. The manager may end with it, so the
  // port must be destroyed first: it is declared later.
  Ref<ServicePoint> spent;
  std::shared_ptr<Port> closing;  // outside the lock: off the executor its destruction waits
  {
    MutexLock lock(&lock_);
    auto found = services_.find(arrival->name);
    if (found == services_.end()) return Delivery::kNobody;
    Service& service = found->second;
    if (service.points.empty()) {  // it lingers
      if (!may_wait) return Delivery::kNobody;
      if (service.passing == 0 && OthersServe(arrival->name)) return Delivery::kNobody;
      if (service.held.size() >= kMostHeld) return Delivery::kFull;
      service.held.push_back(std::move(*arrival));
      return Delivery::kTaken;
    }
    const bool shared = service.points.front()->options().shared;
    if (!DeliverTo(service, arrival, &spent)) return Delivery::kFull;
    if (service.points.empty()) closing = LingerOrRemove(found, shared);
  }
  if (spent) spent->Destroy();
  return Delivery::kTaken;
}

bool ConnectionManager::DeliverTo(Service& service, Arrival* arrival, Ref<ServicePoint>* spent) {
  auto taker = service.points.begin();
  while (taker != service.points.end() && !Offer(**taker, arrival)) ++taker;
  if (taker == service.points.end()) return false;
  if (!(*taker)->options().one_shot) return true;
  service.linger = kLinger;
  if ((*taker)->type() == ObjectType::kReservedServicePoint) {
    *spent = Ref<ServicePoint>::Share(*taker);
  }
  service.points.erase(taker);
  return true;
}

bool ConnectionManager::Offer(ServicePoint& point, Arrival* arrival) {
  Ref<Endpoint> endpoint = point.endpoint();
  const bool provided = point.options().provider_endpoint;
  if (provided && !Endpoint::CreateTentative(*point.adapter_, &endpoint).ok()) return false;
  absl::Cleanup destroy_provided = [&] {
    if (provided) endpoint->Destroy();
  };
  // The object takes over the request, which is taken back from it if the backlog is full.
  auto request = Ref<ConnectionRequest>::Adopt(
      new ConnectionRequest(*point.adapter_, std::move(*arrival), endpoint));
  Event event;
  event.type = EventType::kConnectionRequest;
  event.qualifier = request->name().qualifier().value_or(0);
  bool reserved = point.type() == ObjectType::kReservedServicePoint;
  if (!reserved) event.service_point = point.handle();
  bool taken = false;
  try {
    taken = point.adapter_->AddChild(request.get()).ok();
  } catch (const std::bad_alloc&) {  // taken back, too: it must not end under the manager's lock
  }
  if (taken) {
    if (endpoint) endpoint->TakeRequest(*request);
    event.subject = request->handle();
    taken = point.dispatcher_->Post(event).ok();
    ProbeRequest(point.handle(), event.qualifier, taken);
    if (!taken && reserved) endpoint->ReturnRequest();
  }
  if (taken) {
    std::move(destroy_provided).Cancel();
    point.adapter_->CountConnection(AdapterCount::kRequestsReceived);
    return true;
  }
  {
    MutexLock lock(&request->lock_);
    *arrival = std::move(request->arrival_);
  }
  request->Finish();
  return arrival->incoming == nullptr;  // the request has ended with the adapter meanwhile
}

}  // namespace viaduct::core
