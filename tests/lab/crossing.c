/* Two DAT programs that write to each other and read from each other at the same time, in transfers
 * of many segments. If a segment of one transfer came between those of another, siw would end the
 * connection.
 *
 * usage: crossing ADAPTER serve|ADDRESS
 */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/dat_end.h"

enum { kPort = 7193, kBytes = 512 * 1024, kRounds = 4, kPairs = 2, kClient = 0, kServer = 1 };

static struct room {             /* one region */
  unsigned char shown[kBytes];   /* the peer reads it */
  unsigned char written[kBytes]; /* the peer writes it; follows `shown` */
  unsigned char place[kPairs][kBytes];
  struct hello { /* big-endian */
    uint64_t address;
    uint64_t key;
  } mine, theirs;
} room;

static unsigned char color(int role, size_t at) {
  return (unsigned char)(at * 7 + (at >> 8) + role);
}

static void expect_color(const unsigned char *bytes, int role, const char *what) {
  size_t i;
  for (i = 0; i < kBytes; i++) {
    if (bytes[i] == color(role, i)) continue;
    fprintf(stderr, "%s: byte %zu\n", what, i);
    exit(1);
  }
}

static void say(DAT_EP_HANDLE endpoint) {
  post_send(endpoint, &room.mine, sizeof room.mine);
  await_transfer(sends, "sending");
}

static void hear(void) { await_transfer(receives, "receiving"); }

static void cross(DAT_EP_HANDLE endpoint, int role) {
  const uint64_t there = be64toh(room.theirs.address);
  const uint32_t key = (uint32_t)be64toh(room.theirs.key);
  int round, i;
  for (round = 0; round < kRounds; round++) {
    for (i = 0; i < kPairs; i++) {
      start_moving(endpoint, kWrite, room.shown, kBytes, there + kBytes, key);
      start_moving(endpoint, kRead, room.place[i], kBytes, there, key);
    }
    for (i = 0; i < 2 * kPairs; i++) await_transfer(sends, "reading and writing");
    for (i = 0; i < kPairs; i++) expect_color(room.place[i], !role, "what was read");
  }
}

int main(int argc, char **argv) {
  size_t i;
  int role;
  DAT_EP_HANDLE endpoint;
  DAT_PSP_HANDLE point;
  DAT_EVENT event;
  if (argc != 3) {
    fprintf(stderr, "usage: crossing ADAPTER serve|ADDRESS\n");
    return 2;
  }
  open_adapter(argv[1], &room, sizeof room);
  role = strcmp(argv[2], "serve") == 0 ? kServer : kClient;
  for (i = 0; i < kBytes; i++) room.shown[i] = color(role, i);
  room.mine.address = htobe64((uint64_t)(uintptr_t)room.shown);
  room.mine.key = htobe64(remote_key);
  endpoint = make_endpoint();
  for (i = 0; i < 2; i++) post_receive(endpoint, &room.theirs, sizeof room.theirs);
  if (role == kServer) {
    must(dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &point), "dat_psp_create");
    event = next(requests, "waiting for a request");
    must(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoint, 0, NULL),
         "dat_cr_accept");
  } else {
    start_connecting(endpoint, argv[2], kPort, kPatience, 0, NULL);
  }
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  if (role == kClient) say(endpoint); /* iWARP: the client talks first */
  hear();
  if (role == kServer) say(endpoint);
  cross(endpoint, role);
  say(endpoint);
  hear();
  expect_color(room.written, !role, "what was written");
  if (role == kClient)
    must(dat_ep_disconnect(endpoint, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  printf("crossed\n");
  return 0;
}
