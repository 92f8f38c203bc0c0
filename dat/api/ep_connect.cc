// Connecting as the active side, and disconnecting.
#include "dat/api/ep_connect.h"

#include <netinet/in.h>

#include <optional>

#include "dat/api/face.h"
#include "dat/core/endpoint.h"
#include "verbs/base/settings.h"

namespace viaduct::dat {

bool ToAddress(const sockaddr* from, verbs::Address* out) {
  socklen_t length = 0;
  if (from->sa_family == AF_INET) length = sizeof(sockaddr_in);
  if (from->sa_family == AF_INET6) length = sizeof(sockaddr_in6);
  if (length == 0) return false;
  std::optional<verbs::Address> address = verbs::Address::FromSockaddr(from, length);
  if (address) *out = *address;
  return address.has_value();
}

// uDAPL 1.2 dat_ep_connect.
DAT_RETURN TakeAddress(const sockaddr* remote, verbs::Address* out) {
  if (remote == nullptr) return BadParameter(2);
  if (!ToAddress(remote, out)) {
    return Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
  }
  return out->IsUnspecified() ? Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED)
                              : DAT_RETURN{DAT_SUCCESS};
}

uint16_t PortOf(const sockaddr* address) {
  // The port is at the same offset in both families.
  return ntohs(reinterpret_cast<const sockaddr_in*>(address)->sin_port);
}

DAT_RETURN ConnectReturn(core::Error error, unsigned argument) {
  if (error.code == core::Code::kInvalidParameter) return BadParameter(argument);
  return ToReturn(error);
}

verbs::Nanos ConnectGrace() {
  return verbs::NumberSetting(verbs::SettingId::kDatGraceMs) * verbs::kNanosPerMilli;
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
                          DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
                          DAT_COUNT private_data_size, const DAT_PVOID private_data,
                          DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = Share<core::Endpoint>(ep_handle);
    if (!endpoint) return kBadEp;
    core::ConnectParameters parameters;
    DAT_RETURN checked = TakeAddress(remote_ia_address, &parameters.target.address);
    if (checked != DAT_SUCCESS) return checked;
    if (timeout == 0) return BadParameter(4);
    checked = CheckPrivateData(endpoint->adapter(), private_data_size, private_data, 5);
    if (checked != DAT_SUCCESS) return checked;
    if (quality_of_service != DAT_QOS_BEST_EFFORT) return Failure(DAT_MODEL_NOT_SUPPORTED);
    const auto flags = static_cast<unsigned>(connect_flags);
    if ((flags & ~kMultipathFlags) != 0) return BadParameter(8);
    if (flags != 0) return Failure(DAT_MODEL_NOT_SUPPORTED);
    parameters.target.name = core::ServiceName::FromQualifier(remote_conn_qual);
    parameters.deadline = ToDeadline(endpoint->adapter(), timeout);
    parameters.grace = ConnectGrace();
    parameters.private_data = PrivateData(private_data_size, private_data);
    return ConnectReturn(endpoint->Connect(parameters), 5);
  });
}

DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE dup_ep_handle,
                              DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
                              const DAT_PVOID private_data, DAT_QOS quality_of_service) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = Share<core::Endpoint>(ep_handle);
    if (!endpoint) return kBadEp;
    auto other = ShareOf<core::Endpoint>(endpoint->adapter(), dup_ep_handle);
    if (!other) return kBadEp;
    if (timeout == 0) return BadParameter(3);
    DAT_RETURN checked = CheckPrivateData(endpoint->adapter(), private_data_size, private_data, 4);
    if (checked != DAT_SUCCESS) return checked;
    if (quality_of_service != DAT_QOS_BEST_EFFORT) return Failure(DAT_MODEL_NOT_SUPPORTED);
    const core::Error error =
        endpoint->DuplicateConnect(*other, ToDeadline(endpoint->adapter(), timeout),
                                   PrivateData(private_data_size, private_data), ConnectGrace());
    return ConnectReturn(error, 4);
  });
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS disconnect_flags) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = Share<core::Endpoint>(ep_handle);
    if (!endpoint) return kBadEp;
    switch (static_cast<unsigned>(disconnect_flags)) {
      case DAT_CLOSE_ABRUPT_FLAG:
        return ToReturn(endpoint->Disconnect(verbs::DisconnectMode::kAbrupt));
      case DAT_CLOSE_GRACEFUL_FLAG:
        return ToReturn(endpoint->Disconnect(verbs::DisconnectMode::kGraceful));
      default:
        return BadParameter(2);
    }
  });
}

}  // namespace viaduct::dat
