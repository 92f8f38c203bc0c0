/*
 * The smallest DAT program: a server that prints what it is told, and a client that tells it.
 *
 *   hello SERVICE              waits for one client
 *   hello SERVICE HOST TEXT    says TEXT to the server on HOST
 */
#include <ctype.h>
#include <dat2/udat.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: hello SERVICE [HOST TEXT]\n";

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE evd; /* takes every kind of event */
static DAT_EP_HANDLE ep;
static DAT_LMR_TRIPLET segment;
static char text[256];

static void must(DAT_RETURN value, const char *what) {
  const char *type, *detail;

  if (value == DAT_SUCCESS) return;
  dat_strerror(value, &type, &detail);
  fprintf(stderr, "hello: %s: %s %s\n", what, type, detail);
  exit(1);
}

/* What an unexpected event says about the connection. */
static const char *meaning(DAT_EVENT_NUMBER number) {
  switch (number) {
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      return "nobody waits there";
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      return "the server refuses";
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      return "the host cannot be reached";
    case DAT_CONNECTION_EVENT_TIMED_OUT:
      return "no answer";
    case DAT_CONNECTION_EVENT_DISCONNECTED:
      return "the other side hung up";
    case DAT_CONNECTION_EVENT_BROKEN:
      return "the connection broke";
    default:
      return "an event out of turn";
  }
}

static DAT_EVENT await(DAT_EVENT_NUMBER number) {
  DAT_EVENT event;
  DAT_COUNT more;

  must(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
  if (event.event_number != number) {
    fprintf(stderr, "hello: %s (event 0x%x)\n", meaning(event.event_number), event.event_number);
    exit(1);
  }
  if (number == DAT_DTO_COMPLETION_EVENT &&
      event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
    fprintf(stderr, "hello: no message went over (status %d)\n",
            event.event_data.dto_completion_event_data.status);
    exit(1);
  }
  return event;
}

static void set_up(void) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE zone;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;

  must(dat_ia_open("soft0", 8, &async, &ia), "dat_ia_open");
  must(dat_pz_create(ia, &zone), "dat_pz_create");
  must(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &evd), "dat_evd_create");
  must(dat_ep_create(ia, zone, evd, evd, evd, NULL, &ep), "dat_ep_create");
  region.for_va = text;
  must(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof text, zone,
                      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
                      &lmr, &segment.lmr_context, NULL, NULL, NULL),
       "dat_lmr_create");
  segment.virtual_address = (DAT_VADDR)(size_t)text;
  segment.segment_length = sizeof text;
}

static void serve(DAT_CONN_QUAL service) {
  DAT_PSP_HANDLE psp;
  DAT_EVENT event;
  DAT_DTO_COOKIE cookie;

  must(dat_psp_create(ia, service, evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
  puts("waiting");
  fflush(stdout);
  event = await(DAT_CONNECTION_REQUEST_EVENT);
  /* Post the receive before the accept, so that the first message finds it. */
  cookie.as_64 = 0;
  must(dat_ep_post_recv(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_recv");
  must(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL),
       "dat_cr_accept");
  await(DAT_CONNECTION_EVENT_ESTABLISHED);
  await(DAT_DTO_COMPLETION_EVENT);
  text[sizeof text - 1] = '\0'; /* clients may send anything */
  printf("heard: %s\n", text);
  await(DAT_CONNECTION_EVENT_DISCONNECTED);
}

static void tell(DAT_CONN_QUAL service, const char *host, const char *what) {
  const struct addrinfo hints = {.ai_family = AF_INET}; /* like soft0's address */
  struct addrinfo *found;
  DAT_DTO_COOKIE cookie;

  if (getaddrinfo(host, NULL, &hints, &found) != 0) {
    fprintf(stderr, "hello: who is %s?\n", host);
    exit(1);
  }
  must(dat_ep_connect(ep, found->ai_addr, service, 10000000, 0, NULL, DAT_QOS_BEST_EFFORT,
                      DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  freeaddrinfo(found);
  await(DAT_CONNECTION_EVENT_ESTABLISHED);
  snprintf(text, sizeof text, "%s", what);
  segment.segment_length = strlen(text) + 1;
  cookie.as_64 = 0;
  must(dat_ep_post_send(ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG), "dat_ep_post_send");
  await(DAT_DTO_COMPLETION_EVENT);
  must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), "dat_ep_disconnect");
  await(DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* Returns the number of a service. Any other word prints the usage and ends the program. */
static DAT_CONN_QUAL service_of(const char *word) {
  const int help = strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
  char *end;
  const DAT_CONN_QUAL service = strtoul(word, &end, 0);

  if (isdigit((unsigned char)*word) && *end == '\0') return service;
  fputs(usage, help ? stdout : stderr);
  exit(help ? 0 : 2);
}

int main(int argc, char **argv) {
  DAT_CONN_QUAL service;

  if (argc != 2 && argc != 4) {
    fputs(usage, stderr);
    return 2;
  }
  service = service_of(argv[1]);
  set_up();
  if (argc == 2) {
    serve(service);
  } else {
    tell(service, argv[2], argv[3]);
  }
  must(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
  return 0;
}
