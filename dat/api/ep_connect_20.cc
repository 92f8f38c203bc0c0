// The connection to a common service point, which 1.2 lacks.
#include "dat/api/ep_connect.h"
#include "dat/api/face.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {

DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
                                 DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                                 const DAT_PVOID private_data) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = Share<core::Endpoint>(ep_handle);
    if (!endpoint) return kBadEp;
    core::ConnectParameters parameters;
    DAT_RETURN checked = TakeAddress(remote_ia_address, &parameters.target.address);
    if (checked != DAT_SUCCESS) return checked;
    const uint16_t port = PortOf(remote_ia_address);
    if (port == 0) return Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
    if (timeout == 0) return BadParameter(3);
    checked = CheckPrivateData(endpoint->adapter(), private_data_size, private_data, 4);
    if (checked != DAT_SUCCESS) return checked;
    parameters.target.name = core::ServiceName::FromQualifier(port);
    parameters.deadline = ToDeadline(endpoint->adapter(), timeout);
    parameters.grace = ConnectGrace();
    parameters.private_data = PrivateData(private_data_size, private_data);
    return ConnectReturn(endpoint->Connect(parameters), 4);
  });
}

}  // namespace viaduct::dat
