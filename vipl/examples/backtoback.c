/*
 * backtoback wait SERVICE COUNT, backtoback ask SERVICE COUNT HOST: the server waits and accepts in
 * a loop, one VI after the other; the client asks for all its connections without a pause, waiting
 * without limit, and takes anything but success for a failure. Then each VI carries a message.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vialink.h"

#define MAX_COUNT 64

static VIP_NIC_HANDLE nic;
static VIP_NIC_ATTRIBUTES nic_attributes;
static VIP_VI_HANDLE vis[MAX_COUNT];
static VIP_MEM_HANDLE memory;
static struct slot {
  VIP_DESCRIPTOR descriptor;
  int number;
  char room[60];
} * slots;

static void must(const char *what, VIP_RETURN code) {
  if (code == VIP_SUCCESS) return;
  fprintf(stderr, "backtoback: %s: %s\n", what, via_text(code));
  exit(1);
}

static void open_all(int count, int receive) {
  VIP_VI_ATTRIBUTES attributes;
  void *room = calloc(MAX_COUNT + 1, sizeof(struct slot));
  char *block = room;
  int i;

  must("VipOpenNic", VipOpenNic("VINIC", &nic));
  must("VipQueryNic", VipQueryNic(nic, &nic_attributes));
  must("VipNSInit", VipNSInit(nic, NULL));
  if (block == NULL) must("calloc", VIP_ERROR_RESOURCE);
  while ((VIP_ULONG)block % VIP_DESCRIPTOR_ALIGNMENT != 0) block++;
  slots = (struct slot *)block;
  /* No attributes: the default tag. */
  must("VipRegisterMem",
       VipRegisterMem(nic, slots, MAX_COUNT * sizeof(struct slot), NULL, &memory));
  memset(&attributes, 0, sizeof attributes);
  attributes.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY;
  attributes.MaxTransferSize = 32768;
  for (i = 0; i < count; i++) {
    must("VipCreateVi", VipCreateVi(nic, &attributes, NULL, NULL, &vis[i]));
    slots[i].descriptor.CS.SegCount = 1;
    slots[i].descriptor.CS.Length = sizeof slots[i].number;
    slots[i].descriptor.DS[0].Local.Data.Address = &slots[i].number;
    slots[i].descriptor.DS[0].Local.Handle = memory;
    slots[i].descriptor.DS[0].Local.Length = sizeof slots[i].number;
    if (receive) must("VipPostRecv", VipPostRecv(vis[i], &slots[i].descriptor, memory));
  }
}

static void serve(unsigned long service, int count) {
  union via_address local, remote;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  VIP_DESCRIPTOR *done;
  int i;

  via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen, service);
  for (i = 0; i < count; i++) {
    must("VipConnectWait",
         VipConnectWait(nic, &local.net, VIP_INFINITE, &remote.net, &attributes, &connection));
    must("VipConnectAccept", VipConnectAccept(connection, vis[i]));
  }
  for (i = 0; i < count; i++) {
    must("VipRecvWait", VipRecvWait(vis[i], VIP_INFINITE, &done));
    if (slots[i].number != i) must("a message of another VI", VIP_DESCRIPTOR_ERROR);
  }
}

static void ask(unsigned long service, int count, char *host) {
  union via_address local, remote, found;
  VIP_VI_ATTRIBUTES attributes;
  VIP_DESCRIPTOR *done;
  int i;

  must(host, VipNSGetHostByName(nic, host, &found.net, 0));
  via_set_address(&remote, found.net.HostAddress, found.net.HostAddressLen, service);
  via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen, 1);
  for (i = 0; i < count; i++) {
    must("VipConnectRequest",
         VipConnectRequest(vis[i], &local.net, &remote.net, VIP_INFINITE, &attributes));
  }
  for (i = 0; i < count; i++) {
    slots[i].number = i;
    must("VipPostSend", VipPostSend(vis[i], &slots[i].descriptor, memory));
  }
  for (i = 0; i < count; i++) must("VipSendWait", VipSendWait(vis[i], VIP_INFINITE, &done));
}

int main(int argc, char **argv) {
  VIP_VI_STATE state;
  VIP_VI_ATTRIBUTES attributes;
  VIP_BOOLEAN sends_empty, receives_empty;
  int asks = argc == 5 && strcmp(argv[1], "ask") == 0;
  int waits = argc == 4 && strcmp(argv[1], "wait") == 0;
  unsigned long service;
  int i, count;

  if (!asks && !waits) {
    fputs("usage: backtoback wait SERVICE COUNT\n       backtoback ask SERVICE COUNT HOST\n",
          stderr);
    return 2;
  }
  service = strtoul(argv[2], NULL, 10);
  count = atoi(argv[3]);
  if (count < 1 || count > MAX_COUNT) return 2;
  open_all(count, waits);
  if (waits) {
    serve(service, count);
    for (i = 0; i < count; i++) must("VipDisconnect", VipDisconnect(vis[i]));
  } else {
    ask(service, count, argv[4]);
    /* The server hangs up when it has everything. */
    for (i = 0; i < count; i++) {
      do {
        must("VipQueryVi", VipQueryVi(vis[i], &state, &attributes, &sends_empty, &receives_empty));
      } while (state == VIP_STATE_CONNECTED);
    }
  }
  must("VipCloseNic", VipCloseNic(nic));
  printf("%d connections\n", count);
  return 0;
}
