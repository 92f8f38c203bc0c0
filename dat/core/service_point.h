// ServicePoint: where requests for a name arrive. DAT's PSP and CSP (any number of requests) and
// RSP (one request, for one endpoint); VIPL's VipConnectWait is a public point while it waits.
//
// Several points may serve one name, in one or several processes, if all of them are `shared`
// (VIPL): a request goes to the one that has waited longest (waiting_line.cc). Otherwise a name is
// served only once on a host.
#ifndef VIADUCT_DAT_CORE_SERVICE_POINT_H_
#define VIADUCT_DAT_CORE_SERVICE_POINT_H_

#include <optional>

#include "dat/core/endpoint.h"
#include "dat/core/error.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/object.h"
#include "dat/core/service_name.h"
#include "dat/core/use.h"
#include "verbs/base/address.h"

namespace viaduct::core {

class InterfaceAdapter;

class ServicePoint final : public Object {
 public:
  struct Options {
    ServiceName name;
    bool shared = false;    // VIPL: others may serve the same name
    bool one_shot = false;  // serves only one request (RSP, VipConnectWait)
    // Shared: since when and until when the point waits, by the executor's clock.
    verbs::Nanos since = 0;
    verbs::Deadline deadline = verbs::Deadline::Infinite();
    bool provider_endpoint = false;  // DAT_PSP_PROVIDER_FLAG: an endpoint is made per request
    // DAT's CSP: the address that the consumer gave; its port is the name.
    std::optional<sockaddr_storage> common_address;
  };
  // kConnQualInUse, kConnQualUnavailable, kInvalidParameter. The dispatcher must have
  // kRequestStream.
  static Error CreatePublic(InterfaceAdapter& adapter, const Options& options,
                            EventDispatcher& dispatcher, Ref<ServicePoint>* out);
  // Takes a free qualifier of 1024..65535. kConnQualUnavailable.
  static Error CreatePublicAny(InterfaceAdapter& adapter, const Options& options,
                               EventDispatcher& dispatcher, uint64_t* qualifier,
                               Ref<ServicePoint>* out);
  // `endpoint` goes to Reserved (kInvalidState unless Unconnected).
  static Error CreateReserved(InterfaceAdapter& adapter, const ServiceName& name,
                              Endpoint& endpoint, EventDispatcher& dispatcher,
                              Ref<ServicePoint>* out);

  // Later requests find nobody; requests that have become events stay valid. kInvalidHandle unless
  // this call is the one that ends the point: a reserved point also ends with its request.
  Error Free();
  void Destroy() override;

  InterfaceAdapter& adapter() const { return *adapter_; }
  // Once served, the name does not change.
  const Options& options() const { return options_; }
  EventDispatcher& dispatcher() const { return *dispatcher_; }
  const Ref<Endpoint>& endpoint() const { return endpoint_; }  // a reserved point's; else null

 private:
  friend class ConnectionManager;
  ServicePoint(ObjectType type, InterfaceAdapter& adapter, const Options& options,
               Use<EventDispatcher> dispatcher, Ref<Endpoint> endpoint);
  ~ServicePoint() override;
  Error End();               // kInvalidHandle unless this call is the one that ends it
  bool IsPublished() const;  // the handle is still live
  void StopServing();
  // Makes a point that has no handle yet and does not serve.
  static Error Make(ObjectType type, InterfaceAdapter& adapter, const Options& options,
                    EventDispatcher& dispatcher, Ref<Endpoint> endpoint, Ref<ServicePoint>* out);
  static Error Publish(Ref<ServicePoint> point, uint64_t* any_qualifier, Ref<ServicePoint>* out);

  const Ref<InterfaceAdapter> adapter_;
  Options options_;
  const Ref<EventDispatcher> dispatcher_;
  Use<EventDispatcher> dispatcher_use_;  // until the point ends
  const Ref<Endpoint> endpoint_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_SERVICE_POINT_H_
