/*
 * An echo server with an event loop of its own: epoll watches standard input and, through a
 * notifier with a descriptor (dat_cno_fd_create), everything that DAT has to tell.
 *
 *   echo SERVICE              sends every message back; ends with its standard input, unless that
 *                             is a file or /dev/null, which epoll does not watch
 *   echo SERVICE HOST TEXT... sends the TEXTs one after the other and prints what comes back
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dat/examples/datlink.h"

#define MESSAGE 256

static const char usage[] = "usage: echo SERVICE [HOST TEXT...]\n";

/* One buffer, which is either waiting for a message or on its way back. */
struct client {
  DAT_EP_HANDLE ep;
  struct memory memory;
  int posted; /* the buffer's event has not come yet */
  int ended;  /* the connection has had its last event */
  char text[MESSAGE];
};

static void post(struct client *client, int send, DAT_UINT32 length) {
  DAT_LMR_TRIPLET segment = client->memory.local;
  DAT_DTO_COOKIE cookie;

  segment.segment_length = length;
  cookie.as_ptr = client;
  client->posted = 1;
  if (send) {
    must(dat_ep_post_send(client->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_send");
  } else {
    must(dat_ep_post_recv(client->ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_recv");
  }
}

static void admit(const struct link *link, DAT_CR_HANDLE request) {
  struct client *client = calloc(1, sizeof *client);
  DAT_CONTEXT context;

  if (client == NULL) {
    must(dat_cr_reject(request, 0, NULL), "dat_cr_reject");
    return;
  }
  client->ep = link_endpoint(link);
  context.as_ptr = client;
  must(dat_set_consumer_context(client->ep, context), "dat_set_consumer_context");
  link_register(link, client->text, sizeof client->text, 0, &client->memory);
  post(client, 0, sizeof client->text);
  must(dat_cr_accept(request, client->ep, 0, NULL), "dat_cr_accept");
}

/* Frees the client once nothing can touch its memory any more. */
static void dismiss(struct client *client) {
  if (client->posted || !client->ended) return;
  must(dat_ep_free(client->ep), "dat_ep_free");
  must(dat_lmr_free(client->memory.lmr), "dat_lmr_free");
  free(client);
}

static void completed(const DAT_DTO_COMPLETION_EVENT_DATA *done) {
  struct client *client = done->user_cookie.as_ptr;

  client->posted = 0;
  if (done->status == DAT_DTO_SUCCESS && !client->ended) {
    if (done->operation == DAT_DTO_RECEIVE) {
      post(client, 1, (DAT_UINT32)done->transfered_length);
    } else {
      post(client, 0, sizeof client->text);
    }
  }
  dismiss(client);
}

static void handle(const struct link *link, const DAT_EVENT *event) {
  DAT_CONTEXT context;
  struct client *client;

  switch (event->event_number) {
    case DAT_CONNECTION_REQUEST_EVENT:
      admit(link, event->event_data.cr_arrival_event_data.cr_handle);
      return;
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      return;
    case DAT_DTO_COMPLETION_EVENT:
      completed(&event->event_data.dto_completion_event_data);
      return;
    default: /* the end of a connection, or of an accept */
      must(dat_get_consumer_context(event->event_data.connect_event_data.ep_handle, &context),
           "dat_get_consumer_context");
      client = context.as_ptr;
      client->ended = 1;
      dismiss(client);
  }
}

static void serve(DAT_CONN_QUAL service) {
  struct link link;
  struct epoll_event watched, ready;
  DAT_CNO_HANDLE cno;
  DAT_PSP_HANDLE psp;
  DAT_EVENT event;
  DAT_EVD_HANDLE hint;
  DAT_FD fd;
  char rest[64];
  const int loop = epoll_create1(0);

  link_open(&link);
  must(dat_cno_fd_create(link.ia, &fd, &cno), "dat_cno_fd_create");
  link_dispatcher(&link, cno, 256);
  must(dat_psp_create(link.ia, service, link.evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
  memset(&watched, 0, sizeof watched);
  watched.events = EPOLLIN;
  watched.data.fd = fd;
  if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &watched) != 0) perror("epoll_ctl"), exit(1);
  watched.data.fd = STDIN_FILENO;
  if (epoll_ctl(loop, EPOLL_CTL_ADD, STDIN_FILENO, &watched) != 0 && errno != EPERM) {
    perror("epoll_ctl"), exit(1);
  }
  puts("waiting");
  fflush(stdout);
  for (;;) {
    if (epoll_wait(loop, &ready, 1, -1) != 1) continue;
    if (ready.data.fd == STDIN_FILENO) {
      if (read(STDIN_FILENO, rest, sizeof rest) <= 0) break;
      continue;
    }
    /* First take the trigger, then all events: what comes meanwhile triggers again. */
    (void)dat_cno_trigger(cno, &hint);
    while (dat_evd_dequeue(link.evd, &event) == DAT_SUCCESS) handle(&link, &event);
  }
  must(dat_ia_close(link.ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  close(loop);
}

static void talk(DAT_CONN_QUAL service, const char *host, char **texts) {
  struct link link;
  struct client self;

  memset(&self, 0, sizeof self);
  link_open(&link);
  link_dispatcher(&link, DAT_HANDLE_NULL, 16);
  self.ep = link_endpoint(&link);
  link_register(&link, self.text, sizeof self.text, 0, &self.memory);
  link_connect(self.ep, service, host);
  link_await(&link, DAT_CONNECTION_EVENT_ESTABLISHED);
  for (; *texts != NULL; texts++) {
    memset(self.text, 0, sizeof self.text);
    strncpy(self.text, *texts, sizeof self.text - 1);
    post(&self, 1, (DAT_UINT32)strlen(self.text) + 1);
    link_await(&link, DAT_DTO_COMPLETION_EVENT);
    memset(self.text, 0, sizeof self.text);
    post(&self, 0, sizeof self.text);
    link_await(&link, DAT_DTO_COMPLETION_EVENT);
    printf("echo: %s\n", self.text);
  }
  must(dat_ep_disconnect(self.ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  link_await(&link, DAT_CONNECTION_EVENT_DISCONNECTED);
  must(dat_ia_close(link.ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
}

int main(int argc, char **argv) {
  DAT_CONN_QUAL service;

  if (argc != 2 && argc < 4) {
    fputs(usage, stderr);
    return 2;
  }
  service = link_service(argv[1], usage);
  if (argc == 2) {
    serve(service);
  } else {
    talk(service, argv[2], argv + 3);
  }
  return 0;
}
