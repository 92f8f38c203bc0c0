// Listeners, and connection requests that nobody has decided yet.
#ifndef VIADUCT_VERBS_RDMA_LISTENER_H_
#define VIADUCT_VERBS_RDMA_LISTENER_H_

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "verbs/base/clock.h"
#include "verbs/base/errand.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/rdma/connection.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/siw_listening.h"

namespace viaduct::verbs::rdma {

// The ports at which this context listens, for IsServed.
class ServedPorts {
 public:
  bool Add(uint16_t port);  // false: no memory
  void Remove(uint16_t port);
  bool Has(uint16_t port);

 private:
  Mutex mutex_;
  std::unordered_map<uint16_t, int> ports_ ABSL_GUARDED_BY(mutex_);
};

// A program's listener. Over siw it listens at the same port again if the kernel has lost it there.
class RdmaListener final : public Listener, public CmHandler {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Make(Device& device, ServedPorts& served,
                                                        const Address& address, uint16_t port,
                                                        ListenerSink* sink);
  ~RdmaListener() override;
  uint16_t port() const override { return port_; }
  void OnCmEvent(const CmEvent& event) override;

 private:
  RdmaListener(Device& device, ServedPorts& served, const Address& address, ListenerSink* sink)
      : device_(device), served_(served), address_(address), sink_(sink) {}
  // Makes the id and listens at `port`. False: errno says why not, and there is no id.
  bool Open(uint16_t port);
  bool OpenAnywhere();  // the same at a free port
  bool Serve();         // listens where it is bound; false: errno says why not
  void Shut();          // destroys the id, if there is one
  void LookIn(Nanos interval);
  // ---- control thread
  void Look();
  void LookNoMore();
  // Listens at the same port again, as siw makes necessary. Requests that have come stay.
  void ListenAnew(absl::string_view why);
  void Close();
  void Delete();

  Device& device_;
  ServedPorts& served_;
  const Address address_;
  ListenerSink* const sink_;
  std::atomic<bool> made_{false};  // until then the control thread leaves it alone
  uint16_t port_ = 0;
  // After Make only the control thread uses these.
  rdma_cm_id* id_ = nullptr;  // null: it could not listen anew, and tries again
  SiwListening siw_;
  Mutex look_mutex_;
  Executor::TimerId look_ ABSL_GUARDED_BY(look_mutex_) = 0;  // 0: none is due
  Errand<&RdmaListener::Delete, RdmaListener*> deletion_errand_;
};

class RdmaRequest final : public IncomingConnection {
 public:
  RdmaRequest(Device& device, const CmEvent& event);
  ~RdmaRequest() override { Refuse(); }

  const Address& peer_address() const override { return peer_; }
  uint16_t peer_port() const override { return peer_port_; }
  absl::Span<const uint8_t> private_data() const override { return private_data_; }
  absl::Status Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) override;
  void Reject(absl::Span<const uint8_t> private_data) override;
  void Refuse() override;
  absl::Status HandOff(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline) override;
  absl::Span<const uint8_t> note() const override { return {}; }

 private:
  void Close();

  Connection* connection_;  // null: decided
  Address peer_;
  uint16_t peer_port_ = 0;
  const uint8_t responder_resources_;
  const uint8_t initiator_depth_;
  std::vector<uint8_t> private_data_;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_LISTENER_H_
