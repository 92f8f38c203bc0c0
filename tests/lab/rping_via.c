/* Either side of rping's conversation, as a VIPL program: the other side is rdma-core's rping
 * itself, which knows nothing of VIPL. See rping_peer.c for the conversation.
 *
 * usage: rping_via NIC serve|ADDRESS [COUNT [SIZE]]
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/via_end.h"

enum { kPort = 7174, kLargest = 65536, kHeld = 2 };

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

static VIP_VI_HANDLE vi;

static void post_receive(int which) {
  fill(&room.receives[which], &room.received[which], sizeof room.received[which]);
  must(VipPostRecv(vi, &room.receives[which], memory_handle), "VipPostRecv");
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

static void say(void *start, uint32_t size) {
  room.sent.address = htobe64((uint64_t)(uintptr_t)start);
  room.sent.key = htonl(memory_handle);
  room.sent.size = htonl(size);
  fill(&room.request, &room.sent, sizeof room.sent);
  complete(vi, &room.request, "send");
}

static void move(VIP_UINT16 operation, const struct message *there, uint32_t size) {
  fill_rdma(&room.request, operation, room.place, size, there->address, there->key);
  complete(vi, &room.request, operation == VIP_CONTROL_OP_RDMAREAD ? "RDMA read" : "RDMA write");
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
  printf("listening\n");
  fflush(stdout);
  must(VipConnectAccept(await_request(kPort), vi), "VipConnectAccept");
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
  VIP_VI_ATTRIBUTES theirs;
  long round;
  uint32_t i;
  must(request(vi, host, kPort, kPatience, &theirs), "VipConnectRequest");
  /* The peer has no attributes to show: they are our own. */
  if (theirs.ReliabilityLevel != VIP_SERVICE_RELIABLE_DELIVERY ||
      theirs.MaxTransferSize != kLargest) {
    fprintf(stderr, "the peer's attributes: %d, %lu\n", theirs.ReliabilityLevel,
            (unsigned long)theirs.MaxTransferSize);
    exit(1);
  }
  for (round = 0; round < count; round++) {
    /* No zero before the end, because rping writes back only up to the first one. */
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
  int i;
  if (argc < 3 || argc > 5 || count < 1 || size < 2 || size > kLargest) {
    fprintf(stderr, "usage: rping_via NIC serve|ADDRESS [COUNT [SIZE]]\n");
    return 2;
  }
  open_nic(argv[1], &room, sizeof room);
  vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, kLargest);
  for (i = 0; i < kHeld; i++) post_receive(i);
  if (strcmp(argv[2], "serve") == 0) {
    serve(count);
  } else {
    dial(argv[2], count, (uint32_t)size);
  }
  VipCloseNic(nic);
  printf("%ld rounds of %ld bytes\n", count, size);
  return 0;
}
