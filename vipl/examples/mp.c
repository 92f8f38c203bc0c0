#include "mp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vialink.h"

/*
 * Each process posts RECEIVES descriptors for every other. RESERVE of them are for messages without
 * bytes, the rest are the credits of the other side. Credits go back in the immediate data of the
 * next message, or alone once BACK of them have accumulated. A process that has used all its
 * credits cannot make more than two messages with credits come before it has taken one, and there
 * is never more than one BARRIER on its way, so the reserve is never exhausted.
 */
#define RECEIVES 16
#define RESERVE 3
#define CREDITS (RECEIVES - RESERVE)
#define BACK (CREDITS / 2)
#define BARRIER 0x80000000U /* in the immediate data */
#define SENDS 8
#define SLOT (sizeof(VIP_DESCRIPTOR) + MP_MAX_BYTES)

struct mp_peer {
  VIP_VI_HANDLE vi;
  unsigned credits;      /* messages that it has room for */
  unsigned owed;         /* receives posted again, not reported yet */
  unsigned barriers;     /* arrived, not waited for yet */
  int gone;              /* has hung up */
  VIP_DESCRIPTOR *idle;  /* free sends, chained by CS.Next */
  VIP_DESCRIPTOR *first; /* messages that wait for mp_receive */
  VIP_DESCRIPTOR *last;
};

static struct mp_peer peers[MP_MAX_SIZE];
static int my_rank, my_size;
static volatile int finishing; /* the error handler reads it on another thread */
static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_PROTECTION_HANDLE ptag;
static VIP_CQ_HANDLE cq;
static VIP_MEM_HANDLE memory;
static char *block;

void mp_die(const char *what, VIP_RETURN code) {
  fprintf(stderr, "rank %d: %s: %s\n", my_rank, what, via_text(code));
  exit(1);
}

static void must(const char *what, VIP_RETURN code) {
  if (code != VIP_SUCCESS) mp_die(what, code);
}

int mp_rank(void) { return my_rank; }
int mp_size(void) { return my_size; }

/* A lost connection is fatal, unless everybody is about to leave. */
static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
  (void)context;
  if (finishing && error->ErrorCode == VIP_ERROR_CONN_LOST) return;
  fprintf(stderr, "rank %d: asynchronous error %d\n", my_rank, (int)error->ErrorCode);
  exit(1);
}

/* ---- Descriptors ---- */

static char *data_of(VIP_DESCRIPTOR *descriptor) { return (char *)(descriptor + 1); }

static void post_receive(struct mp_peer *peer, VIP_DESCRIPTOR *descriptor) {
  memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = MP_MAX_BYTES;
  descriptor->DS[0].Local.Data.Address = data_of(descriptor);
  descriptor->DS[0].Local.Handle = memory;
  descriptor->DS[0].Local.Length = MP_MAX_BYTES;
  must("VipPostRecv", VipPostRecv(peer->vi, descriptor, memory));
}

static void make_idle(struct mp_peer *peer, VIP_DESCRIPTOR *descriptor) {
  descriptor->CS.Next.Address = peer->idle;
  peer->idle = descriptor;
}

/* Sends the bytes after the descriptor, and all credits that are owed. */
static void post_send(struct mp_peer *peer, VIP_DESCRIPTOR *descriptor, unsigned length,
                      unsigned flag) {
  descriptor->CS.SegCount = length != 0;
  descriptor->CS.Control = VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
  descriptor->CS.Reserved = 0;
  descriptor->CS.ImmediateData = peer->owed | flag;
  descriptor->CS.Length = length;
  descriptor->CS.Status = 0;
  descriptor->DS[0].Local.Data.Address = data_of(descriptor);
  descriptor->DS[0].Local.Handle = memory;
  descriptor->DS[0].Local.Length = length;
  peer->owed = 0;
  must("VipPostSend", VipPostSend(peer->vi, descriptor, memory));
}

/* ---- Progress ---- */

static struct mp_peer *peer_of(VIP_VI_HANDLE vi) {
  int rank;

  for (rank = 0; rank < my_size; rank++) {
    if (peers[rank].vi == vi) return &peers[rank];
  }
  mp_die("a completion of an unknown VI", VIP_INVALID_PARAMETER);
  return NULL;
}

/* A message without bytes is for this layer only. */
static void took_receive(struct mp_peer *peer, VIP_DESCRIPTOR *descriptor) {
  peer->credits += descriptor->CS.ImmediateData & ~BARRIER;
  if (descriptor->CS.ImmediateData & BARRIER) peer->barriers++;
  if (descriptor->CS.Length == 0) {
    post_receive(peer, descriptor);
    return;
  }
  descriptor->CS.Next.Address = NULL;
  if (peer->last != NULL) {
    peer->last->CS.Next.Address = descriptor;
  } else {
    peer->first = descriptor;
  }
  peer->last = descriptor;
}

