#include "tests/lab/via_end.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

union address {
  VIP_NET_ADDRESS net;
  char space[64];
};

VIP_NIC_HANDLE nic;
VIP_MEM_HANDLE memory_handle;
static VIP_NIC_ATTRIBUTES nic_attributes;

void must(VIP_RETURN code, const char *what) {
  if (code == VIP_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, (int)code);
  exit(1);
}

VIP_VI_STATE state_of(VIP_VI_HANDLE vi) {
  VIP_VI_STATE state;
  VIP_VI_ATTRIBUTES attributes;
  VIP_BOOLEAN sends_done, receives_done;
  must(VipQueryVi(vi, &state, &attributes, &sends_done, &receives_done), "VipQueryVi");
  return state;
}

const char *name_of_return(VIP_RETURN code) {
  switch (code) {
    case VIP_SUCCESS:
      return "VIP_SUCCESS";
    case VIP_TIMEOUT:
      return "VIP_TIMEOUT";
    case VIP_REJECT:
      return "VIP_REJECT";
    case VIP_NO_MATCH:
      return "VIP_NO_MATCH";
    case VIP_NOT_REACHABLE:
      return "VIP_NOT_REACHABLE";
    case VIP_ERROR_RESOURCE:
      return "VIP_ERROR_RESOURCE";
    default:
      return "another answer";
  }
}

const char *name_of_state(VIP_VI_HANDLE vi) {
  switch (state_of(vi)) {
    case VIP_STATE_IDLE:
      return "VIP_STATE_IDLE";
    case VIP_STATE_ERROR:
      return "VIP_STATE_ERROR";
    default:
      return "another state";
  }
}

static void name(union address *to, const void *host, uint64_t port) {
  const uint64_t qualifier = htobe64(port);
  memset(to, 0, sizeof *to);
  to->net.HostAddressLen = nic_attributes.NicAddressLen;
  to->net.DiscriminatorLen = sizeof qualifier;
  memcpy(to->net.HostAddress, host, nic_attributes.NicAddressLen);
  memcpy(to->net.HostAddress + nic_attributes.NicAddressLen, &qualifier, sizeof qualifier);
}

static void name_own(union address *to, uint64_t port) {
  name(to, nic_attributes.LocalNicAddress, port);
}

static void name_of_host(union address *to, const char *host, uint64_t port) {
  union address found;
  must(VipNSInit(nic, NULL), "VipNSInit");
  memset(&found, 0, sizeof found);
  must(VipNSGetHostByName(nic, (char *)host, &found.net, 0), "VipNSGetHostByName");
  name(to, found.net.HostAddress, port);
}

VIP_RETURN next_request(uint64_t port, VIP_ULONG patience, VIP_CONN_HANDLE *connection) {
  union address local, remote;
  VIP_VI_ATTRIBUTES theirs;
  name_own(&local, port);
  memset(&remote, 0, sizeof remote);
  return VipConnectWait(nic, &local.net, patience, &remote.net, &theirs, connection);
}

VIP_CONN_HANDLE await_request(uint64_t port) {
  VIP_CONN_HANDLE connection;
  must(next_request(port, kPatience, &connection), "VipConnectWait");
  return connection;
}

VIP_RETURN request(VIP_VI_HANDLE vi, const char *host, uint64_t port, VIP_ULONG patience,
                   VIP_VI_ATTRIBUTES *theirs) {
  union address local, remote;
  name_own(&local, port);
  name_of_host(&remote, host, port);
  return VipConnectRequest(vi, &local.net, &remote.net, patience, theirs);
}

void fill(VIP_DESCRIPTOR *descriptor, void *data, uint32_t size) {
  memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = size;
  descriptor->DS[0].Local.Data.Address = data;
  descriptor->DS[0].Local.Handle = memory_handle;
  descriptor->DS[0].Local.Length = size;
}

void fill_rdma(VIP_DESCRIPTOR *descriptor, VIP_UINT16 operation, void *data, uint32_t size,
               uint64_t there, uint32_t key) {
  fill(descriptor, data, size);
  descriptor->CS.Control = operation;
  descriptor->CS.SegCount = 2;
  descriptor->DS[1] = descriptor->DS[0];
  descriptor->DS[0].Remote.Data.AddressBits = there;
  descriptor->DS[0].Remote.Handle = key;
  descriptor->DS[0].Remote.Reserved = 0;
}

void complete(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor, const char *what) {
  VIP_DESCRIPTOR *done;
  must(VipPostSend(vi, descriptor, memory_handle), what);
  must(VipSendWait(vi, kPatience, &done), what);
}

void open_nic(const char *device, void *memory, size_t bytes) {
  VIP_MEM_ATTRIBUTES rights;
  must(VipOpenNic(device, &nic), "VipOpenNic");
  must(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
  memset(&rights, 0, sizeof rights);
  rights.EnableRdmaWrite = rights.EnableRdmaRead = VIP_TRUE;
  must(VipRegisterMem(nic, memory, bytes, &rights, &memory_handle), "VipRegisterMem");
}

VIP_VI_HANDLE make_vi(VIP_RELIABILITY_LEVEL level, uint32_t largest) {
  VIP_VI_ATTRIBUTES attributes;
  VIP_VI_HANDLE vi;
  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = level;
  attributes.MaxTransferSize = largest;
  attributes.EnableRdmaWrite = VIP_TRUE;
  attributes.EnableRdmaRead = level != VIP_SERVICE_UNRELIABLE;
  must(VipCreateVi(nic, &attributes, NULL, NULL, &vi), "VipCreateVi");
  return vi;
}
