#include <algorithm>
#include <string>
#include <vector>

#include "compat/name_service.h"
#include "compat/net_address.h"
#include "dat/core/handle_table.h"
#include "vipl/face.h"
#include "vipl/nic.h"

namespace {

// Copies `text`, cut off if it does not fit.
template <size_t kSize>
void CopyText(const std::string& text, VIP_CHAR (&out)[kSize]) {
  out[text.copy(out, kSize - 1)] = '\0';
}

using viaduct::compat::NicAddress;
using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Nic;

// The NIC's own address first, then those of the hosts file, each once. There is no protocol that
// asks the network, so NumberOfHops selects nothing.
VIP_RETURN Autodiscover(Nic& nic, VIP_AUTODISCOVERY_LIST* list) {
  std::vector<NicAddress> found = {nic.address()};
  for (const NicAddress& address : viaduct::compat::ConfiguredHosts().Addresses()) {
    if (std::find(found.begin(), found.end(), address) == found.end()) found.push_back(address);
  }
  if (list->ADAddrArray == nullptr) {
    list->NumAdAddrs = found.size();
    return VIP_SUCCESS;
  }
  const size_t count = std::min<size_t>(list->NumAdAddrs, found.size());
  for (size_t i = 0; i < count; ++i) list->ADAddrArray[i] = nic.Discovered(found[i]);
  list->NumAdAddrs = count;
  return VIP_SUCCESS;
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE NicHandle, VIP_ULONG InfoType,
                                                    VIP_PVOID SysManInfo) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || SysManInfo == nullptr) return VIP_INVALID_PARAMETER;
    switch (InfoType) {
      case VIP_SMI_AUTODISCOVERY:
        return Autodiscover(*nic, static_cast<VIP_AUTODISCOVERY_LIST*>(SysManInfo));
      case VIADUCT_SMI_DEVICE: {
        auto* info = static_cast<VIADUCT_DEVICE_INFO*>(SysManInfo);
        const viaduct::verbs::DeviceAttributes& device = nic->adapter().context().attributes();
        CopyText(device.device, info->Device);
        CopyText(device.reason, info->Reason);
        return VIP_SUCCESS;
      }
      default:
        return VIP_INVALID_PARAMETER;
    }
  });
}
