/*
 * many serve SERVICE COUNT, many ask SERVICE COUNT HOST: a server with many connections whose main
 * thread sleeps. Each VI calls back when a message has come (VipRecvNotify); the callback answers,
 * posts the receive again and asks for the next call. The client sends rounds of messages over all
 * connections at once and checks the answers.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vialink.h"

#define MAX_COUNT 256
#define ROUNDS 20

/* One connection: a receive and a send, each with a number. */
struct line {
  VIP_DESCRIPTOR receive, send;
  int in, out;
  char room[56];
};

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_MEM_HANDLE memory;
static VIP_VI_HANDLE vis[MAX_COUNT];
static struct line *lines;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int gone;

static void must(const char *what, VIP_RETURN code) {
  if (code == VIP_SUCCESS) return;
  fprintf(stderr, "many: %s: %s\n", what, via_text(code));
  exit(1);
}

static void fill(VIP_DESCRIPTOR *descriptor, int *number) {
  memset(descriptor, 0, sizeof *descriptor);
  descriptor->CS.SegCount = 1;
  descriptor->CS.Length = sizeof *number;
  descriptor->DS[0].Local.Data.Address = number;
  descriptor->DS[0].Local.Handle = memory;
  descriptor->DS[0].Local.Length = sizeof *number;
}

static void post_receive(int i) {
  fill(&lines[i].receive, &lines[i].in);
  must("VipPostRecv", VipPostRecv(vis[i], &lines[i].receive, memory));
}

static void post_send(int i, int number) {
  lines[i].out = number;
  fill(&lines[i].send, &lines[i].out);
  must("VipPostSend", VipPostSend(vis[i], &lines[i].send, memory));
}

static void open_all(int count) {
  VIP_VI_ATTRIBUTES attributes;
  VIP_ULONG length = (VIP_ULONG)count * sizeof *lines;
  char *block = calloc(1, length + VIP_DESCRIPTOR_ALIGNMENT);
  int i;

  must("VipOpenNic", VipOpenNic("nic0", &nic));
  must("VipQueryNic", VipQueryNic(nic, &nic_attributes));
  must("VipNSInit", VipNSInit(nic, NULL));
  if (block == NULL) must("calloc", VIP_ERROR_RESOURCE);
  while ((VIP_ULONG)block % VIP_DESCRIPTOR_ALIGNMENT != 0) block++;
  lines = (struct line *)block;
  must("VipRegisterMem", VipRegisterMem(nic, lines, length, NULL, &memory));
  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes.MaxTransferSize = 4096;
  for (i = 0; i < count; i++) {
    must("VipCreateVi", VipCreateVi(nic, &attributes, NULL, NULL, &vis[i]));
    post_receive(i);
  }
}

/* ---- Server ---- */

static void on_error(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error) {
  (void)context;
  /* Clients hang up; the flushed receives show that as well. */
  if (error->ErrorCode == VIP_ERROR_CONN_LOST) return;
  fprintf(stderr, "many: asynchronous error %d\n", (int)error->ErrorCode);
  exit(1);
}

/* On the library's thread, one call at a time. The descriptor has been taken from the queue. */
static void on_message(VIP_PVOID context, VIP_NIC_HANDLE of, VIP_VI_HANDLE vi,
                       VIP_DESCRIPTOR *descriptor) {
  int i = (int)((struct line *)context - lines);
  VIP_DESCRIPTOR *sent;
  VIP_RETURN code;
  int number;

  if (of != nic || vi != vis[i] || descriptor != &lines[i].receive) {
    must("a callback", VIP_INVALID_PARAMETER);
  }
  if (descriptor->CS.Status & VIP_STATUS_ERROR_MASK) {
    pthread_mutex_lock(&lock);
    gone++;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    return;
  }
  if (lines[i].in > 1) { /* not the first message: the last answer has arrived */
    do code = VipSendDone(vi, &sent);
    while (code == VIP_NOT_DONE);
    must("VipSendDone", code);
  }
  /* The answer invites the next message, so its receive comes first. */
  number = lines[i].in;
  post_receive(i);
  post_send(i, -number);
  must("VipRecvNotify", VipRecvNotify(vi, context, on_message));
}

static void serve(unsigned long service, int count) {
  union via_address local, remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  int i;

  must("VipErrorCallback", VipErrorCallback(nic, NULL, on_error));
  via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen, service);
  for (i = 0; i < count; i++) {
    must("VipRecvNotify", VipRecvNotify(vis[i], &lines[i], on_message));
    must("VipConnectWait",
         VipConnectWait(nic, &local.net, VIP_INFINITE, &remote.net, &attributes, &connection));
    must("VipConnectAccept", VipConnectAccept(connection, vis[i]));
  }
  pthread_mutex_lock(&lock);
  while (gone < count) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* ---- Client ---- */

static void ask(unsigned long service, int count, char *host) {
  union via_address local, remote, found;
  VIP_VI_ATTRIBUTES attributes;
  VIP_DESCRIPTOR *done;
  VIP_RETURN code;
  int i, round;

  must(host, VipNSGetHostByName(nic, host, &found.net, 0));
  via_set_address(&remote, found.net.HostAddress, found.net.HostAddressLen, service);
  via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen, 1);
  for (i = 0; i < count; i++) {
    do {
      code = VipConnectRequest(vis[i], &local.net, &remote.net, 60000, &attributes);
    } while (code == VIP_NO_MATCH);
    must("VipConnectRequest", code);
  }
  for (round = 1; round <= ROUNDS; round++) {
    for (i = 0; i < count; i++) post_send(i, round);
    for (i = 0; i < count; i++) {
      must("VipSendWait", VipSendWait(vis[i], VIP_INFINITE, &done));
      must("VipRecvWait", VipRecvWait(vis[i], VIP_INFINITE, &done));
      if (lines[i].in != -round) must("an answer", VIP_DESCRIPTOR_ERROR);
      post_receive(i);
    }
  }
}

int main(int argc, char **argv) {
  int asks = argc == 5 && strcmp(argv[1], "ask") == 0;
  int serves = argc == 4 && strcmp(argv[1], "serve") == 0;
  int i, count;

  if (!asks && !serves) {
    fputs("usage: many serve SERVICE COUNT\n       many ask SERVICE COUNT HOST\n", stderr);
    return 2;
  }
  count = atoi(argv[3]);
  if (count < 1 || count > MAX_COUNT) return 2;
  open_all(count);
  if (serves) {
    serve(strtoul(argv[2], NULL, 10), count);
  } else {
    ask(strtoul(argv[2], NULL, 10), count, argv[4]);
    for (i = 0; i < count; i++) must("VipDisconnect", VipDisconnect(vis[i]));
  }
  must("VipCloseNic", VipCloseNic(nic));
  printf("%d connections\n", count);
  return 0;
}
