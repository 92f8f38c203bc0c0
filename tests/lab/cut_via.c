/* cut_dat.c's client as a VIPL program.
 *
 * usage: cut_via NIC ADDRESS COMMAND
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/lab/cut.h"
#include "tests/lab/via_end.h"

static struct memory { /* registered as one region */
  VIP_DESCRIPTOR receive;
  VIP_DESCRIPTOR requests[kSends + 1];
  struct cut_memory cut;
} memory __attribute__((aligned(VIP_DESCRIPTOR_ALIGNMENT)));

static struct place *const there = &memory.cut.there;

static VIP_VI_HANDLE dial(const char *host) {
  const VIP_VI_HANDLE vi = make_vi(VIP_SERVICE_RELIABLE_DELIVERY, kBytes);
  VIP_VI_ATTRIBUTES theirs;
  VIP_RETURN answer;
  fill(&memory.receive, there, sizeof *there);
  must(VipPostRecv(vi, &memory.receive, memory_handle), "VipPostRecv");
  answer = request(vi, host, kPort, kShort, &theirs);
  printf("connecting: %s\n", name_of_return(answer));
  return vi;
}

static void post(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor) {
  must(VipPostSend(vi, descriptor, memory_handle), "VipPostSend");
}

static void talk(VIP_VI_HANDLE vi, const char *cut) {
  VIP_DESCRIPTOR *const requests = memory.requests, *done;
  int i, succeeded = 0;
  fill(requests, memory.cut.sent, 1);
  complete(vi, requests, "sending");
  must(VipRecvWait(vi, kPatience, &done), "VipRecvWait");
  fill_rdma(requests, VIP_CONTROL_OP_RDMAREAD, memory.cut.sent, kBytes, there->address, there->key);
  complete(vi, requests, "reading");

  for (i = 0; i < kSends / 2; i++) {
    fill(&requests[i], memory.cut.sent, kBytes);
    post(vi, &requests[i]);
  }
  if (system(cut) != 0) exit(1);
  fill_rdma(&requests[kSends], VIP_CONTROL_OP_RDMAREAD, memory.cut.sent, kBytes, there->address,
            there->key);
  post(vi, &requests[kSends]);
  for (i = kSends / 2; i < kSends; i++) {
    fill(&requests[i], memory.cut.sent, kBytes);
    post(vi, &requests[i]);
  }

  must(VipDisconnect(vi), "VipDisconnect");
  printf("the end: %s\n", name_of_state(vi));
  for (i = 0; i < kSends + 1; i++) succeeded += VipSendDone(vi, &done) == VIP_SUCCESS;
  printf("requests: %s\n", succeeded <= kSends ? "flushed" : "all done");
  must(VipDestroyVi(vi), "VipDestroyVi");
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  open_nic(argv[1], &memory, sizeof memory);
  talk(dial(argv[2]), argv[3]);
  printf("the VI: %s\n", name_of_state(dial(argv[2])));
  must(VipCloseNic(nic), "VipCloseNic");
  printf("closed\n");
  return 0;
}
