// The opened soft device: an address, its wires and its regions.
#ifndef VIADUCT_VERBS_SOFT_CONTEXT_H_
#define VIADUCT_VERBS_SOFT_CONTEXT_H_

#include <atomic>
#include <memory>
#include <vector>

#include "verbs/device.h"
#include "verbs/soft/attendant.h"
#include "verbs/soft/doorbell.h"
#include "verbs/soft/region_table.h"
#include "verbs/soft/usable_memory.h"
#include "verbs/soft/wire.h"

namespace viaduct::verbs {

class SoftDomain final : public ProtectionDomain {
 public:
  explicit SoftDomain(DomainId id) : id_(id) {}
  DomainId id() const { return id_; }

 private:
  const DomainId id_;
};

class SoftWindow final : public MemoryWindow {
 public:
  SoftWindow(RegionTable& regions, DomainId domain, WindowScope scope)
      : regions_(regions), domain_(domain), scope_(scope) {}
  ~SoftWindow() override { regions_.Deregister(key_.load()); }
  DomainId domain() const { return domain_; }
  WindowScope scope() const { return scope_; }
  // Sets the window's key and returns the previous one.
  Key Replace(Key key) { return key_.exchange(key); }

 private:
  RegionTable& regions_;
  const DomainId domain_;
  const WindowScope scope_;
  std::atomic<Key> key_{0};
};

class SoftContext final : public Context {
 public:
  struct Options {
    Address address;
    Executor* executor = nullptr;              // outlives the context
    std::unique_ptr<Doorbell> doorbell;        // null: FutexDoorbell, without spinning
    std::vector<std::unique_ptr<Wire>> wires;  // in the order in which they are tried
    DeviceAttributes attributes;
  };
  explicit SoftContext(Options options);
  ~SoftContext() override;

  const DeviceAttributes& attributes() const override { return attributes_; }
  const Address& address() const override { return address_; }
  Executor& executor() override { return executor_; }
  Nanos spin_time() const override { return doorbell_->SpinTime(); }
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
  // Listens on every wire, at the same port; all must succeed.
  absl::StatusOr<std::unique_ptr<Listener>> Listen(uint16_t port, ListenerSink* sink) override;
  bool IsServed(uint16_t port) override;
  TakeAnswer WouldTake(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline) override;

  // ------------------------------------------------------- for queue pairs and queues
  RegionTable& regions() { return regions_; }
  DomainId NewDomain() { return next_domain_.fetch_add(1, std::memory_order_relaxed); }
  Doorbell& doorbell() { return *doorbell_; }
  Attendant& attendant() { return attendant_; }
  const std::vector<std::unique_ptr<Wire>>& wires() const { return wires_; }

 private:
  const Address address_;
  Executor& executor_;
  const DeviceAttributes attributes_;
  const std::unique_ptr<Doorbell> doorbell_;
  const std::vector<std::unique_ptr<Wire>> wires_;
  RegionTable regions_;
  UsableMemory usable_memory_;
  Attendant attendant_;
  std::atomic<DomainId> next_domain_{kWildcardDomain + 1};
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_CONTEXT_H_
