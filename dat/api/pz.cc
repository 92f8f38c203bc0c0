// Protection zones.
#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/core/protection_zone.h"

namespace viaduct::dat {

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE* pz_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (pz_handle == nullptr) return BadParameter(2);
    core::Ref<core::ProtectionZone> zone;
    core::Error error = core::ProtectionZone::Create(*adapter, /*wildcard=*/false, &zone);
    if (error.ok()) *pz_handle = zone->handle();
    return ToReturn(error);
  });
}

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto zone = Share<core::ProtectionZone>(pz_handle);
    if (!zone) return kBadPz;
    if ((mask & ~DAT_PZ_FIELD_ALL) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    param->ia_handle = ShownHandle(zone->adapter());
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle) {
  return Control([&]() -> DAT_RETURN {
    auto zone = Share<core::ProtectionZone>(pz_handle);
    return zone ? ToReturn(zone->Free()) : kBadPz;
  });
}

}  // namespace viaduct::dat
