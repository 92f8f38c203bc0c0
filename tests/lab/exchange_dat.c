/* exchange.h, as a DAT program.
 *
 * usage: exchange_dat ADAPTER serve|ADDRESS dat|via
 *
 * The last word says what the peer is. A VIPL server listens only while it waits, so its client
 * tries again while nobody listens.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/dat_end.h"
#include "tests/lab/exchange.h"

static struct room room;
static DAT_EP_HANDLE endpoint;
static int heard; /* messages of this connection: its receives complete in order */
static int most;  /* bytes of private data */

static void say(void *start, uint32_t bytes) {
  post_send(endpoint, start, bytes);
  await_transfer(sends, "sending");
}

static void start_saying(void *start, uint32_t bytes) { post_send(endpoint, start, bytes); }

static uint32_t hear(unsigned char **start) {
  const DAT_VLEN bytes = await_transfer(receives, "receiving");
  *start = room.received[heard++];
  return (uint32_t)bytes;
}

static void read_there(void *here, uint32_t bytes, uint64_t there, uint32_t key) {
  move(endpoint, kRead, here, bytes, there, key);
}

static void write_there(void *here, uint32_t bytes, uint64_t there, uint32_t key) {
  move(endpoint, kWrite, here, bytes, there, key);
}

static struct connection connection = {&room,        0,    1,          0,          say,
                                       start_saying, hear, read_there, write_there};

static void begin(enum role role, int step) {
  int i;
  endpoint = make_endpoint();
  for (i = 0; i < kReceives; i++) post_receive(endpoint, room.received[i], kLetter);
  heard = 0;
  prepare(&connection, role, step);
}

static void forget(void) {
  DAT_EVENT event;
  must(dat_ep_free(endpoint), "dat_ep_free");
  while (dat_evd_dequeue(receives, &event) == DAT_SUCCESS) {
  }
}

static void expect_flushed(enum role role, int step) {
  int i;
  DAT_EVENT event;
  for (i = receives_left(&connection, role, step); i > 0; i--) {
    event = next(receives, "waiting for a flushed receive");
    expect(step, event.event_data.dto_completion_event_data.status == DAT_DTO_ERR_FLUSHED,
           "a receive that was left is not flushed");
  }
  expect(step, dat_evd_dequeue(receives, &event) != DAT_SUCCESS, "one completion too many");
  expect(step, dat_evd_dequeue(connections, &event) != DAT_SUCCESS, "one event too many");
}

static void end(enum role role, int step) {
  const int abrupt = kSteps[step].abrupt;
  if (role == kSteps[step].ender) {
    if (!abrupt) start_saying(room.letter, last_letter(&connection, role, step));
    must(dat_ep_disconnect(endpoint, abrupt ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG),
         "dat_ep_disconnect");
    if (!abrupt) await_transfer(sends, "sending the last letter");
  } else {
    if (has_last_letter(&connection, role, step)) hear_last_letter(&connection, role, step);
    next(sends, "the message before the end"); /* done, or flushed by the end */
  }
  await_connection(DAT_CONNECTION_EVENT_DISCONNECTED);
  expect_flushed(role, step);
  must(dat_ep_free(endpoint), "dat_ep_free");
}

static void expect_data(const DAT_EVENT *event, enum role sender, int step) {
  const DAT_CONNECTION_EVENT_DATA *seen = &event->event_data.connect_event_data;
  expect(step,
         connection.peer_is_dat
             ? are_data(seen->private_data, seen->private_data_size, sender, step)
             : seen->private_data_size == 0,
         "other private data in the answer");
}

static void serve_step(int step) {
  unsigned char data[kMostData];
  const int size = make_data(data, most, kServer, step);
  const DAT_EVENT event = next(requests, "waiting for a request");
  const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
  DAT_CR_PARAM seen;
  must(dat_cr_query(request, DAT_CR_FIELD_ALL, &seen), "dat_cr_query");
  expect(step,
         connection.peer_is_dat ? are_data(seen.private_data, seen.private_data_size, kClient, step)
                                : seen.private_data_size == 0,
         "other private data in the request");
  if (kSteps[step].ender == kNobody) {
    must(dat_cr_reject(request, size, data), "dat_cr_reject");
    return;
  }
  begin(kServer, step);
  must(dat_cr_accept(request, endpoint, size, data), "dat_cr_accept");
  await_connection(DAT_CONNECTION_EVENT_ESTABLISHED);
  talk(&connection, kServer, step);
  end(kServer, step);
}

static DAT_EVENT dial(const char *host, int step) {
  unsigned char data[kMostData];
  const int size = make_data(data, most, kClient, step);
  for (;;) {
    DAT_EVENT event;
    begin(kClient, step);
    start_connecting(endpoint, host, kPort, kPatience, size, data);
    event = next(connections, "waiting for an answer");
    if (connection.peer_is_dat || event.event_number != DAT_CONNECTION_EVENT_NON_PEER_REJECTED)
      return event;
    forget();
  }
}

static void dial_step(const char *host, int step) {
  const DAT_EVENT event = dial(host, step);
  if (kSteps[step].ender == kNobody) {
    expect(step, event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED, "it is not rejected");
    expect_data(&event, kServer, step);
    forget();
    return;
  }
  expect(step, event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED, "it is not accepted");
  expect_data(&event, kServer, step);
  talk(&connection, kClient, step);
  end(kClient, step);
}

static int most_private_data(void) {
  DAT_PROVIDER_ATTR attributes;
  must(dat_ia_query(ia, NULL, DAT_IA_FIELD_NONE, NULL, DAT_PROVIDER_FIELD_ALL, &attributes),
       "dat_ia_query");
  return (int)attributes.max_private_data_size;
}

int main(int argc, char **argv) {
  int step;
  DAT_PSP_HANDLE point;
  if (argc != 4) {
    fprintf(stderr, "usage: exchange_dat ADAPTER serve|ADDRESS dat|via\n");
    return 2;
  }
  open_adapter(argv[1], &room, sizeof room);
  connection.key = remote_key;
  connection.peer_is_dat = strcmp(argv[3], "dat") == 0;
  most = most_private_data();
  if (strcmp(argv[2], "serve") == 0) {
    must(dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &point), "dat_psp_create");
    for (step = 0; step < kStepCount; step++) serve_step(step);
  } else {
    for (step = 0; step < kStepCount; step++) dial_step(argv[2], step);
  }
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  printf("%d steps, private data up to %d bytes\n", kStepCount, most);
  return 0;
}
