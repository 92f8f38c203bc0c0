/* private_data.h, as a DAT program. OWN is its adapter. */
#include <stdio.h>
#include <string.h>

#include "tests/lab/dat_end.h"
#include "tests/lab/private_data.h"

static unsigned char memory[1];

static void dial(const char *host, const char *number) {
  struct answer data = read_answer(number);
  const DAT_EP_HANDLE endpoint = make_endpoint();
  DAT_EVENT event;
  const DAT_CONNECTION_EVENT_DATA *seen = &event.event_data.connect_event_data;
  start_connecting(endpoint, host, kPort, kPatience, data.size, data.data);
  event = next(connections, "waiting for an answer");
  if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
    show("accept", seen->private_data, seen->private_data_size);
    must(dat_ep_disconnect(endpoint, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
    await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
  } else if (event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED) {
    show("reject", seen->private_data, seen->private_data_size);
  } else {
    fail("another answer");
  }
  must(dat_ep_free(endpoint), "dat_ep_free");
}

static void serve_one(const char *number) {
  struct answer data = read_answer(number);
  const DAT_EVENT event = next(requests, "waiting for a request");
  const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
  DAT_EP_HANDLE endpoint;
  DAT_CR_PARAM seen;
  must(dat_cr_query(request, DAT_CR_FIELD_ALL, &seen), "dat_cr_query");
  show("request", seen.private_data, seen.private_data_size);
  if (data.rejects) {
    must(dat_cr_reject(request, data.size, data.data), "dat_cr_reject");
    return;
  }
  endpoint = make_endpoint();
  must(dat_cr_accept(request, endpoint, data.size, data.data), "dat_cr_accept");
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
  must(dat_ep_free(endpoint), "dat_ep_free");
}

int main(int argc, char **argv) {
  int i;
  if (argc < 4) {
    fprintf(stderr, "usage: private_data_dat OWN serve|ADDRESS BYTES...\n");
    return 2;
  }
  open_adapter(argv[1], memory, sizeof memory);
  if (strcmp(argv[2], "serve") == 0) {
    DAT_PSP_HANDLE point;
    must(dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &point), "dat_psp_create");
    for (i = 3; i < argc; i++) serve_one(argv[i]);
  } else {
    for (i = 3; i < argc; i++) dial(argv[2], argv[i]);
  }
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return 0;
}
