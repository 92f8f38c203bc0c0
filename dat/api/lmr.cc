// Memory regions.
#include "dat/api/lmr.h"

#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/core/memory_region.h"
#include "verbs/base/mappings.h"

namespace viaduct::dat {
namespace {

core::Ref<core::MemoryRegion> ShareLmr(DAT_LMR_HANDLE handle) {
  return Share<core::MemoryRegion>(handle);
}

// Without a remote privilege there is no context for the peer.
DAT_RMR_CONTEXT RemoteContext(const core::MemoryRegion& region) {
  constexpr uint32_t kRemote = verbs::kRemoteRead | verbs::kRemoteWrite | verbs::kRemoteAtomic;
  return (region.access() & kRemote) != 0 ? region.key() : 0;
}

// Finds the memory that a request names; `source` gets the region it was taken from, if any.
DAT_RETURN TakeMemory(core::InterfaceAdapter& adapter, const RegionRequest& request, void** address,
                      uint64_t* length, DAT_LMR_HANDLE* source) {
  *source = DAT_HANDLE_NULL;
  switch (static_cast<unsigned>(request.type)) {
    case DAT_MEM_TYPE_VIRTUAL:
      *address = request.description.for_va;
      *length = request.length;
      if (*address == nullptr) return BadParameter(3);
      if (*length == 0) return BadParameter(4);
      return DAT_SUCCESS;
    case DAT_MEM_TYPE_LMR: {
      auto region = ShareOf<core::MemoryRegion>(adapter, request.description.for_lmr_handle);
      if (!region) return kBadLmr;
      *address = region->address();
      *length = region->length();
      *source = region->handle();
      return DAT_SUCCESS;
    }
    case DAT_MEM_TYPE_SHARED_VIRTUAL: {
      // The consumers map the memory, and this library shares it by a registration of its own in
      // each process. Memory that nobody else can map is not shared.
      *address = request.description.for_shared_memory.virtual_address;
      *length = request.length;
      if (*address == nullptr ||
          request.description.for_shared_memory.shared_memory_id == nullptr) {
        return BadParameter(3);
      }
      if (*length == 0) return BadParameter(4);
      bool is_private = false;
      (void)verbs::EveryMapping(*address, *length, [&](const verbs::Mapping& each) {
        is_private = !each.shared;
        return each.shared;
      });
      if (is_private) return Failure(DAT_INVALID_STATE);
      return DAT_SUCCESS;
    }
    default:
      return BadParameter(2);
  }
}

template <typename T>
void Put(T* out, T value) {
  if (out != nullptr) *out = value;
}

// uDAPL 1.2 dat_lmr_sync_rdma_read: nothing to do for coherent memory, but every segment must lie
// in a region of the adapter.
DAT_RETURN CheckSegments(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* segments, DAT_VLEN count) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (count > 0 && segments == nullptr) return BadParameter(2);
    for (DAT_VLEN i = 0; i < count; ++i) {
      const DAT_LMR_TRIPLET& segment = segments[i];
      const core::Error error =
          adapter->CheckRange(segment.lmr_context, segment.virtual_address, segment.segment_length);
      if (!error.ok()) return ToReturn(error);
    }
    return DAT_SUCCESS;
  });
}

}  // namespace

DAT_RETURN CreateRegion(const RegionRequest& request, const RegionResults& results) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(request.ia);
    if (!adapter) return kBadIa;
    void* address = nullptr;
    uint64_t length = 0;
    DAT_LMR_HANDLE source = DAT_HANDLE_NULL;
    DAT_RETURN taken = TakeMemory(*adapter, request, &address, &length, &source);
    if (taken != DAT_SUCCESS) return taken;
    auto zone = ShareOf<core::ProtectionZone>(*adapter, request.zone);
    if (!zone) return kBadPz;
    const auto privileges = static_cast<unsigned>(request.privileges);
    if ((privileges & ~kPrivilegeFlags) != 0) return BadParameter(6);
    if (!request.base) return BadParameter(7);
    if (results.lmr == nullptr) return BadParameter(results.first_argument);
    core::Ref<core::MemoryRegion> region;
    core::Error error = core::MemoryRegion::Create(*adapter, *zone, address, length,
                                                   ToAccess(privileges), *request.base, &region);
    if (!error.ok()) return ToReturn(error);
    if (static_cast<unsigned>(request.type) == DAT_MEM_TYPE_SHARED_VIRTUAL) {
      region->SetSharedName(*request.description.for_shared_memory.shared_memory_id);
    }
    region->set_face_word(reinterpret_cast<uintptr_t>(source));
    *results.lmr = region->handle();
    Put<DAT_LMR_CONTEXT>(results.lmr_context, region->key());
    Put<DAT_RMR_CONTEXT>(results.rmr_context, RemoteContext(*region));
    Put<DAT_VLEN>(results.registered_size, region->length());
    Put<DAT_VADDR>(results.registered_address, reinterpret_cast<uintptr_t>(region->address()));
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK mask, DAT_LMR_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto region = ShareLmr(lmr_handle);
    if (!region) return kBadLmr;
    if ((mask & ~DAT_LMR_FIELD_ALL) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    const core::Ref<core::ProtectionZone> zone = region->zone();
    const auto source = reinterpret_cast<DAT_LMR_HANDLE>(region->face_word());
    param->ia_handle = ShownHandle(region->adapter());
    param->mem_type = DAT_MEM_TYPE_VIRTUAL;
    param->region_desc = {};
    if (region->shared_name() != nullptr) {
      param->mem_type = DAT_MEM_TYPE_SHARED_VIRTUAL;
      param->region_desc.for_shared_memory.virtual_address = region->address();
      param->region_desc.for_shared_memory.shared_memory_id =
          reinterpret_cast<DAT_LMR_COOKIE>(const_cast<char*>(region->shared_name()));
    } else if (source != DAT_HANDLE_NULL) {
      param->mem_type = DAT_MEM_TYPE_LMR;
      param->region_desc.for_lmr_handle = source;
    } else {
      param->region_desc.for_va = region->address();
    }
    param->length = region->length();
    param->pz_handle = zone ? zone->handle() : DAT_HANDLE_NULL;
    param->mem_priv = ToPrivileges(region->access());
    param->lmr_context = region->key();
    param->rmr_context = RemoteContext(*region);
    param->registered_size = region->length();
    param->registered_address = reinterpret_cast<uintptr_t>(region->address());
    SetVersionFields(region->base(), param);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle) {
  return Control([&]() -> DAT_RETURN {
    auto region = ShareLmr(lmr_handle);
    return region ? ToReturn(region->Free()) : kBadLmr;
  });
}

DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                  DAT_VLEN num_segments) {
  return CheckSegments(ia_handle, local_segments, num_segments);
}

DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET* local_segments,
                                   DAT_VLEN num_segments) {
  return CheckSegments(ia_handle, local_segments, num_segments);
}

}  // namespace viaduct::dat
