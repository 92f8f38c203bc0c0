#include "dat/core/service_point.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/core/connection_manager.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {

Error ServicePoint::CreatePublic(InterfaceAdapter& adapter, const Options& options,
                                 EventDispatcher& dispatcher, Ref<ServicePoint>* out) {
  if ((dispatcher.streams() & kRequestStream) == 0) return InvalidParameter(3);
  const ObjectType type = options.common_address.has_value() ? ObjectType::kCommonServicePoint
                                                             : ObjectType::kPublicServicePoint;
  Ref<ServicePoint> point;
  Error error = Make(type, adapter, options, dispatcher, {}, &point);
  return error.ok() ? Publish(std::move(point), nullptr, out) : error;
}

Error ServicePoint::CreatePublicAny(InterfaceAdapter& adapter, const Options& options,
                                    EventDispatcher& dispatcher, uint64_t* qualifier,
                                    Ref<ServicePoint>* out) {
  if ((dispatcher.streams() & kRequestStream) == 0) return InvalidParameter(3);
  Ref<ServicePoint> point;
  Error error = Make(ObjectType::kPublicServicePoint, adapter, options, dispatcher, {}, &point);
  return error.ok() ? Publish(std::move(point), qualifier, out) : error;
}

Error ServicePoint::CreateReserved(InterfaceAdapter& adapter, const ServiceName& name,
                                   Endpoint& endpoint, EventDispatcher& dispatcher,
                                   Ref<ServicePoint>* out) {
  if ((dispatcher.streams() & kRequestStream) == 0) return InvalidParameter(4);
  Options options;
  options.name = name;
  options.one_shot = true;
  Ref<ServicePoint> point;
  Error error = Make(ObjectType::kReservedServicePoint, adapter, options, dispatcher,
                     Ref<Endpoint>::Share(&endpoint), &point);
  if (error.ok()) error = endpoint.Move(EndpointInput::kReserve);
  if (!error.ok()) return error;
  // Also runs if memory runs out below.
  absl::Cleanup unreserve = [&] { (void)endpoint.Move(EndpointInput::kUnreserve); };
  error = Publish(std::move(point), nullptr, out);
  if (error.ok()) std::move(unreserve).Cancel();
  return error;
}

Error ServicePoint::Make(ObjectType type, InterfaceAdapter& adapter, const Options& options,
                         EventDispatcher& dispatcher, Ref<Endpoint> endpoint,
                         Ref<ServicePoint>* out) {
  Use<EventDispatcher> use;
  if (Error error = use.Begin(&dispatcher); !error.ok()) return error;
  *out = Ref<ServicePoint>::Adopt(
      new ServicePoint(type, adapter, options, std::move(use), std::move(endpoint)));
  return Ok();
}

Error ServicePoint::Publish(Ref<ServicePoint> point, uint64_t* any_qualifier,
                            Ref<ServicePoint>* out) {
  InterfaceAdapter& adapter = *point->adapter_;
  if (Error error = adapter.AddChild(point.get()); !error.ok()) return error;
  absl::Cleanup destroy = [&] { point->Destroy(); };
  Error error = any_qualifier != nullptr ? adapter.connections().ServeAny(*point, any_qualifier)
                                         : adapter.connections().Serve(*point);
  if (!error.ok()) return error;
  std::move(destroy).Cancel();
  // Closing the adapter may have destroyed the point before it served. (A point that is already
  // spent has been withdrawn.)
  if (!point->IsPublished()) point->StopServing();
  if (any_qualifier != nullptr) adapter.counts().AddShared(AdapterCount::kAnyPointsMade);
  *out = std::move(point);
  return Ok();
}

bool ServicePoint::IsPublished() const {
  const verbs::EpochGuard guard;
  return HandleTable::Find(handle(), type()) == this;
}

ServicePoint::ServicePoint(ObjectType type, InterfaceAdapter& adapter, const Options& options,
                           Use<EventDispatcher> dispatcher, Ref<Endpoint> endpoint)
    : Object(type),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      options_(options),
      dispatcher_(dispatcher.ref()),
      dispatcher_use_(std::move(dispatcher)),
      endpoint_(std::move(endpoint)) {}

ServicePoint::~ServicePoint() = default;

Error ServicePoint::Free() { return End(); }

void ServicePoint::Destroy() { (void)End(); }

// Once the request has come, it owns the endpoint, which may be reserved for another point by now.
void ServicePoint::StopServing() {
  if (adapter_->connections().Withdraw(*this) && endpoint_) {
    (void)endpoint_->Move(EndpointInput::kUnreserve);
  }
}

Error ServicePoint::End() {
  if (!HandleTable::Erase(handle(), type())) return InvalidHandle(type());
  adapter_->RemoveChild(this);
  StopServing();
  dispatcher_use_.End();  // not before: until then a request may become an event
  DropReference();
  return Ok();
}

}  // namespace viaduct::core
