#include "verbs/soft/context.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "verbs/soft/completion_queue.h"
#include "verbs/soft/futex_doorbell.h"
#include "verbs/soft/queue_pair.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shared_receive_queue.h"

namespace viaduct::verbs {
namespace {

constexpr int kPortTries = 32;

// Access that stores into memory.
constexpr uint32_t kWrites = kLocalWrite | kRemoteWrite | kRemoteAtomic;

// OK: the process itself may access this memory in the ways that `access` grants to others.
absl::Status CheckMemory(UsableMemory& usable, const void* address, size_t length,
                         uint32_t access) {
  if (usable.Has(address, length, (access & kWrites) != 0)) return absl::OkStatus();
  return absl::InvalidArgumentError("no such memory");
}

class SoftRegion final : public MemoryRegion {
 public:
  SoftRegion(RegionTable& regions, UsableMemory& usable, const void* address, size_t length,
             Key key)
      : regions_(regions), usable_(usable), address_(address), length_(length), key_(key) {}
  ~SoftRegion() override { regions_.Deregister(key_); }
  Key key() const override { return key_; }
  absl::Status Modify(ProtectionDomain& domain, uint32_t access) override {
    const absl::Status status = CheckMemory(usable_, address_, length_, access);
    if (status.ok()) regions_.Modify(key_, static_cast<SoftDomain&>(domain).id(), access);
    return status;
  }

 private:
  RegionTable& regions_;
  UsableMemory& usable_;
  const void* const address_;
  const size_t length_;
  const Key key_;
};

// Listens at one port on every wire.
class SoftListener final : public Listener {
 public:
  SoftListener(uint16_t port, std::vector<std::unique_ptr<WireListener>> parts)
      : port_(port), parts_(std::move(parts)) {
    for (const std::unique_ptr<WireListener>& part : parts_) part->Start();
  }
  uint16_t port() const override { return port_; }

 private:
  const uint16_t port_;
  const std::vector<std::unique_ptr<WireListener>> parts_;
};

}  // namespace

SoftContext::SoftContext(Options options)
    : address_(options.address),
      executor_(*options.executor),
      attributes_(std::move(options.attributes)),
      doorbell_(options.doorbell != nullptr ? std::move(options.doorbell)
                                            : std::make_unique<FutexDoorbell>(0)),
      wires_(std::move(options.wires)),
      attendant_(executor_) {}

SoftContext::~SoftContext() = default;

absl::StatusOr<std::unique_ptr<ProtectionDomain>> SoftContext::CreateDomain(bool wildcard) {
  return std::make_unique<SoftDomain>(wildcard ? kWildcardDomain : NewDomain());
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> SoftContext::Register(ProtectionDomain& domain,
                                                                    void* address, size_t length,
                                                                    uint32_t access,
                                                                    AddressBase base) {
  const auto start = reinterpret_cast<uint64_t>(address);
  if (length == 0 || length > attributes_.max_region_bytes || start + length < start) {
    return absl::InvalidArgumentError(absl::StrCat("no region of ", length, " bytes"));
  }
  const absl::Status status = CheckMemory(usable_memory_, address, length, access);
  if (!status.ok()) return status;
  absl::StatusOr<Key> key =
      regions_.Register(static_cast<SoftDomain&>(domain).id(), start, length, access, base);
  if (!key.ok()) return key.status();
  absl::Cleanup give_back = [&] { regions_.Deregister(*key); };  // if memory runs out
  auto region = std::make_unique<SoftRegion>(regions_, usable_memory_, address, length, *key);
  std::move(give_back).Cancel();
  return region;
}

absl::StatusOr<std::unique_ptr<MemoryWindow>> SoftContext::CreateWindow(ProtectionDomain& domain,
                                                                        WindowScope scope) {
  return std::make_unique<SoftWindow>(regions_, static_cast<SoftDomain&>(domain).id(), scope);
}

absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> SoftContext::CreateSharedReceiveQueue(
    const SharedReceiveOptions& options) {
  absl::StatusOr<std::unique_ptr<SoftSharedReceiveQueue>> queue =
      SoftSharedReceiveQueue::Create(*this, options);
  if (!queue.ok()) return queue.status();
  return *std::move(queue);
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> SoftContext::CreateCompletionQueue(
    CompletionSink* sink) {
  return std::make_unique<SoftCompletionQueue>(*this, sink);
}

absl::StatusOr<std::unique_ptr<QueuePair>> SoftContext::CreateQueuePair(
    const QueuePairOptions& options) {
  absl::StatusOr<std::unique_ptr<SoftQueuePair>> pair = SoftQueuePair::Create(*this, options);
  if (!pair.ok()) return pair.status();
  return *std::move(pair);
}

absl::StatusOr<std::unique_ptr<Listener>> SoftContext::Listen(uint16_t port, ListenerSink* sink) {
  if (wires_.empty()) return absl::UnavailableError("the device has no wire");
  absl::Status failed;
  for (int i = 0; i < (port == 0 ? kPortTries : 1); i++) {
    std::vector<std::unique_ptr<WireListener>> parts;
    uint16_t chosen = port;
    failed = absl::OkStatus();
    for (size_t w = 0; w < wires_.size() && failed.ok(); w++) {
      // A given port is taken in the order in which requesters try the wires (IsServedNearer). A
      // free port is chosen by the last wire, which knows best (for iwarp, the kernel does).
      Wire& wire = *wires_[port != 0 ? w : wires_.size() - 1 - w];
      absl::StatusOr<std::unique_ptr<WireListener>> part = wire.Listen(*this, chosen, sink);
      if (!part.ok()) {
        // A filter that came after the open refuses unix sockets: as if it had come before.
        const bool refused =
            absl::IsPermissionDenied(part.status()) || absl::IsUnimplemented(part.status());
        const bool last = w + 1 == wires_.size() && parts.empty();
        if (!refused || last || MayRendezvous()) failed = part.status();
      } else {
        chosen = (*part)->port();
        parts.push_back(*std::move(part));
      }
    }
    if (failed.ok()) return std::make_unique<SoftListener>(chosen, std::move(parts));
    if (!absl::IsAlreadyExists(failed)) break;
  }
  return failed;
}

bool SoftContext::IsServed(uint16_t port) {
  return std::any_of(wires_.begin(), wires_.end(),
                     [port](const auto& wire) { return wire->IsServed(port); });
}

TakeAnswer SoftContext::WouldTake(uint16_t port, absl::Span<const uint8_t> note,
                                  Deadline deadline) {
  TakeAnswer answer = TakeAnswer::kNo;
  for (const auto& wire : wires_) {
    answer = std::max(answer, wire->WouldTake(port, note, deadline));
    if (answer == TakeAnswer::kYes) break;
  }
  return answer;
}

}  // namespace viaduct::verbs
