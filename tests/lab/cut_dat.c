/* A DAT program whose link is cut.
 *
 * usage: cut_dat ADAPTER serve
 *        cut_dat ADAPTER ADDRESS COMMAND
 *
 * The client posts sends, has COMMAND cut the link, posts a read and more sends, none of which the
 * peer can answer, ends the connection abruptly and connects again, with a limit of 8 seconds. It
 * prints a line for each step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/cut.h"
#include "tests/lab/dat_end.h"
#include "tests/lab/event_names.h"

static struct cut_memory memory;

static void serve(void) {
  const DAT_EP_HANDLE endpoint = make_endpoint();
  DAT_PSP_HANDLE point;
  DAT_EVENT event;
  int i;
  for (i = 0; i <= kSends; i++) post_receive(endpoint, memory.received[i], kBytes);
  must(dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &point), "dat_psp_create");
  event = next(requests, "waiting for a request");
  must(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoint, 0, NULL),
       "dat_cr_accept");
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  await_transfer(receives, "receiving"); /* iWARP: the client talks first */
  memory.there.address = (uint64_t)(uintptr_t)memory.received;
  memory.there.key = remote_key;
  post_send(endpoint, &memory.there, sizeof memory.there);
  for (;;) next(connections, "waiting for the end");
}

static DAT_EP_HANDLE dial(const char *host) {
  const DAT_EP_HANDLE endpoint = make_endpoint();
  post_receive(endpoint, &memory.there, sizeof memory.there);
  start_connecting(endpoint, host, kPort, kShort * 1000, 0, NULL);
  printf("connecting: %s\n", name_of_event(next(connections, "connecting").event_number));
  return endpoint;
}

static void talk(DAT_EP_HANDLE endpoint, const char *cut) {
  const uint64_t *there = &memory.there.address;
  const uint32_t *key = &memory.there.key;
  int i, done = 0;
  post_send(endpoint, memory.sent, 1);
  await_transfer(sends, "sending");
  await_transfer(receives, "receiving");
  move(endpoint, kRead, memory.sent, kBytes, *there, *key);

  for (i = 0; i < kSends / 2; i++) post_send(endpoint, memory.sent, kBytes);
  if (system(cut) != 0) exit(1);
  start_moving(endpoint, kRead, memory.sent, kBytes, *there, *key);
  for (i = kSends / 2; i < kSends; i++) post_send(endpoint, memory.sent, kBytes);

  must(dat_ep_disconnect(endpoint, DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
  printf("the end: %s\n", name_of_event(next(connections, "disconnecting").event_number));
  for (i = 0; i < kSends + 1; i++) {
    const DAT_EVENT event = next(sends, "a flushed request");
    done += event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
  }
  printf("requests: %s\n", done <= kSends ? "flushed" : "all done");
  must(dat_ep_free(endpoint), "dat_ep_free");
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  open_adapter(argv[1], &memory, sizeof memory);
  if (strcmp(argv[2], "serve") == 0) {
    serve();
  } else if (argc == 4) {
    talk(dial(argv[2]), argv[3]);
    dial(argv[2]);
  }
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  printf("closed\n");
  return 0;
}
