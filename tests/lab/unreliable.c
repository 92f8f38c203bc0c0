/* Two VIs of unreliable delivery, of which one may be on an RDMA device and the other on the soft
 * one: a message that is too long for an RDMA device's end fails when it is posted, at either end.
 * Everything else arrives, and the connection stays.
 *
 * usage: unreliable NIC serve|ADDRESS
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/via_end.h"

enum {
  kPort = 7196,
  kShort = 1000,
  kLongest = 65536, /* viaduct(7) */
  kTooLong = 100000,
  kLargest = 1 << 20,
  kReceives = 3
};

static struct memory {
  VIP_DESCRIPTOR receives[kReceives];
  VIP_DESCRIPTOR request;
  char received[kReceives][kLongest];
  char sent[kTooLong];
} memory __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)));

static VIP_VI_HANDLE vi;

static void expect(int holds, const char *what) {
  if (holds) return;
  printf("not so: %s\n", what);
  exit(1);
}

static void begin(void) {
  int i;
  vi = make_vi(VIP_SERVICE_UNRELIABLE, kLargest);
  for (i = 0; i < kReceives; i++) {
    fill(&memory.receives[i], memory.received[i], kLongest);
    must(VipPostRecv(vi, &memory.receives[i], memory_handle), "VipPostRecv");
  }
}

static void say(char what, uint32_t size) {
  memset(memory.sent, what, size);
  fill(&memory.request, memory.sent, size);
  complete(vi, &memory.request, "sending");
}

static void hear(char what, uint32_t size) {
  VIP_DESCRIPTOR *done;
  const char *bytes;
  must(VipRecvWait(vi, kPatience, &done), "VipRecvWait");
  bytes = memory.received[done - memory.receives];
  expect(done->CS.Length == size, "a message has its length");
  expect(bytes[0] == what && bytes[size - 1] == what, "a message has its bytes");
}

static void say_too_much(void) {
  VIP_DESCRIPTOR *done;
  fill(&memory.request, memory.sent, kTooLong);
  must(VipPostSend(vi, &memory.request, memory_handle), "VipPostSend");
  expect(VipSendWait(vi, kPatience, &done) == VIP_DESCRIPTOR_ERROR && done == &memory.request &&
             (done->CS.Status & VIP_STATUS_LENGTH_ERROR) != 0,
         "a message that is too long fails where it is posted");
  expect(state_of(vi) == VIP_STATE_CONNECTED, "the VI stays connected");
}

int main(int argc, char **argv) {
  VIP_VI_ATTRIBUTES theirs;
  VIP_DESCRIPTOR *left;
  if (argc != 3) return 2;
  open_nic(argv[1], &memory, sizeof memory);
  if (strcmp(argv[2], "serve") == 0) {
    const VIP_CONN_HANDLE asked = await_request(kPort);
    begin();
    must(VipConnectAccept(asked, vi), "VipConnectAccept");
    hear('q', kShort);
    say('a', kShort);
    say_too_much();
    hear('Q', kLongest);
    say('A', kLongest);
    hear('e', 1);
  } else {
    begin();
    must(request(vi, argv[2], kPort, kPatience, &theirs), "VipConnectRequest");
    say_too_much();
    say('q', kShort);
    hear('a', kShort);
    say_too_much();
    say('Q', kLongest);
    hear('A', kLongest);
    say('e', 1);
  }
  must(VipDisconnect(vi), "VipDisconnect");
  while (VipRecvDone(vi, &left) == VIP_DESCRIPTOR_ERROR && left != NULL) {
  }
  must(VipDestroyVi(vi), "VipDestroyVi");
  must(VipCloseNic(nic), "VipCloseNic");
  printf("done\n");
  return 0;
}
