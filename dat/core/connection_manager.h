// ConnectionManager: names to ports, requests to service points. One for each device context.
//
// Threads: calls from any thread; requests of the device come on the executor. Its lock is taken
// before an endpoint's and a dispatcher's.
#ifndef VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_
#define VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_

#include <cstdint>
#include <list>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "dat/core/error.h"
#include "dat/core/object.h"
#include "dat/core/service_name.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class ConnectionRequest;
class ServicePoint;

class ConnectionManager final : private verbs::ListenerSink {
 public:
  struct Ports {
    uint16_t base = 61000;
    uint16_t range = 4536;
  };
  ConnectionManager(std::unique_ptr<verbs::Context> context, Ports ports);
  ~ConnectionManager();

  verbs::Context& context() const { return *context_; }
  std::vector<uint16_t> PortsOf(const ServiceName& name) const {
    return name.Ports(ports_.base, ports_.range);
  }

  // Opens the first free port of the name and serves it there. kConnQualInUse: the name is
  // served and not shared, or all its ports are taken.
  Error Serve(ServicePoint& point);
  // Takes a free direct port for the point, whose name becomes that qualifier.
  Error ServeAny(ServicePoint& point, uint64_t* qualifier);
  // No request reaches `point` after it returned.
  void Withdraw(ServicePoint& point);
  // A request that is moved: to the point that serves `name` here, or to another process.
  Error Deliver(const ServiceName& name, std::unique_ptr<ConnectionRequest> request);

 private:
  struct Port;  // a listener and how many points use it
  void OnRequest(std::unique_ptr<verbs::IncomingConnection> incoming) override;

  const std::unique_ptr<verbs::Context> context_;
  const Ports ports_;
  verbs::Mutex lock_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECTION_MANAGER_H_
