#include "dat/examples/datlink.h"

#include <ctype.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void must(DAT_RETURN value, const char *what) {
  const char *type, *detail;

  if (value == DAT_SUCCESS) return;
  if (dat_strerror(value, &type, &detail) != DAT_SUCCESS) type = detail = "?";
  fprintf(stderr, "%s: %s %s\n", what, type, detail);
  exit(1);
}

DAT_CONN_QUAL link_service(const char *word, const char *usage) {
  const int help = strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0;
  char *end;
  const DAT_CONN_QUAL service = strtoul(word, &end, 0);

  if (isdigit((unsigned char)*word) && *end == '\0') return service;
  fputs(usage, help ? stdout : stderr);
  exit(help ? 0 : 2);
}

void link_open(struct link *link) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

  must(dat_ia_open("soft0", 8, &async, &link->ia), "dat_ia_open");
  must(dat_pz_create(link->ia, &link->zone), "dat_pz_create");
}

void link_dispatcher(struct link *link, DAT_CNO_HANDLE cno, DAT_COUNT length) {
  must(dat_evd_create(link->ia, length, cno, DAT_EVD_DEFAULT_FLAG, &link->evd), "dat_evd_create");
}

DAT_EP_HANDLE link_endpoint(const struct link *link) {
  DAT_EP_HANDLE ep;

  must(dat_ep_create(link->ia, link->zone, link->evd, link->evd, link->evd, NULL, &ep),
       "dat_ep_create");
  return ep;
}

void link_register(const struct link *link, void *address, DAT_UINT32 length, int remote,
                   struct memory *memory) {
  DAT_REGION_DESCRIPTION region;

  region.for_va = address;
  must(dat_lmr_create(link->ia, DAT_MEM_TYPE_VIRTUAL, region, length, link->zone,
                      remote ? DAT_MEM_PRIV_ALL_FLAG
                             : DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
                      DAT_VA_TYPE_VA, &memory->lmr, &memory->local.lmr_context, &memory->for_others,
                      NULL, NULL),
       "dat_lmr_create");
  memory->local.virtual_address = (DAT_VADDR)(size_t)address;
  memory->local.segment_length = length;
}

void link_connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL service, const char *host) {
  const struct addrinfo hints = {.ai_family = AF_INET}; /* like soft0's address */
  struct addrinfo *found;

  if (getaddrinfo(host, NULL, &hints, &found) != 0) {
    fprintf(stderr, "who is %s?\n", host);
    exit(1);
  }
  must(dat_ep_connect(ep, found->ai_addr, service, 10000000, 0, NULL, DAT_QOS_BEST_EFFORT,
                      DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
  freeaddrinfo(found);
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

DAT_EVENT link_next(const struct link *link) {
  DAT_EVENT event;
  DAT_COUNT more;

  must(dat_evd_wait(link->evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
  return event;
}

DAT_EVENT link_await(const struct link *link, DAT_EVENT_NUMBER number) {
  const DAT_EVENT event = link_next(link);

  if (event.event_number != number) {
    fprintf(stderr, "%s (event 0x%x)\n", meaning(event.event_number), event.event_number);
    exit(1);
  }
  if (number == DAT_DTO_COMPLETION_EVENT &&
      event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS) {
    fprintf(stderr, "a transfer failed (status %d)\n",
            event.event_data.dto_completion_event_data.status);
    exit(1);
  }
  return event;
}
