// The opened device, bound to one address of its port.
#ifndef VIADUCT_VERBS_RDMA_CONTEXT_H_
#define VIADUCT_VERBS_RDMA_CONTEXT_H_

#include <memory>

#include "verbs/device.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/listener.h"
#include "verbs/rdma/memory.h"

namespace viaduct::verbs::rdma {

class RdmaContext final : public Context {
 public:
  RdmaContext(Device& device, int port, const Address& address, Nanos spin);
  ~RdmaContext() override;

  const DeviceAttributes& attributes() const override { return attributes_; }
  const Address& address() const override { return address_; }
  Executor& executor() override { return device_.loop(); }
  bool AddFailureSink(FailureSink* sink) override { return device_.AddFailureSink(sink); }
  void RemoveFailureSink(FailureSink* sink) override { device_.RemoveFailureSink(sink); }
  Nanos spin_time() const override { return spin_; }
  absl::StatusOr<std::unique_ptr<ProtectionDomain>> CreateDomain(bool wildcard) override;
  using Context::Register;
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Register(ProtectionDomain& domain, void* address,
                                                         size_t length, uint32_t access,
                                                         AddressBase base) override;
  absl::StatusOr<std::unique_ptr<MemoryWindow>> CreateWindow(ProtectionDomain& domain,
                                                             WindowScope scope) override;
  absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> CreateSharedReceiveQueue(
      const SharedReceiveOptions& options) override;
  absl::StatusOr<std::unique_ptr<CompletionQueue>> CreateCompletionQueue(
      CompletionSink* sink) override;
  absl::StatusOr<std::unique_ptr<QueuePair>> CreateQueuePair(
      const QueuePairOptions& options) override;
  absl::StatusOr<std::unique_ptr<Listener>> Listen(uint16_t port, ListenerSink* sink) override;
  bool IsServed(uint16_t port) override { return served_.Has(port); }

 private:
  Device& device_;
  const Address address_;
  const Nanos spin_;
  DeviceAttributes attributes_;
  Memory memory_;
  ServedPorts served_;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_CONTEXT_H_
