// Common service points, which 1.2 lacks: the qualifier is the port inside an ordinary socket
// address.
#include <netinet/in.h>

#include "dat/api/ep_connect.h"
#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/api/service_points.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {
namespace {

core::Ref<core::ServicePoint> ShareCsp(DAT_CSP_HANDLE handle) {
  return SharePoint(handle, core::ObjectType::kCommonServicePoint);
}
constexpr DAT_RETURN kBadCsp = BadHandle(DAT_INVALID_HANDLE_CSP);

// What connections are in terms of sockets. dat_csp_query returns pointers to these.
DAT_COMM kStreamsOverIpv4 = {AF_INET, SOCK_STREAM, IPPROTO_TCP};
DAT_COMM kStreamsOverIpv6 = {AF_INET6, SOCK_STREAM, IPPROTO_TCP};

DAT_COMM* CommOf(sa_family_t family) {
  return family == AF_INET6 ? &kStreamsOverIpv6 : &kStreamsOverIpv4;
}

bool IsSupported(const DAT_COMM& comm, sa_family_t family) {
  return comm.domain == family && comm.type == SOCK_STREAM &&
         (comm.protocol == IPPROTO_TCP || comm.protocol == 0);
}

// An adapter listens on its own address and on loopback, so a program may name only these or "any";
// IPv6's "any" includes IPv4.
bool ListensOn(const core::InterfaceAdapter& adapter, const verbs::Address& address) {
  const verbs::Address& own = adapter.context().address();
  const bool kin = address.IsLoopback() || address == verbs::Address::V4(INADDR_ANY);
  return (kin && address.family() == own.family()) || address == own ||
         address == *verbs::Address::Parse("::");
}

}  // namespace

DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM* comm, DAT_IA_ADDRESS_PTR address,
                          DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE* csp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    auto dispatcher = ShareRequestDispatcher(*adapter, evd_handle);
    if (!dispatcher) return BadHandle(DAT_INVALID_HANDLE_EVD_CR);
    if (comm == nullptr) return BadParameter(2);
    if (address == nullptr) return BadParameter(3);
    if (csp_handle == nullptr) return BadParameter(5);
    if (!IsSupported(*comm, address->sa_family)) return Failure(DAT_COMM_NOT_SUPPORTED);
    verbs::Address host;
    if (!ToAddress(address, &host)) {
      return Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
    }
    if (!ListensOn(*adapter, host)) {
      return Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
    }
    const uint16_t port = PortOf(address);
    if (port == 0) return Failure(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
    core::ServicePoint::Options options;
    options.name = core::ServiceName::FromQualifier(port);
    host.ToSockaddr(port, &options.common_address.emplace());
    core::Ref<core::ServicePoint> point;
    core::Error error = core::ServicePoint::CreatePublic(*adapter, options, *dispatcher, &point);
    if (error.code == core::Code::kConnQualInUse) return Failure(DAT_PORT_IN_USE);
    if (error.ok()) *csp_handle = point->handle();
    return ToReturn(error);
  });
}

DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK mask, DAT_CSP_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto point = ShareCsp(csp_handle);
    if (!point) return kBadCsp;
    if ((static_cast<unsigned>(mask) & ~unsigned{DAT_CSP_FIELD_ALL}) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    // Valid as long as the service point.
    auto* address =
        const_cast<sockaddr*>(reinterpret_cast<const sockaddr*>(&*point->options().common_address));
    param->ia_handle = ShownHandle(point->adapter());
    param->comm = CommOf(address->sa_family);
    param->address_ptr = address;
    param->evd_handle = point->dispatcher().handle();
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle) {
  return Control([&]() -> DAT_RETURN {
    auto point = ShareCsp(csp_handle);
    return point ? ToReturn(point->Free()) : kBadCsp;
  });
}

}  // namespace viaduct::dat
