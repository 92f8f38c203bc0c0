/* Either side of rping's conversation, as a VIPL program: the other side is rdma-core's rping itself, which knows
 * nothing of VIPL. See rping_peer.c for the conversation.
 *
 * usage: rping_via NIC serve|ADDRESS [COUNT [SIZE]]
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vipl.h>

enum { kPort = 7174, kLargest = 65536, kPatience = 20000, kHeld = 2 };

struct message {
  uint64_t address;
  uint32_t key;
  uint32_t size;
};

static struct room { /* registered as one region */
  VIP_DESCRIPTOR receives[kHeld];
  VIP_DESCRIPTOR request;
  struct message received[kHeld];
  struct message sent;
  char shown[kLargest];
  char place[kLargest];
} room __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)));

union address {
  VIP_NET_ADDRESS net;
  char space[64];
};

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_VI_HANDLE vi;
static VIP_MEM_HANDLE memory;

static void must(VIP_RETURN code, const char *what) {
  if (code == VIP_SUCCESS) return;
  fprintf(stderr, "%s: %d\n", what, (int)code);
  exit(1);
}

/* The discriminator of a port that others know by its number: eight bytes, the most significant first. */
static void name(union address *to, const void *host) {
  const uint64_t port = htobe64(kPort);
  memset(to, 0, sizeof *to);
  to->net.HostAddressLen = nic_attributes.NicAddressLen;
  to->net.DiscriminatorLen = sizeof port;
  memcpy(to->net.HostAddress, host, nic_attributes.NicAddressLen);
  memcpy(to->net.HostAddress + nic_attributes.NicAddressLen, &port, sizeof port);
}

static void fill(VIP_DESCRIPTOR *descriptor, void *data, uint32_t size) {
  memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = size;
  descriptor->DS[0].Local.Data.Address = data;
  descriptor->DS[0].Local.Handle = memory;
  descriptor->DS[0].Local.Length = size;
}

static void post_receive(int which) {
  fill(&room.receives[which], &room.received[which], sizeof room.received[which]);
  must(VipPostRecv(vi, &room.receives[which], memory), "VipPostRecv");
}

/* The next message; its descriptor is posted again. */
static struct message receive(void) {
  VIP_DESCRIPTOR *done;
  struct message message;
  int which;
  must(VipRecvWait(vi, kPatience, &done), "VipRecvWait");
  which = (int)(done - room.receives);
  message.address = be64toh(room.received[which].address);
  message.key = ntohl(room.received[which].key);
  message.size = ntohl(room.received[which].size);
  post_receive(which);
  return message;
}

static void complete(const char *what) {
  VIP_DESCRIPTOR *done;
  must(VipPostSend(vi, &room.request, memory), what);
  must(VipSendWait(vi, kPatience, &done), what);
}

static void say(void *start, uint32_t size) {
  room.sent.address = htobe64((uint64_t)(uintptr_t)start);
  room.sent.key = htonl(memory);
  room.sent.size = htonl(size);
  fill(&room.request, &room.sent, sizeof room.sent);
  complete("send");
}

static void move(VIP_UINT16 operation, const struct message *there, uint32_t size) {
  fill(&room.request, room.place, size);
  room.request.CS.Control = operation;
  room.request.CS.SegCount = 2;
  room.request.DS[1] = room.request.DS[0];
  room.request.DS[0].Remote.Data.AddressBits = there->address;
  room.request.DS[0].Remote.Handle = there->key;
  room.request.DS[0].Remote.Reserved = 0;
  complete(operation == VIP_CONTROL_OP_RDMAREAD ? "RDMA read" : "RDMA write");
}

