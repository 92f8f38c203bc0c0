#include "verbs/rdma/context.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/log.h"
#include "verbs/base/settings.h"
#include "verbs/rdma/completion_queue.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/queue_pair.h"
#include "verbs/rdma/region_map.h"
#include "verbs/rdma/shared_receive_queue.h"

namespace viaduct::verbs::rdma {
namespace {

// VIPL promises 252; what the device does not take is gathered, or split.
constexpr uint32_t kMaxSegments = 252;
// The room in InfiniBand's request after rdma_cm's own header, and what siw handles correctly.
constexpr uint32_t kInfinibandPrivateData = 56;
constexpr uint32_t kIwarpPrivateData = 251;
constexpr uint32_t kMostReads = 255;
constexpr uint32_t kMostRequests = 16384;
constexpr uint32_t kNoLimit = std::numeric_limits<uint32_t>::max();

DeviceAttributes Attributes(const Device& device, int port, const Address& address) {
  const ibv_device_attr& limits = device.limits();
  const auto at_most = [](int value, uint32_t most) {
    return std::min(static_cast<uint32_t>(std::max(value, 0)), most);
  };
  DeviceAttributes attributes;
  attributes.device = device.name();
  attributes.transport = device.iwarp() ? "iWARP" : "InfiniBand or RoCE";
  attributes.reason = absl::StrCat("the RDMA device ", attributes.device, " port ", port, " (",
                                   attributes.transport, ") has ", address.ToString());
  attributes.max_queue_pairs = at_most(limits.max_qp, 65536);
  // On iWARP a confirmed request takes two requests of the device.
  attributes.max_requests_per_queue =
      std::min(device.max_requests() / (device.iwarp() ? 2 : 1), kMostRequests);
  attributes.max_segments = kMaxSegments;
  attributes.max_reads_in = at_most(limits.max_qp_rd_atom, kMostReads);
  attributes.max_reads_out = at_most(limits.max_qp_init_rd_atom, kMostReads);
  attributes.max_regions = at_most(limits.max_mr, RegionMap::kMaxEntries);
  attributes.max_region_bytes = limits.max_mr_size;
  attributes.max_message_bytes = device.max_message();
  attributes.max_private_data = device.iwarp() ? kIwarpPrivateData : kInfinibandPrivateData;
  attributes.max_shared_queues = at_most(limits.max_srq, kNoLimit);
  attributes.max_shared_receives = device.max_shared_receives();
  attributes.max_shared_segments = at_most(limits.max_srq_sge, kMaxSegments);
  // The kernel requires that an address and its memory have the same offset within a page.
  attributes.zero_based = false;
  attributes.pair_windows = device.windows().of_pair;
  attributes.immediate_data = !device.iwarp();
  attributes.atomics = device.atomics();
  attributes.listener_rest = kListenerRest;
  return attributes;
}

}  // namespace

RdmaContext::RdmaContext(Device& device, int port, const Address& address, Nanos spin)
    : device_(device),
      address_(address),
      spin_(spin),
      attributes_(Attributes(device, port, address)) {}

// Nothing is left to do: connections that are still being buried hold what they need themselves.
RdmaContext::~RdmaContext() = default;

absl::StatusOr<std::unique_ptr<ProtectionDomain>> RdmaContext::CreateDomain(bool wildcard) {
  ibv_pd* const handle = ibv_alloc_pd(device_.verbs());
  if (handle == nullptr) return ErrnoStatus(errno, "ibv_alloc_pd");
  absl::Cleanup give_back = [handle] { ibv_dealloc_pd(handle); };
  auto core = std::make_shared<DomainCore>(handle, wildcard, device_);
  std::move(give_back).Cancel();  // the core owns it from now on
  return std::make_unique<Domain>(memory_, std::move(core));
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> RdmaContext::Register(ProtectionDomain& domain,
                                                                    void* address, size_t length,
                                                                    uint32_t access,
                                                                    AddressBase base) {
  return memory_.Register(static_cast<Domain&>(domain).core(), address, length, access, base);
}

absl::StatusOr<std::unique_ptr<MemoryWindow>> RdmaContext::CreateWindow(ProtectionDomain& domain,
                                                                        WindowScope scope) {
  return std::make_unique<Window>(memory_, static_cast<Domain&>(domain).core(), scope);
}

absl::StatusOr<std::unique_ptr<SharedReceiveQueue>> RdmaContext::CreateSharedReceiveQueue(
    const SharedReceiveOptions& options) {
  if (options.domain == nullptr) return absl::InvalidArgumentError("no domain");
  auto core = SharedReceiveCore::Make(device_, memory_,
                                      static_cast<Domain*>(options.domain)->core(), options);
  if (!core.ok()) return core.status();
  return std::make_unique<RdmaSharedReceiveQueue>(device_, *std::move(core), options.sink);
}

absl::StatusOr<std::unique_ptr<CompletionQueue>> RdmaContext::CreateCompletionQueue(
    CompletionSink* sink) {
  return std::make_unique<RdmaCompletionQueue>(device_, CompletionCore::Make(device_, spin_), sink);
}

absl::StatusOr<std::unique_ptr<QueuePair>> RdmaContext::CreateQueuePair(
    const QueuePairOptions& options) {
  if (options.max_sends > attributes_.max_requests_per_queue ||
      options.max_receives > attributes_.max_requests_per_queue ||
      options.max_send_segments > attributes_.max_segments ||
      options.max_receive_segments > attributes_.max_segments) {
    return absl::ResourceExhaustedError("a queue pair larger than the device has it");
  }
  if (options.shared_receives != nullptr) {
    const auto& shared = static_cast<RdmaSharedReceiveQueue*>(options.shared_receives)->core();
    if (shared->domain() != static_cast<Domain*>(options.domain)->core()) {
      return absl::InvalidArgumentError("the shared receive queue is in another domain");
    }
  }
  return RdmaQueuePair::Make(device_, memory_, address_, options);
}

absl::StatusOr<std::unique_ptr<Listener>> RdmaContext::Listen(uint16_t port, ListenerSink* sink) {
  if (ChoiceSetting(SettingId::kListen) == "loopback" && !address_.IsLoopback()) {
    Log(LogLevel::kWarn, device_.name(), ": nothing listens at ", address_.ToString(),
        ", as VIADUCT_LISTEN=loopback has it; VIADUCT_WIRE=shm serves the programs of this host");
    return absl::PermissionDeniedError("VIADUCT_LISTEN");
  }
  return RdmaListener::Make(device_, served_, address_, port, sink);
}

}  // namespace viaduct::verbs::rdma
