/*
 * A program of uDAPL 1.2 as it was written and linked long ago: two processes connect, one sends a
 * text, one takes it, both disconnect. Usage: old_program QUALIFIER
 */
#include <dat/udat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "all the way";

struct side {
  DAT_IA_HANDLE ia;
  DAT_PZ_HANDLE pz;
  DAT_EVD_HANDLE async, requests, connections, completions;
  DAT_EP_HANDLE ep;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET segment;
  char buffer[64];
};

static void check(DAT_RETURN result, const char *what) {
  const char *type = "?", *subtype = "?";
  if (result == DAT_SUCCESS) return;
  dat_strerror(result, &type, &subtype);
  printf("%s: %s %s\n", what, type, subtype);
  exit(1);
}

static void await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event) {
  DAT_COUNT more;
  check(dat_evd_wait(evd, 20000000, 1, event, &more), "dat_evd_wait");
  if (event->event_number == number) return;
  printf("event %x instead of %x\n", (unsigned)event->event_number, (unsigned)number);
  exit(1);
}

static void set_up(struct side *side) {
  DAT_REGION_DESCRIPTION region;
  DAT_RMR_CONTEXT remote;
  DAT_VLEN size;
  DAT_VADDR address;
  memset(side, 0, sizeof *side);
  side->async = DAT_HANDLE_NULL;
  check(dat_ia_open("soft0", 8, &side->async, &side->ia), "dat_ia_open");
  check(dat_pz_create(side->ia, &side->pz), "dat_pz_create");
  check(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &side->requests),
        "dat_evd_create");
  check(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &side->connections),
        "dat_evd_create");
  check(dat_evd_create(side->ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &side->completions),
        "dat_evd_create");
  check(dat_ep_create(side->ia, side->pz, side->completions, side->completions, side->connections,
                      NULL, &side->ep),
        "dat_ep_create");
  region.for_va = side->buffer;
  check(dat_lmr_create(side->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof side->buffer, side->pz,
                       DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, &side->lmr,
                       &side->segment.lmr_context, &remote, &size, &address),
        "dat_lmr_create");
  side->segment.virtual_address = (DAT_VADDR)(size_t)side->buffer;
  side->segment.segment_length = sizeof text;
}

static void tear_down(struct side *side) {
  check(dat_ep_free(side->ep), "dat_ep_free");
  check(dat_lmr_free(side->lmr), "dat_lmr_free");
  check(dat_evd_free(side->completions), "dat_evd_free");
  check(dat_evd_free(side->connections), "dat_evd_free");
  check(dat_evd_free(side->requests), "dat_evd_free");
  check(dat_pz_free(side->pz), "dat_pz_free");
  check(dat_ia_close(side->ia, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
}

static void serve(DAT_CONN_QUAL qualifier, int listening) {
  struct side side;
  DAT_PSP_HANDLE psp;
  DAT_EVENT event;
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 7;
  set_up(&side);
  check(dat_ep_post_recv(side.ep, 1, &side.segment, cookie, DAT_COMPLETION_DEFAULT_FLAG),
        "dat_ep_post_recv");
  check(dat_psp_create(side.ia, qualifier, side.requests, DAT_PSP_CONSUMER_FLAG, &psp),
        "dat_psp_create");
  if (write(listening, "", 1) != 1) exit(1);
  await(side.requests, DAT_CONNECTION_REQUEST_EVENT, &event);
  check(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, side.ep, 0, NULL),
        "dat_cr_accept");
  await(side.connections, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
  await(side.completions, DAT_DTO_COMPLETION_EVENT, &event);
  if (event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS ||
      event.event_data.dto_completion_event_data.user_cookie.as_64 != 7 ||
      event.event_data.dto_completion_event_data.transfered_length != sizeof text ||
      strcmp(side.buffer, text) != 0) {
    printf("the message is not the one that was sent\n");
    exit(1);
  }
  await(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
  check(dat_psp_free(psp), "dat_psp_free");
  tear_down(&side);
}

static void ask(DAT_CONN_QUAL qualifier) {
  struct side side;
  DAT_IA_ATTR attributes;
  DAT_EVENT event;
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 9;
  set_up(&side);
  check(dat_ia_query(side.ia, NULL, DAT_IA_FIELD_ALL, &attributes, 0, NULL), "dat_ia_query");
  check(dat_ep_connect(side.ep, attributes.ia_address_ptr, qualifier, 20000000, 0, NULL,
                       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
  await(side.connections, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
  strcpy(side.buffer, text);
  check(dat_ep_post_send(side.ep, 1, &side.segment, cookie, DAT_COMPLETION_DEFAULT_FLAG),
        "dat_ep_post_send");
  await(side.completions, DAT_DTO_COMPLETION_EVENT, &event);
  check(dat_ep_disconnect(side.ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  await(side.connections, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
  tear_down(&side);
}

int main(int argc, char **argv) {
  int ends[2], status = 0;
  char byte;
  pid_t client;
  DAT_CONN_QUAL qualifier;
  if (argc != 2 || pipe(ends) != 0) return 2;
  qualifier = (DAT_CONN_QUAL)atol(argv[1]);
  client = fork(); /* before the first call: each process has a library of its own */
  if (client == 0) {
    if (read(ends[0], &byte, 1) != 1) return 2;
    ask(qualifier);
    return 0;
  }
  serve(qualifier, ends[1]);
  if (waitpid(client, &status, 0) != client || status != 0) return 1;
  printf("connected, sent, disconnected\n");
  return 0;
}
