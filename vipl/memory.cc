#include "compat/attributes.h"
#include "compat/result.h"
#include "dat/core/handle_table.h"
#include "dat/core/memory_region.h"
#include "dat/core/protection_zone.h"
#include "vipl/face.h"
#include "vipl/nic.h"
#include "vipl/registrations.h"

namespace {

using viaduct::compat::ResultOf;
using viaduct::compat::ResultOfZoneUse;
using viaduct::core::Code;
using viaduct::core::Error;
using viaduct::core::MemoryRegion;
using viaduct::core::ProtectionZone;
using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Nic;

// Frees a region that nobody can name yet, unless Keep is called.
class UnnamedRegion {
 public:
  explicit UnnamedRegion(const Ref<MemoryRegion>& region) : region_(region) {}
  ~UnnamedRegion() {
    if (region_) static_cast<void>(region_->Free());
  }
  void Keep() { region_ = Ref<MemoryRegion>(); }

 private:
  Ref<MemoryRegion> region_;
};

// `take` creates or changes a region with the access that the attributes ask for. Memory that
// cannot be written, such as a read-only file mapping, can still be sent from, and be read by
// peers. Such a region is registered without local write access, for which VIPL has no attribute.
template <typename Take>
Error TakeRights(const VIP_MEM_ATTRIBUTES& attributes, const Take& take) {
  const uint32_t access = viaduct::compat::AccessOf(attributes);
  const Error error = take(access);
  if (error.code != Code::kInvalidParameter || attributes.EnableRdmaWrite) return error;
  return take(access & ~uint32_t{viaduct::verbs::kLocalWrite});
}

VIP_RETURN Register(Nic& nic, void* address, VIP_ULONG length, const VIP_MEM_ATTRIBUTES& attributes,
                    VIP_MEM_HANDLE* handle) {
  if (length > nic.attributes().MaxRegisterBlockBytes) return VIP_ERROR_RESOURCE;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  if (begin + length < begin) return VIP_INVALID_PARAMETER;
  const VIP_RETURN checked = viaduct::compat::CheckMemAttributes(attributes, nic.attributes());
  if (checked != VIP_SUCCESS) return checked;
  const Ref<ProtectionZone> zone = nic.ZoneOf(attributes.Ptag);
  if (!zone) return VIP_INVALID_PTAG;
  Ref<MemoryRegion> region;
  const Error error = TakeRights(attributes, [&](uint32_t access) {
    return MemoryRegion::Create(nic.adapter(), *zone, address, length, access, &region);
  });
  if (!error.ok()) return ResultOfZoneUse(error);
  UnnamedRegion guard(region);
  nic.registrations().Add(region->key(), begin, length, attributes, region);
  guard.Keep();
  *handle = region->key();
  return VIP_SUCCESS;
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE* Ptag) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || Ptag == nullptr) return VIP_INVALID_PARAMETER;
    Ref<ProtectionZone> zone;
    const Error error = ProtectionZone::Create(nic->adapter(), /*wildcard=*/false, &zone);
    if (!error.ok()) return ResultOf(error);
    *Ptag = zone->handle();
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE NicHandle, VIP_PROTECTION_HANDLE Ptag) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || Ptag == nullptr) return VIP_INVALID_PARAMETER;
    const Ref<ProtectionZone> zone = nic->ZoneOf(Ptag);
    return zone ? ResultOf(zone->Free()) : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                                      VIP_ULONG Length, VIP_MEM_ATTRIBUTES* MemAttribs,
                                      VIP_MEM_HANDLE* MemoryHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || VirtualAddress == nullptr || Length == 0 || MemoryHandle == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    // NULL attributes mean the default tag and no RDMA.
    const VIP_MEM_ATTRIBUTES none = {};
    return Register(*nic, VirtualAddress, Length, MemAttribs != nullptr ? *MemAttribs : none,
                    MemoryHandle);
  });
}

VIPL_EXPORT VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID VirtualAddress,
                                        VIP_MEM_HANDLE MemoryHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    Ref<MemoryRegion> region;
    if (!nic->registrations().Remove(MemoryHandle, VirtualAddress, &region)) {
      return VIP_INVALID_PARAMETER;
    }
    return ResultOf(region->Free());
  });
}

VIPL_EXPORT VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
                                           VIP_MEM_HANDLE MemoryHandle,
                                           VIP_MEM_ATTRIBUTES* MemAttribs) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || MemAttribs == nullptr) return VIP_INVALID_PARAMETER;
    const VIP_MEM_ATTRIBUTES attributes = *MemAttribs;
    return nic->registrations().Update(
        MemoryHandle, Address, attributes, [&](MemoryRegion& region) -> VIP_RETURN {
          const VIP_RETURN checked =
              viaduct::compat::CheckMemAttributes(attributes, nic->attributes());
          if (checked != VIP_SUCCESS) return checked;
          const Ref<ProtectionZone> zone = nic->ZoneOf(attributes.Ptag);
          if (!zone) return VIP_INVALID_PTAG;
          return ResultOfZoneUse(TakeRights(
              attributes, [&](uint32_t access) { return region.Modify(*zone, access); }));
        });
  });
}

VIPL_EXPORT VIP_RETURN VipQueryMem(VIP_NIC_HANDLE NicHandle, VIP_PVOID Address,
                                   VIP_MEM_HANDLE MemoryHandle, VIP_MEM_ATTRIBUTES* MemAttribs) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || MemAttribs == nullptr) return VIP_INVALID_PARAMETER;
    return nic->registrations().Query(MemoryHandle, Address, MemAttribs) ? VIP_SUCCESS
                                                                         : VIP_INVALID_PARAMETER;
  });
}
