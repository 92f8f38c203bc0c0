/*
 * ring JOB RANK HOST...: a block of words goes round by RDMA writes. Nothing announces an arrival:
 * the last word of the block is the number of the round, written with all others in one descriptor,
 * and the next process spins on it. When it has that number, the rest of the block must be there.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vialink.h"

#define WORDS 4096
#define ROUNDS 200

/* What a process must know of its successor. */
struct target {
  VIP_UINT64 address;
  VIP_MEM_HANDLE handle;
};

static int rank, size;
static unsigned long job;
static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_MEM_HANDLE memory;

static void must(const char *what, VIP_RETURN code) {
  if (code == VIP_SUCCESS) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, via_text(code));
  exit(1);
}

static void name_rank(union via_address *address, int of, const VIP_UINT8 *host,
                      VIP_UINT16 length) {
  via_set_address(address, host, length, (job & 0xffffff) << 32 | 0x72670000UL | (unsigned)of);
}

static void connect_next(VIP_VI_HANDLE vi, char *host) {
  union via_address local, remote, found;
  VIP_VI_ATTRIBUTES attributes;
  VIP_RETURN code;

  must(host, VipNSGetHostByName(nic, host, &found.net, 0));
  name_rank(&remote, (rank + 1) % size, found.net.HostAddress, found.net.HostAddressLen);
  name_rank(&local, rank, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
  do {
    code = VipConnectRequest(vi, &local.net, &remote.net, 60000, &attributes);
  } while (code == VIP_NO_MATCH);
  must("VipConnectRequest", code);
  if (!attributes.EnableRdmaWrite) must("the next process", VIP_INVALID_STATE);
}

static void wait_previous(VIP_VI_HANDLE vi) {
  union via_address local, remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;

  name_rank(&local, rank, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
  must("VipConnectWait",
       VipConnectWait(nic, &local.net, 60000, &remote.net, &attributes, &connection));
  must("VipConnectAccept", VipConnectAccept(connection, vi));
}

static void fill(VIP_DESCRIPTOR *descriptor, void *data, unsigned length) {
  memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = length;
  descriptor->DS[0].Local.Data.Address = data;
  descriptor->DS[0].Local.Handle = memory;
  descriptor->DS[0].Local.Length = length;
}

static void await(VIP_VI_HANDLE vi, int receive) {
  VIP_DESCRIPTOR *done;

  if (receive) {
    must("VipRecvWait", VipRecvWait(vi, VIP_INFINITE, &done));
  } else {
    must("VipSendWait", VipSendWait(vi, VIP_INFINITE, &done));
  }
}

static void pass_on(VIP_VI_HANDLE vi, VIP_DESCRIPTOR *descriptor, unsigned *words, unsigned round,
                    const struct target *target) {
  int i;

  for (i = 0; i < WORDS; i++) words[i] = round;
  fill(descriptor, words, WORDS * sizeof(unsigned));
  descriptor->CS.Control = VIP_CONTROL_OP_RDMAWRITE;
  descriptor->CS.SegCount = 2;
  descriptor->DS[1] = descriptor->DS[0];
  descriptor->DS[0].Remote.Data.AddressBits = target->address;
  descriptor->DS[0].Remote.Handle = target->handle;
  descriptor->DS[0].Remote.Reserved = 0;
  must("VipPostSend", VipPostSend(vi, descriptor, memory));
  await(vi, 0);
}

int main(int argc, char **argv) {
  /* Two descriptors, this target and the successor's, the words that come and those that go. */
  struct room {
    VIP_DESCRIPTOR descriptors[2];
    struct target mine, next;
    unsigned in[WORDS], out[WORDS];
  } * room;
  VIP_VI_HANDLE next, previous;
  VIP_DESCRIPTOR *farewell;
  VIP_VI_ATTRIBUTES attributes;
  VIP_MEM_ATTRIBUTES rights;
  char *pages, *block;
  unsigned round;
  int i;

  size = argc - 3;
  rank = size < 2 ? -1 : via_parse_rank(argv[2], size);
  if (rank < 0) {
    fprintf(stderr, "usage: %s JOB RANK HOST HOST...\n", argv[0]);
    return 2;
  }
  job = strtoul(argv[1], NULL, 10);
  must("VipOpenNic", VipOpenNic("nic0", &nic));
  must("VipQueryNic", VipQueryNic(nic, &nic_attributes));
  must("VipNSInit", VipNSInit(nic, NULL));
  pages = calloc(1, sizeof *room + VIP_DESCRIPTOR_ALIGNMENT);
  if (pages == NULL) must("calloc", VIP_ERROR_RESOURCE);
  block = pages;
  while ((VIP_ULONG)block % VIP_DESCRIPTOR_ALIGNMENT != 0) block++;
  room = (struct room *)block;
  memset(&rights, 0, sizeof rights);
  rights.EnableRdmaWrite = VIP_TRUE;
  must("VipRegisterMem", VipRegisterMem(nic, room, sizeof *room, &rights, &memory));
  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_RECEPTION; /* complete when in place */
  attributes.MaxTransferSize = WORDS * sizeof(unsigned);
  attributes.EnableRdmaWrite = VIP_TRUE;
  must("VipCreateVi", VipCreateVi(nic, &attributes, NULL, NULL, &next));
  must("VipCreateVi", VipCreateVi(nic, &attributes, NULL, NULL, &previous));

  /* The successor sends where its words lie, over the connection that will carry them. */
  fill(&room->descriptors[0], &room->next, sizeof room->next);
  must("VipPostRecv", VipPostRecv(next, &room->descriptors[0], memory));
  if (rank % 2 == 0) {
    connect_next(next, argv[3 + (rank + 1) % size]);
    wait_previous(previous);
  } else {
    wait_previous(previous);
    connect_next(next, argv[3 + (rank + 1) % size]);
  }
  room->mine.address = (VIP_UINT64)room->in;
  room->mine.handle = memory;
  fill(&room->descriptors[1], &room->mine, sizeof room->mine);
  must("VipPostSend", VipPostSend(previous, &room->descriptors[1], memory));
  await(previous, 0);
  await(next, 1);
  fill(&room->descriptors[1], NULL, 0); /* for the farewell */
  room->descriptors[1].CS.SegCount = 0;
  must("VipPostRecv", VipPostRecv(previous, &room->descriptors[1], memory));

  for (round = 1; round <= ROUNDS; round++) {
    if (rank == 0) pass_on(next, &room->descriptors[0], room->out, round, &room->next);
    while (*(volatile unsigned *)&room->in[WORDS - 1] != round) sched_yield();
    for (i = 0; i < WORDS; i++) {
      if (room->in[i] != round) {
        fprintf(stderr, "rank %d: word %d is of round %u in round %u\n", rank, i, room->in[i],
                round);
        return 1;
      }
    }
    if (rank != 0) pass_on(next, &room->descriptors[0], room->out, round, &room->next);
  }
  printf("rank %d of %d: %d rounds\n", rank, size, ROUNDS);
  fflush(stdout);
  /* A write completes when its target has confirmed it: nobody may leave before its predecessor has
     that confirmation. Whether the farewell itself is confirmed does not matter to its sender. */
  fill(&room->descriptors[0], NULL, 0);
  room->descriptors[0].CS.SegCount = 0;
  must("VipPostSend", VipPostSend(next, &room->descriptors[0], memory));
  await(previous, 1);
  VipSendWait(next, VIP_INFINITE, &farewell);
  must("VipCloseNic", VipCloseNic(nic));
  free(pages);
  return 0;
}
