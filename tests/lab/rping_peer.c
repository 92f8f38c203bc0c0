/* Either side of rping's conversation, as a DAT program: the other side is rdma-core's rping itself.
 *
 * usage: rping_peer ADAPTER serve|ADDRESS [COUNT [SIZE]]
 *
 * The client names a buffer in a message of 16 bytes (address, key, size, big-endian); the server reads it, says so,
 * is given a second buffer, writes there what it has read, and says so. COUNT times; SIZE bytes. The server's exit
 * status is 0 after a client's whole conversation, the client's when it got back what it had shown.
 */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <endian.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPort = 7174, kLargest = 65536, kPatience = 20000000 };

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

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE zone;
static DAT_EVD_HANDLE requests, connections, receives, sends;
static DAT_EP_HANDLE endpoint;
static DAT_LMR_CONTEXT local_key;
static DAT_RMR_CONTEXT remote_key;
static struct memory memory;

static void must(DAT_RETURN result, const char *what) {
  const char *major = "", *minor = "";
  if (result == DAT_SUCCESS) return;
  dat_strerror(result, &major, &minor);
  fprintf(stderr, "%s: %s %s\n", what, major, minor);
  exit(1);
}

static DAT_EVENT next(DAT_EVD_HANDLE evd, const char *what) {
  DAT_EVENT event;
  DAT_COUNT more;
  must(dat_evd_wait(evd, kPatience, 1, &event, &more), what);
  return event;
}

static void await_connection(DAT_EVENT_NUMBER number) {
  const DAT_EVENT event = next(connections, "waiting for the connection");
  if (event.event_number != number) {
    fprintf(stderr, "connection event %#x instead of %#x\n", event.event_number, number);
    exit(1);
  }
}

static void await_transfer(DAT_EVD_HANDLE evd, const char *what) {
  const DAT_EVENT event = next(evd, what);
  const int status = event.event_data.dto_completion_event_data.status;
  if (status != DAT_DTO_SUCCESS) {
    fprintf(stderr, "%s: status %d\n", what, status);
    exit(1);
  }
}

static DAT_LMR_TRIPLET piece(void *start, uint32_t bytes) {
  DAT_LMR_TRIPLET triplet;
  memset(&triplet, 0, sizeof triplet);
  triplet.virtual_address = (DAT_VADDR)(uintptr_t)start;
  triplet.segment_length = bytes;
  triplet.lmr_context = local_key;
  return triplet;
}

static void post_receive(void) {
  DAT_LMR_TRIPLET buffer = piece(&memory.received, sizeof memory.received);
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 0;
  must(dat_ep_post_recv(endpoint, 1, &buffer, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
}

/* The next message; its buffer is posted again. */
static struct message receive(void) {
  struct message message;
  await_transfer(receives, "receiving");
  message.address = be64toh(memory.received.address);
  message.key = ntohl(memory.received.key);
  message.size = ntohl(memory.received.size);
  post_receive();
  return message;
}

static void say(void *start, uint32_t size) {
  DAT_LMR_TRIPLET buffer = piece(&memory.sent, sizeof memory.sent);
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 0;
  memory.sent.address = htobe64((uint64_t)(uintptr_t)start);
  memory.sent.key = htonl(remote_key);
  memory.sent.size = htonl(size);
  must(dat_ep_post_send(endpoint, 1, &buffer, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  await_transfer(sends, "sending");
}

static void move(int write, const struct message *there, uint32_t size) {
  DAT_LMR_TRIPLET buffer = piece(memory.place, size);
  DAT_RMR_TRIPLET target;
  DAT_DTO_COOKIE cookie;
  memset(&target, 0, sizeof target);
  cookie.as_64 = 0;
  target.virtual_address = there->address;
  target.segment_length = size;
  target.rmr_context = there->key;
  if (write) {
    must(dat_ep_post_rdma_write(endpoint, 1, &buffer, cookie, &target, DAT_COMPLETION_DEFAULT_FLAG), "RDMA write");
  } else {
    must(dat_ep_post_rdma_read(endpoint, 1, &buffer, cookie, &target, DAT_COMPLETION_DEFAULT_FLAG), "RDMA read");
  }
  await_transfer(sends, write ? "writing" : "reading");
}

static void open_adapter(char *name) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  DAT_VLEN length;
  DAT_VADDR address;
  must(dat_ia_open(name, 8, &async, &ia), "dat_ia_open");
  must(dat_pz_create(ia, &zone), "dat_pz_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &requests), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connections), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &receives), "dat_evd_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &sends), "dat_evd_create");
  memset(&region, 0, sizeof region);
  region.for_va = &memory;
  must(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof memory, zone, DAT_MEM_PRIV_ALL_FLAG,
                      DAT_VA_TYPE_VA, &lmr, &local_key, &remote_key, &length, &address),
       "dat_lmr_create");
  must(dat_ep_create(ia, zone, receives, sends, connections, NULL, &endpoint), "dat_ep_create");
  post_receive();
}

static void serve(long count) {
  DAT_PSP_HANDLE psp;
  DAT_EVENT event;
  must(dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
  printf("listening\n");
  fflush(stdout);
  event = next(requests, "waiting for a request");
  must(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoint, 0, NULL), "dat_cr_accept");
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  for (; count > 0; count--) {
    struct message message = receive();
    const uint32_t size = message.size;
    if (size > kLargest) exit(1);
    move(0, &message, size);
    say(NULL, 0); /* go ahead */
    message = receive();
    move(1, &message, size);
    say(NULL, 0); /* done */
  }
  await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void dial(const char *host, long count, uint32_t size) {
  struct sockaddr_in address;
  long round;
  uint32_t i;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) exit(2);
  must(dat_ep_connect(endpoint, (DAT_IA_ADDRESS_PTR)&address, kPort, kPatience, 0, NULL, DAT_QOS_BEST_EFFORT,
                      DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  for (round = 0; round < count; round++) {
    /* Without an inner zero, since rping writes back as far as the first. */
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
  open_adapter(argv[1]);
  if (strcmp(argv[2], "serve") == 0) {
    serve(count);
  } else {
    dial(argv[2], count, (uint32_t)size);
  }
  dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
  printf("%ld rounds of %ld bytes\n", count, size);
  return 0;
}