/* Sleeps until something has completed, and takes it. */
static void progress(void) {
  struct mp_peer *peer;
  VIP_VI_HANDLE vi;
  VIP_BOOLEAN is_receive;
  VIP_DESCRIPTOR *descriptor;
  VIP_RETURN code;

  must("VipCQWait", VipCQWait(cq, VIP_INFINITE, &vi, &is_receive));
  peer = peer_of(vi);
  code = is_receive ? VipRecvDone(vi, &descriptor) : VipSendDone(vi, &descriptor);
  /* Other ranks may have hung up already; rank 0 does so last. */
  if (code == VIP_DESCRIPTOR_ERROR && finishing && peer != &peers[0]) {
    peer->gone = 1;
    return;
  }
  must("a descriptor", code);
  if (is_receive) {
    took_receive(peer, descriptor);
  } else {
    make_idle(peer, descriptor);
  }
}

static VIP_DESCRIPTOR *take_idle(struct mp_peer *peer) {
  VIP_DESCRIPTOR *descriptor;

  while (peer->idle == NULL) progress();
  descriptor = peer->idle;
  peer->idle = descriptor->CS.Next.Address;
  return descriptor;
}

/* ---- Messages ---- */

void mp_send(int to, const void *data, unsigned length) {
  struct mp_peer *peer = &peers[to];
  VIP_DESCRIPTOR *descriptor;

  if (to == my_rank || length == 0 || length > MP_MAX_BYTES) {
    mp_die("mp_send", VIP_INVALID_PARAMETER);
  }
  while (peer->credits == 0) progress();
  descriptor = take_idle(peer);
  peer->credits--;
  memcpy(data_of(descriptor), data, length);
  post_send(peer, descriptor, length, 0);
}

static int rank_with_message(int from) {
  int rank;

  if (from != MP_ANY) return peers[from].first != NULL ? from : MP_ANY;
  for (rank = 0; rank < my_size; rank++) {
    if (peers[rank].first != NULL) return rank;
  }
  return MP_ANY;
}

int mp_receive(int from, void *data, unsigned *length) {
  struct mp_peer *peer;
  VIP_DESCRIPTOR *descriptor;
  int rank;

  while ((rank = rank_with_message(from)) == MP_ANY) progress();
  peer = &peers[rank];
  descriptor = peer->first;
  peer->first = descriptor->CS.Next.Address;
  if (peer->first == NULL) peer->last = NULL;
  *length = descriptor->CS.Length;
  memcpy(data, data_of(descriptor), *length);
  post_receive(peer, descriptor);
  if (++peer->owed >= BACK) post_send(peer, take_idle(peer), 0, 0);
  return rank;
}

static void send_barrier(int rank) { post_send(&peers[rank], take_idle(&peers[rank]), 0, BARRIER); }

static void await_barrier(int rank) {
  while (peers[rank].barriers == 0) progress();
  peers[rank].barriers--;
}

void mp_barrier(void) {
  int rank;

  if (my_rank != 0) {
    send_barrier(0);
    await_barrier(0);
    return;
  }
  for (rank = 1; rank < my_size; rank++) await_barrier(rank);
  for (rank = 1; rank < my_size; rank++) send_barrier(rank);
}

/* ---- Connections ---- */

static void open_peer(struct mp_peer *peer, char *slots) {
  VIP_VI_ATTRIBUTES attributes;
  int i;

  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes.MaxTransferSize = MP_MAX_BYTES;
  attributes.Ptag = ptag;
  must("VipCreateVi", VipCreateVi(nic, &attributes, cq, cq, &peer->vi));
  peer->credits = CREDITS;
  for (i = 0; i < RECEIVES; i++) post_receive(peer, (VIP_DESCRIPTOR *)(slots + i * SLOT));
  for (; i < RECEIVES + SENDS; i++) make_idle(peer, (VIP_DESCRIPTOR *)(slots + i * SLOT));
}

/* Both the process that waits and the one that asks are named by job and rank. */
static void name_rank(union via_address *address, unsigned long job, int rank,
                      const VIP_UINT8 *host, VIP_UINT16 host_length) {
  via_set_address(address, host, host_length,
                  (job & 0xffffff) << 32 | 0x6d700000UL | (unsigned)rank);
}