static void open_nic(const char *device) {
  VIP_MEM_ATTRIBUTES rights;
  VIP_VI_ATTRIBUTES attributes;
  int i;
  must(VipOpenNic(device, &nic), "VipOpenNic");
  must(VipQueryNic(nic, &nic_attributes), "VipQueryNic");
  memset(&rights, 0, sizeof rights);
  rights.EnableRdmaWrite = rights.EnableRdmaRead = VIP_TRUE;
  must(VipRegisterMem(nic, &room, sizeof room, &rights, &memory), "VipRegisterMem");
  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes.MaxTransferSize = kLargest;
  attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_TRUE;
  must(VipCreateVi(nic, &attributes, NULL, NULL, &vi), "VipCreateVi");
  for (i = 0; i < kHeld; i++) post_receive(i);
}

static void await_end(void) {
  VIP_DESCRIPTOR *done;
  const VIP_RETURN code = VipRecvWait(vi, kPatience, &done);
  if (code != VIP_DESCRIPTOR_ERROR) {
    fprintf(stderr, "the end: %d\n", (int)code);
    exit(1);
  }
}

static void serve(long count) {
  union address local, remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  name(&local, nic_attributes.LocalNicAddress);
  memset(&remote, 0, sizeof remote);
  printf("listening\n");
  fflush(stdout);
  must(VipConnectWait(nic, &local.net, kPatience, &remote.net, &attributes, &connection), "VipConnectWait");
  must(VipConnectAccept(connection, vi), "VipConnectAccept");
  for (; count > 0; count--) {
    struct message message = receive();
    const uint32_t size = message.size;
    if (size > kLargest) exit(1);
    move(VIP_CONTROL_OP_RDMAREAD, &message, size);
    say(NULL, 0); /* go ahead */
    message = receive();
    move(VIP_CONTROL_OP_RDMAWRITE, &message, size);
    say(NULL, 0); /* done */
  }
  await_end();
}

static void dial(const char *host, long count, uint32_t size) {
  union address local, remote;
  VIP_VI_ATTRIBUTES theirs;
  VIP_UINT8 found[64];
  long round;
  uint32_t i;
  must(VipNSInit(nic, NULL), "VipNSInit");
  memset(found, 0, sizeof found);
  must(VipNSGetHostByName(nic, (char *)host, (VIP_NET_ADDRESS *)found, 0), "VipNSGetHostByName");
  name(&local, nic_attributes.LocalNicAddress);
  name(&remote, ((VIP_NET_ADDRESS *)found)->HostAddress);
  must(VipConnectRequest(vi, &local.net, &remote.net, kPatience, &theirs), "VipConnectRequest");
  /* The peer has no attributes to show: they are our own. */
  if (theirs.ReliabilityLevel != VIP_SERVICE_RELIABLE_DELIVERY || theirs.MaxTransferSize != kLargest) {
    fprintf(stderr, "the peer's attributes: %d, %lu\n", theirs.ReliabilityLevel, (unsigned long)theirs.MaxTransferSize);
    exit(1);
  }
  for (round = 0; round < count; round++) {
    /* Without an inner zero, since rping writes back as far as the first. */
    for (i = 0; i + 1 < size; i++) room.shown[i] = (char)('A' + (i + (uint32_t)round) % 26);
    room.shown[size - 1] = 0;
    say(room.shown, size);
    receive();
    say(room.place, size);
    receive();
    if (memcmp(room.shown, room.place, size) != 0) {
      fprintf(stderr, "round %ld: other bytes came back\n", round);
      exit(1);
    }
  }
  must(VipDisconnect(vi), "VipDisconnect");
}

int main(int argc, char **argv) {
  const long count = argc > 3 ? atol(argv[3]) : 10;
  const long size = argc > 4 ? atol(argv[4]) : 64;
  if (argc < 3 || argc > 5 || count < 1 || size < 2 || size > kLargest) {
    fprintf(stderr, "usage: rping_via NIC serve|ADDRESS [COUNT [SIZE]]\n");
    return 2;
  }
  open_nic(argv[1]);
  if (strcmp(argv[2], "serve") == 0) {
    serve(count);
  } else {
    dial(argv[2], count, (uint32_t)size);
  }
  VipCloseNic(nic);
  printf("%ld rounds of %ld bytes\n", count, size);
  return 0;
}
