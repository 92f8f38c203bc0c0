// What the engine's tests are written with: processes of a simulation, ends of connections, and
// everything that an end hears, as words.
#ifndef VIADUCT_TESTS_SIM_ENGINE_H_
#define VIADUCT_TESTS_SIM_ENGINE_H_

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "dat/core/connection_manager.h"
#include "dat/core/connection_request.h"
#include "dat/core/endpoint.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/memory_region.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_point.h"
#include "gtest/gtest.h"
#include "verbs/device.h"
#include "verbs/sim/sim_executor.h"
#include "verbs/sim/simulation.h"

namespace viaduct::core {

inline constexpr verbs::Nanos kMilli = 1'000'000;
inline constexpr verbs::Nanos kSecond = 1'000 * kMilli;

using Words = std::vector<std::string>;

absl::Span<const uint8_t> Bytes(const std::string& text);
std::string Text(absl::Span<const uint8_t> bytes);
// A name of 1024..65535, and one that is hashed to sixteen ports.
inline ServiceName Direct() { return ServiceName::FromQualifier(5000); }
inline ServiceName Hashed() { return ServiceName::FromQualifier(uint64_t{1} << 40); }

// "established hello", "7 flushed", "disconnected".
std::string Word(const Event& event);

// One process: an adapter on a device of its own, and a dispatcher for requests.
class Node {
 public:
  explicit Node(verbs::Simulation& simulation);
  // Closes the adapter abruptly, unless the test did; then nothing of the process may be left.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  verbs::Context& context() { return adapter_->context(); }
  const verbs::Address& address() { return context().address(); }
  InterfaceAdapter& adapter() { return *adapter_; }
  ConnectionManager& manager() { return adapter_->connections(); }
  ProtectionZone& zone() { return *zone_; }
  EventDispatcher& requests() { return *requests_; }

  Ref<EventDispatcher> MakeDispatcher(uint32_t length = 64, bool eager = false);
  Ref<ServicePoint> Listen(const ServicePoint::Options& options);
  Ref<ServicePoint> Listen(const ServiceName& name);
  // The oldest request that has arrived; null if there is none.
  Ref<ConnectionRequest> NextRequest(Event* event = nullptr);

 private:
  std::weak_ptr<ConnectionManager> remains_;
  Ref<InterfaceAdapter> adapter_;
  Ref<ProtectionZone> zone_;
  Ref<EventDispatcher> requests_;
};

// An endpoint with one dispatcher for all of its streams, and a little memory.
class End {
 public:
  explicit End(Node& node, const EndpointAttributes& attributes = {});
  ~End();  // destroys the endpoint, whatever its state

  Endpoint& operator*() const { return *endpoint_; }
  Endpoint* operator->() const { return endpoint_.get(); }
  EventDispatcher& events() { return *events_; }
  Endpoint::Parts Parts() const;

  Error Connect(Node& to, const ServiceName& name, const std::string& data = "",
                verbs::Deadline deadline = verbs::Deadline::Infinite(), verbs::Nanos grace = 0);
  // Connects as VipConnectRequest does.
  Error ConnectVipl(Node& to, const ServiceName& name, verbs::Nanos grace,
                    verbs::Deadline deadline = verbs::Deadline::Infinite());
  Error Send(uint64_t id, uint16_t flags = 0);
  Error Receive(uint64_t id);

  bool Heard() { return events_->Queued() != 0; }
  // What the end has heard since the last call.
  Words Listen();

 private:
  Node& node_;
  Ref<EventDispatcher> events_;
  std::array<uint8_t, 64> memory_ = {};
  Ref<MemoryRegion> region_;
  Ref<Endpoint> endpoint_;
};

class EngineTest : public testing::Test {
 protected:
  explicit EngineTest(const verbs::SimOptions& options = {});
  ~EngineTest() override;

  verbs::SimExecutor& executor() { return simulation_.executor(); }
  verbs::Nanos Now() { return executor().Now(); }
  verbs::Deadline In(verbs::Nanos duration) { return verbs::Deadline::After(executor(), duration); }
  void RunFor(verbs::Nanos duration);
  // Fails the test if `done` is not true within ten seconds of virtual time.
  void RunUntil(absl::FunctionRef<bool()> done);
  // Runs until a request has arrived at `node`, and returns it.
  Ref<ConnectionRequest> AwaitRequest(Node& node);
  // Connects `active` to `passive`, and takes the events that both hear of it.
  void Join(End& active, Node& to, End& passive, const ServiceName& name = Direct());
  // The times at which requests of `from` were delivered, in whole milliseconds.
  std::vector<verbs::Nanos> RequestTimes(int from);

 private:
  const size_t handles_;

 protected:
  verbs::Simulation simulation_;
  std::unique_ptr<Node> a_;
  std::unique_ptr<Node> b_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_TESTS_SIM_ENGINE_H_
