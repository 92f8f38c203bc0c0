#include "verbs/sim/sim_wire.h"

#include "absl/strings/str_cat.h"
#include "verbs/sim/connection.h"
#include "verbs/soft/context.h"
#include "verbs/soft/queue_pair.h"

namespace viaduct::verbs {
namespace {

constexpr uint16_t kFirstFreePort = 20000;

class SimListener final : public WireListener {
 public:
  SimListener(SimNode& node, uint16_t port, ListenerSink* sink)
      : node_(node), port_(port), sink_(sink) {}
  ~SimListener() override {
    if (started_) node_.listeners.erase(port_);
  }
  uint16_t port() const override { return port_; }
  void Start() override {
    started_ = true;
    node_.listeners[port_] = sink_;
  }

 private:
  SimNode& node_;
  const uint16_t port_;
  ListenerSink* const sink_;
  bool started_ = false;
};

}  // namespace

Link* SimWire::Connect(SoftQueuePair& pair, const ConnectOptions& options) {
  auto connection = std::make_shared<SimConnection>(network_, node_, network_.Find(options.address),
                                                    options.port, pair, options.private_data);
  network_.Add(connection);
  connection->Dial();
  return &connection->active();
}

absl::StatusOr<std::unique_ptr<WireListener>> SimWire::Listen(SoftContext&, uint16_t port,
                                                              ListenerSink* sink) {
  if (port == 0) {
    port = kFirstFreePort;
    while (node_.listeners.contains(port)) ++port;
  }
  if (node_.listeners.contains(port)) {
    return absl::AlreadyExistsError(absl::StrCat("port ", port, " is taken"));
  }
  return std::make_unique<SimListener>(node_, port, sink);
}

}  // namespace viaduct::verbs
