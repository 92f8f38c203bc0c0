// dat_csp_*, dat_ep_common_connect: uDAPL 2.0's header declares them, and OFED exports none.
#include "tests/conformance/dat/side.h"

#if VIADUCT_TEST_DAT == 20

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

namespace viaduct::tests {
namespace {

DAT_COMM kStreams = {AF_INET, SOCK_STREAM, IPPROTO_TCP};

// The adapter's address with a port.
sockaddr_in At(const Side& side, uint16_t port) {
  sockaddr_in address;
  memcpy(&address, side.attributes.ia_address_ptr, sizeof address);
  address.sin_port = htons(port);
  return address;
}

TEST(Csp, S_ConnectsByPort) {
  const std::vector<uint8_t> request = Pattern(40, 3), answer = Pattern(50, 4);
  RunPair(
      [&](Peer& peer) {
        Side side;
        sockaddr_in address = At(side, Port(0));
        DAT_CSP_HANDLE csp;
        Must(dat_csp_create(side.ia, &kStreams, Pointer(address), side.cr_evd, &csp));
        DAT_CSP_PARAM param;
        Must(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
        EXPECT_EQ(param.ia_handle, side.ia);
        EXPECT_EQ(param.evd_handle, side.cr_evd);
        EXPECT_EQ(memcmp(param.comm, &kStreams, sizeof kStreams), 0);
        EXPECT_EQ(memcmp(param.address_ptr, &address, sizeof address), 0);
        peer.Tell("listening");
        const auto event = NextRequest(side.cr_evd);
        EXPECT_EQ(event.sp_handle.csp_handle, csp);
        EXPECT_EQ(event.conn_qual, Port(0));
        const DAT_CR_PARAM cr = ParametersOf(event);
        EXPECT_EQ(PrivateDataOf(cr), request);
        DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(event.cr_handle, ep, answer));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        const DAT_EP_PARAM shown = ParametersOf(ep);
        EXPECT_EQ(shown.comm.domain, AF_INET);
        EXPECT_EQ(shown.comm.type, SOCK_STREAM);
        EXPECT_EQ(shown.comm.protocol, IPPROTO_TCP);
        Must(dat_csp_free(csp));
        EXPECT_TRUE(Fails(dat_csp_free(csp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP));
        peer.Await("done");
      },
      [&](Peer& peer) {
        Side side;
        peer.Await("listening");
        DAT_EP_HANDLE ep = side.NewEp();
        sockaddr_in address = At(side, Port(0));
        Must(dat_ep_common_connect(ep, Pointer(address), kPatience,
                                   static_cast<DAT_COUNT>(request.size()),
                                   const_cast<uint8_t*>(request.data())));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(PrivateDataOf(event), answer);
        EXPECT_EQ(ParametersOf(ep).remote_port_qual, Port(0));
        // The qualifier of that number is the same service point; at the next one nobody listens.
        DAT_EP_HANDLE other = side.NewEp();
        address = At(side, Port(1));
        Must(dat_ep_common_connect(other, Pointer(address), kPatience, 0, nullptr));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, other);
        peer.Tell("done");
      });
}

TEST(Csp, S_Parameters) {
  RunAlone([] {
    Side side;
    sockaddr_in address = At(side, Port(0));
    DAT_CSP_HANDLE csp = DAT_HANDLE_NULL;
    auto create = [&](DAT_COMM comm, sockaddr_in at) {
      return dat_csp_create(side.ia, &comm, Pointer(at), side.cr_evd, &csp);
    };
    EXPECT_TRUE(Fails(create({AF_INET, SOCK_DGRAM, IPPROTO_UDP}, address), DAT_COMM_NOT_SUPPORTED));
    EXPECT_TRUE(Fails(create({AF_INET, SOCK_DGRAM, 0}, address), DAT_COMM_NOT_SUPPORTED));
    EXPECT_TRUE(
        Fails(create({AF_INET, SOCK_STREAM, IPPROTO_UDP}, address), DAT_COMM_NOT_SUPPORTED));
    EXPECT_TRUE(
        Fails(create({AF_INET6, SOCK_STREAM, IPPROTO_TCP}, address), DAT_COMM_NOT_SUPPORTED));
    EXPECT_TRUE(Fails(create(kStreams, At(side, 0)), DAT_INVALID_ADDRESS));
    sockaddr_in foreign = Ipv4("192.0.2.7");
    foreign.sin_port = htons(Port(0));
    EXPECT_TRUE(Fails(create(kStreams, foreign), DAT_INVALID_ADDRESS));
    DAT_COMM streams_over_ipv6 = {AF_INET6, SOCK_STREAM, IPPROTO_TCP};
    sockaddr_in6 loopback = {};  // where an IPv4 adapter does not listen
    loopback.sin6_family = AF_INET6;
    loopback.sin6_port = htons(Port(0));
    loopback.sin6_addr = in6addr_loopback;
    EXPECT_TRUE(
        Fails(dat_csp_create(side.ia, &streams_over_ipv6,
                             reinterpret_cast<DAT_IA_ADDRESS_PTR>(&loopback), side.cr_evd, &csp),
              DAT_INVALID_ADDRESS));
    EXPECT_TRUE(Fails(dat_csp_create(side.ia, nullptr, Pointer(address), side.cr_evd, &csp),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_csp_create(side.ia, &kStreams, nullptr, side.cr_evd, &csp),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(dat_csp_create(side.ia, &kStreams, Pointer(address), side.cr_evd, nullptr),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5));
    EXPECT_TRUE(Fails(dat_csp_create(side.ia, &kStreams, Pointer(address), side.request_evd, &csp),
                      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR));
    EXPECT_TRUE(Fails(dat_csp_create(side.pz, &kStreams, Pointer(address), side.cr_evd, &csp),
                      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA));
    Must(create(kStreams, address));
    DAT_CSP_HANDLE second;
    EXPECT_TRUE(Fails(dat_csp_create(side.ia, &kStreams, Pointer(address), side.cr_evd, &second),
                      DAT_PORT_IN_USE));
    DAT_PSP_HANDLE psp;
    EXPECT_TRUE(Fails(dat_psp_create(side.ia, Port(0), side.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp),
                      DAT_CONN_QUAL_IN_USE));
    DAT_CSP_PARAM param;
    EXPECT_TRUE(Fails(dat_csp_query(csp, static_cast<DAT_CSP_PARAM_MASK>(16), &param),
                      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    EXPECT_TRUE(Fails(dat_csp_query(csp, DAT_CSP_FIELD_ALL, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG3));
    DAT_HANDLE_TYPE type;
    Must(dat_get_handle_type(csp, &type));
    EXPECT_EQ(type, DAT_HANDLE_TYPE_CSP);
    EXPECT_TRUE(Fails(dat_psp_free(csp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP));
    EXPECT_TRUE(Fails(dat_evd_free(side.cr_evd), DAT_INVALID_STATE));
    Must(dat_csp_free(csp));
    loopback.sin6_addr = in6addr_any;  // which includes IPv4
    Must(dat_csp_create(side.ia, &streams_over_ipv6,
                        reinterpret_cast<DAT_IA_ADDRESS_PTR>(&loopback), side.cr_evd, &csp));
    Must(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
    EXPECT_EQ(param.comm->domain, AF_INET6);
    Must(dat_csp_free(csp));
    Must(create({AF_INET, SOCK_STREAM, 0}, address));  // 0 means the type's own protocol
    Must(dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
    EXPECT_EQ(param.comm->protocol, IPPROTO_TCP);
    Must(dat_csp_free(csp));
    Must(dat_evd_free(side.cr_evd));
    for (DAT_HANDLE bad : {DAT_HANDLE_NULL, csp, side.pz}) {  // C029
      EXPECT_TRUE(Fails(dat_csp_query(bad, DAT_CSP_FIELD_ALL, &param), DAT_INVALID_HANDLE,
                        DAT_INVALID_HANDLE_CSP));
      EXPECT_TRUE(Fails(dat_csp_free(bad), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP));
      EXPECT_TRUE(Fails(dat_ep_common_connect(bad, Pointer(address), kPatience, 0, nullptr),
                        DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP));
    }
  });
}

TEST(EpCommonConnect, S_Parameters) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    sockaddr_in address = At(side, Port(0));
    uint8_t data[8] = {};
    auto connect = [&](DAT_IA_ADDRESS_PTR to, DAT_TIMEOUT timeout, DAT_COUNT size, void* bytes) {
      return dat_ep_common_connect(ep, to, timeout, size, bytes);
    };
    EXPECT_TRUE(
        Fails(connect(nullptr, kSecond, 0, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
    sockaddr_in no_port = At(side, 0);
    EXPECT_TRUE(Fails(connect(Pointer(no_port), kSecond, 0, nullptr), DAT_INVALID_ADDRESS));
    sockaddr_in any = Ipv4("0.0.0.0");
    EXPECT_TRUE(Fails(connect(Pointer(any), kSecond, 0, nullptr), DAT_INVALID_ADDRESS));
    EXPECT_TRUE(
        Fails(connect(Pointer(address), 0, 0, nullptr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3));
    EXPECT_TRUE(Fails(connect(Pointer(address), kSecond, -1, data), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG4));
    EXPECT_TRUE(
        Fails(connect(Pointer(address), kSecond, side.provider.max_private_data_size + 1, data),
              DAT_INVALID_PARAMETER, DAT_INVALID_ARG4));
    EXPECT_TRUE(Fails(connect(Pointer(address), kSecond, 8, nullptr), DAT_INVALID_PARAMETER,
                      DAT_INVALID_ARG5));
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
  });
}

}  // namespace
}  // namespace viaduct::tests

#endif
