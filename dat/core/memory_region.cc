#include "dat/core/memory_region.h"

#include "absl/status/status.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::core {
namespace {

// Local write implies local read: RDMA hardware cannot withhold local reads, and programs send from
// memory that they registered only for local writing. access() shows what the consumer asked for.
uint32_t Granted(uint32_t access) {
  return (access & verbs::kLocalWrite) != 0 ? access | verbs::kLocalRead : access;
}

Error FromDevice(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? InvalidParameter(3)  // no such memory
                                         : OutOf(Resource::kRegion);
}

}  // namespace

using verbs::MutexLock;

Error MemoryRegion::Create(InterfaceAdapter& adapter, ProtectionZone& zone, void* address,
                           uint64_t length, uint32_t access, verbs::AddressBase base,
                           Ref<MemoryRegion>* out) {
  if (address == nullptr || length == 0) return InvalidParameter(3);
  if (length > adapter.context().attributes().max_region_bytes) return InvalidParameter(4);
  Use<ProtectionZone> use;
  if (Error error = use.Begin(&zone); !error.ok()) return error;
  auto region = adapter.context().Register(zone.domain(), address, length, Granted(access), base);
  if (!region.ok()) return FromDevice(region.status());
  auto made = Ref<MemoryRegion>::Adopt(
      new MemoryRegion(adapter, std::move(use), address, length, access, base, *std::move(region)));
  if (Error error = adapter.AddChild(made.get()); !error.ok()) return error;
  *out = std::move(made);
  return Ok();
}

MemoryRegion::MemoryRegion(InterfaceAdapter& adapter, Use<ProtectionZone> zone, void* address,
                           uint64_t length, uint32_t access, verbs::AddressBase base,
                           std::unique_ptr<verbs::MemoryRegion> region)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      address_(address),
      length_(length),
      base_(base),
      key_(region->key()),
      zone_(zone.ref()),
      zone_use_(std::move(zone)),
      access_(access),
      region_(std::move(region)) {}

MemoryRegion::~MemoryRegion() = default;

bool MemoryRegion::Holds(uint64_t address, uint64_t length) const {
  const uint64_t begin =
      base_ == verbs::AddressBase::kZero ? 0 : reinterpret_cast<uint64_t>(address_);
  const uint64_t offset = address - begin;
  return offset <= length_ && length <= length_ - offset;
}

Error MemoryRegion::Free() {
  if (!uses_.End()) return InvalidState(StateDetail::kRegionInUse);
  return End();
}

void MemoryRegion::Destroy() { (void)End(); }

Error MemoryRegion::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<MemoryRegion>();
  adapter_->RemoveChild(this);
  {
    MutexLock lock(&lock_);
    region_.reset();
    zone_use_.End();
  }
  DropReference();
  return Ok();
}

Error MemoryRegion::Modify(ProtectionZone& zone, uint32_t access) {
  MutexLock lock(&lock_);
  if (region_ == nullptr) return InvalidHandle<MemoryRegion>();
  Use<ProtectionZone> use;
  if (Error error = use.Begin(&zone); !error.ok()) return error;
  const absl::Status status = region_->Modify(zone.domain(), Granted(access));
  if (!status.ok()) return FromDevice(status);
  zone_ = use.ref();
  zone_use_ = std::move(use);
  access_ = access;
  return Ok();
}

Ref<ProtectionZone> MemoryRegion::zone() const {
  MutexLock lock(&lock_);
  return zone_;
}

uint32_t MemoryRegion::access() const {
  MutexLock lock(&lock_);
  return access_;
}

}  // namespace viaduct::core