static void connect_to(int rank, unsigned long job, char *host) {
  union via_address local, remote, found;
  VIP_VI_ATTRIBUTES attributes;
  VIP_RETURN code;

  memset(&found, 0, sizeof found);
  must(host, VipNSGetHostByName(nic, host, &found.net, 0));
  name_rank(&remote, job, rank, found.net.HostAddress, found.net.HostAddressLen);
  name_rank(&local, job, my_rank, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
  /* Perhaps that process has not been started yet. */
  do {
    code = VipConnectRequest(peers[rank].vi, &local.net, &remote.net, 60000, &attributes);
  } while (code == VIP_NO_MATCH);
  must("VipConnectRequest", code);
}

static void wait_for_one(unsigned long job) {
  union via_address local, remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  const VIP_UINT8 *name;
  int rank;

  name_rank(&local, job, my_rank, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen);
  must("VipConnectWait",
       VipConnectWait(nic, &local.net, 60000, &remote.net, &attributes, &connection));
  name = remote.net.HostAddress + remote.net.HostAddressLen;
  rank = remote.net.DiscriminatorLen == 8 ? name[6] << 8 | name[7] : 0;
  if (rank <= my_rank || rank >= my_size) {
    VipConnectReject(connection);
    mp_die("a stranger asked", VIP_REJECT);
  }
  must("VipConnectAccept", VipConnectAccept(connection, peers[rank].vi));
}

void mp_init(int argc, char **argv) {
  VIP_MEM_ATTRIBUTES rights;
  VIP_ULONG length;
  unsigned long job;
  int rank;

  my_size = argc - 3;
  my_rank = my_size < 2 ? -1 : via_parse_rank(argv[2], my_size);
  if (my_rank < 0 || my_size > MP_MAX_SIZE) {
    fprintf(stderr, "usage: %s JOB RANK HOST HOST...\n", argv[0]);
    exit(2);
  }
  job = strtoul(argv[1], NULL, 10);

  must("VipOpenNic", VipOpenNic("nic0", &nic));
  must("VipQueryNic", VipQueryNic(nic, &nic_attributes));
  must("VipErrorCallback", VipErrorCallback(nic, NULL, on_error));
  must("VipNSInit", VipNSInit(nic, NULL));
  must("VipCreatePtag", VipCreatePtag(nic, &ptag));
  length = (VIP_ULONG)my_size * (RECEIVES + SENDS) * SLOT;
  block = malloc(length + VIP_DESCRIPTOR_ALIGNMENT);
  if (block == NULL) mp_die("malloc", VIP_ERROR_RESOURCE);
  while ((VIP_ULONG)block % VIP_DESCRIPTOR_ALIGNMENT != 0) block++;
  memset(&rights, 0, sizeof rights);
  rights.Ptag = ptag;
  must("VipRegisterMem", VipRegisterMem(nic, block, length, &rights, &memory));
  must("VipCreateCQ", VipCreateCQ(nic, (VIP_ULONG)my_size * (RECEIVES + SENDS), &cq));
  for (rank = 0; rank < my_size; rank++) {
    if (rank == my_rank) continue;
    open_peer(&peers[rank], block + (VIP_ULONG)rank * (RECEIVES + SENDS) * SLOT);
  }
  for (rank = 0; rank < my_rank; rank++) connect_to(rank, job, argv[3 + rank]);
  for (; rank + 1 < my_size; rank++) wait_for_one(job);
}

void mp_finish(void) {
  VIP_DESCRIPTOR *descriptor;
  int rank;

  finishing = 1;
  mp_barrier();
  /* Rank 0 leaves last: its answer to the barrier must reach everybody. A rank that hangs up has
   * got it, and thereby completes the receives that are posted for that rank. */
  for (rank = 1; my_rank == 0 && rank < my_size; rank++) {
    while (!peers[rank].gone) progress();
  }
  for (rank = 0; rank < my_size; rank++) {
    if (rank == my_rank) continue;
    VipDisconnect(peers[rank].vi);
    do VipSendDone(peers[rank].vi, &descriptor);
    while (descriptor != NULL);
    do VipRecvDone(peers[rank].vi, &descriptor);
    while (descriptor != NULL);
    must("VipDestroyVi", VipDestroyVi(peers[rank].vi));
  }
  must("VipDestroyCQ", VipDestroyCQ(cq));
  must("VipDeregisterMem", VipDeregisterMem(nic, block, memory));
  must("VipDestroyPtag", VipDestroyPtag(nic, ptag));
  must("VipCloseNic", VipCloseNic(nic));
}
