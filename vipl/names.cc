#include <cstring>
#include <string>
#include <vector>

#include "compat/name_service.h"
#include "compat/net_address.h"
#include "dat/core/handle_table.h"
#include "vipl/face.h"
#include "vipl/nic.h"

using viaduct::compat::ConfiguredHosts;
using viaduct::compat::NicAddress;
using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Nic;

VIPL_EXPORT VIP_RETURN VipNSInit(VIP_NIC_HANDLE NicHandle, VIP_PVOID /*NSInitInfo*/) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    nic->name_service().store(true);
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE NicHandle, VIP_CHAR* Name,
                                          VIP_NET_ADDRESS* Address, VIP_ULONG NameIndex) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || Name == nullptr || Address == nullptr) return VIP_INVALID_PARAMETER;
    if (!nic->name_service().load()) return VIP_ERROR_NAMESERVICE;
    const std::vector<NicAddress> found = viaduct::compat::LookUpName(
        Name, ConfiguredHosts(), viaduct::compat::ThisHost(nic->address()));
    if (NameIndex >= found.size()) return VIP_ERROR_NAMESERVICE;
    viaduct::compat::WriteHost(found[NameIndex], Address);
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* Address,
                                          VIP_CHAR* Name, VIP_ULONG* NameLen) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || Address == nullptr || Name == nullptr || NameLen == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    const auto host = viaduct::compat::HostOf(Address);
    if (!host) return VIP_INVALID_PARAMETER;
    if (!nic->name_service().load()) return VIP_ERROR_NAMESERVICE;
    const std::string found =
        viaduct::compat::LookUpAddress(viaduct::compat::NicAddressOf(*host), ConfiguredHosts(),
                                       viaduct::compat::ThisHost(nic->address()));
    if (found.empty()) return VIP_ERROR_NAMESERVICE;
    const VIP_ULONG room = *NameLen;
    *NameLen = found.size();
    if (room <= found.size()) return VIP_ERROR_RESOURCE;
    std::memcpy(Name, found.c_str(), found.size() + 1);
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE NicHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    return nic->name_service().exchange(false) ? VIP_SUCCESS : VIP_ERROR_NAMESERVICE;
  });
}
