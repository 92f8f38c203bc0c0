/* Either side of rping's conversation, as a DAT program: the other side is rdma-core's rping
 * itself.
 *
 * usage: rping_peer ADAPTER serve|ADDRESS [COUNT [SIZE]]
 *
 * The client names a buffer in a message of 16 bytes (address, key, size, big-endian); the server
 * reads it, says so, is given a second buffer, writes there what it has read, and says so. COUNT
 * times; SIZE bytes. The server's exit status is 0 after a client's whole conversation, the
 * client's when it got back what it had shown.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/dat_end.h"

enum { kPort = 7174, kLargest = 65536 };

struct message {
  uint64_t address;
  uint32_t key;
  uint32_t size;
};

struct memory { /* registered as one region */
  struct message received;
  struct message sent;
  char shown[kLargest];
  char place[kLargest];
};

static DAT_EP_HANDLE endpoint;
static struct memory memory;

static void post(void) { post_receive(endpoint, &memory.received, sizeof memory.received); }

/* The next message; its buffer is posted again. */
static struct message receive(void) {
  struct message message;
  await_transfer(receives, "receiving");
  message.address = be64toh(memory.received.address);
  message.key = ntohl(memory.received.key);
  message.size = ntohl(memory.received.size);
  post();
  return message;
}

static void say(void *start, uint32_t size) {
  memory.sent.address = htobe64((uint64_t)(uintptr_t)start);
  memory.sent.key = htonl(remote_key);
  memory.sent.size = htonl(size);
  post_send(endpoint, &memory.sent, sizeof memory.sent);
  await_transfer(sends, "sending");
}

static void serve(long count) {
  DAT_PSP_HANDLE psp;
  DAT_EVENT event;
  must(dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
  printf("listening\n");
  fflush(stdout);
  event = next(requests, "waiting for a request");
  must(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoint, 0, NULL),
       "dat_cr_accept");
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  for (; count > 0; count--) {
    struct message message = receive();
    const uint32_t size = message.size;
    if (size > kLargest) exit(1);
    move(endpoint, kRead, memory.place, size, message.address, message.key);
    say(NULL, 0); /* go ahead */
    message = receive();
    move(endpoint, kWrite, memory.place, size, message.address, message.key);
    say(NULL, 0); /* done */
  }
  await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void dial(const char *host, long count, uint32_t size) {
  long round;
  uint32_t i;
  start_connecting(endpoint, host, kPort, kPatience, 0, NULL);
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  for (round = 0; round < count; round++) {
    /* No zero before the end, because rping writes back only up to the first one. */
    for (i = 0; i + 1 < size; i++) memory.shown[i] = (char)('A' + (i + (uint32_t)round) % 26);
    memory.shown[size - 1] = 0;
    say(memory.shown, size);
    receive();
    say(memory.place, size);
    receive();
    if (memcmp(memory.shown, memory.place, size) != 0) {
      fprintf(stderr, "round %ld: other bytes came back\n", round);
      exit(1);
    }
  }
  must(dat_ep_disconnect(endpoint, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
}

int main(int argc, char **argv) {
  const long count = argc > 3 ? atol(argv[3]) : 10;
  const long size = argc > 4 ? atol(argv[4]) : 64;
  if (argc < 3 || argc > 5 || count < 1 || size < 2 || size > kLargest) {
    fprintf(stderr, "usage: rping_peer ADAPTER serve|ADDRESS [COUNT [SIZE]]\n");
    return 2;
  }
  open_adapter(argv[1], &memory, sizeof memory);
  endpoint = make_endpoint();
  post();
  if (strcmp(argv[2], "serve") == 0) {
    serve(count);
  } else {
    dial(argv[2], count, (uint32_t)size);
  }
  dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
  printf("%ld rounds of %ld bytes\n", count, size);
  return 0;
}
