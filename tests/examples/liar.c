/*
 * liar SERVICE LIE: a server that answers the first request of one client with something that
 * breaks the rules of vipl/examples/fileproto.h, and then waits until the client has left.
 */
#include <stdio.h>
#include <string.h>
#include <vipl.h>

#include "vipl/examples/fileproto.h"
#include "vipl/examples/vialink.h"

#define SENDS 4

/* One message, with a payload of `count` arbitrary bytes. */
struct lie_message {
  unsigned kind, count;
  long value;
};

struct lie {
  const char *name;
  struct lie_message messages[SENDS]; /* up to kind 0 */
};

static const struct lie lies[] = {
    {"unknown", {{99, 0, 0}}},
    {"request", {{FP_GET, 4, 0}}},
    {"no-size", {{FP_DATA, 4, 0}}},
    {"two-sizes", {{FP_FILE, 0, 10}, {FP_FILE, 0, 10}}},
    {"hole", {{FP_FILE, 0, 10}, {FP_DATA, 4, 5}}},
    {"too-much", {{FP_FILE, 0, 10}, {FP_DATA, 11, 0}}},
    {"too-little", {{FP_FILE, 0, 10}, {FP_DATA, 4, 0}, {FP_END, 0, 10}}},
    {"another-size", {{FP_FILE, 0, 0}, {FP_END, 0, 1}}},
    {"empty-message", {{FP_CREDIT, 0, 0}}},
};

static const struct lie *find_lie(const char *name) {
  unsigned i;

  for (i = 0; i < sizeof lies / sizeof lies[0]; i++) {
    if (strcmp(lies[i].name, name) == 0) return &lies[i];
  }
  return NULL;
}

/* Waits for `count` messages of the client. */
static VIP_RETURN take_messages(struct via_link *link, int count) {
  VIP_DESCRIPTOR *received;
  VIP_RETURN code = VIP_SUCCESS;

  while (count > 0 && code == VIP_SUCCESS) {
    code = via_next(link, VIP_INFINITE, &received);
    if (received != NULL) count--;
  }
  return code;
}

static VIP_RETURN tell(struct via_link *link, const struct lie *lie) {
  VIP_DESCRIPTOR *descriptor;
  VIP_RETURN code = VIP_SUCCESS;
  unsigned length;
  int i;

  for (i = 0; i < SENDS && lie->messages[i].kind != 0 && code == VIP_SUCCESS; i++) {
    descriptor = via_take_send(link);
    length = lie->messages[i].kind == FP_CREDIT
                 ? 0
                 : fp_pack(via_data(descriptor), lie->messages[i].kind, lie->messages[i].count,
                           lie->messages[i].value);
    code = via_post_send(link, descriptor, length, NULL);
  }
  return code;
}

int main(int argc, char **argv) {
  const struct lie *lie;
  VIP_NIC_HANDLE nic;
  VIP_NIC_ATTRIBUTES nic_attributes;
  VIP_VI_ATTRIBUTES attributes;
  VIP_CONN_HANDLE connection;
  VIP_RETURN code;
  union via_address local, remote;
  struct via_link link;
  unsigned long service;

  if (argc != 3 || fp_parse_number(argv[1], &service) != 0 || (lie = find_lie(argv[2])) == NULL) {
    fputs("usage: liar SERVICE LIE\n", stderr);
    return 2;
  }
  code = VipOpenNic("nic0", &nic);
  if (code == VIP_SUCCESS) code = VipQueryNic(nic, &nic_attributes);
  if (code == VIP_SUCCESS) {
    via_set_address(&local, nic_attributes.LocalNicAddress, nic_attributes.NicAddressLen, service);
    code = via_open(&link, nic, FP_REQUESTS, FP_REQUEST_SIZE, SENDS, FP_MESSAGE_SIZE);
  }
  puts("liar: files below nowhere");
  fflush(stdout);
  if (code == VIP_SUCCESS) {
    code = VipConnectWait(nic, &local.net, VIP_INFINITE, &remote.net, &attributes, &connection);
  }
  if (code == VIP_SUCCESS) code = VipConnectAccept(connection, link.vi);
  if (code == VIP_SUCCESS) code = take_messages(&link, 2);
  if (code == VIP_SUCCESS) code = tell(&link, lie);
  if (code == VIP_SUCCESS) code = take_messages(&link, FP_REQUESTS);
  if (code != VIP_DESCRIPTOR_ERROR) fprintf(stderr, "liar: %s\n", via_text(code));
  via_close(&link);
  VipCloseNic(nic);
  return code == VIP_DESCRIPTOR_ERROR ? 0 : 1;
}
