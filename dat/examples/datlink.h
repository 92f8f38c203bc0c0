/*
 * What board and echo begin with: an adapter, a zone, a dispatcher for every kind of event, memory,
 * and a message about what went wrong.
 */
#ifndef DATLINK_H
#define DATLINK_H

#include <dat2/udat.h>

/* Ends the program unless `value` is success. */
void must(DAT_RETURN value, const char *what);

/* Returns the number of a service. Any other word prints the usage and ends the program. */
DAT_CONN_QUAL link_service(const char *word, const char *usage);

struct link {
  DAT_IA_HANDLE ia;
  DAT_PZ_HANDLE zone;
  DAT_EVD_HANDLE evd;
};
/* The dispatcher's `cno` may be DAT_HANDLE_NULL. */
void link_open(struct link *link);
void link_dispatcher(struct link *link, DAT_CNO_HANDLE cno, DAT_COUNT length);
DAT_EP_HANDLE link_endpoint(const struct link *link);

struct memory {
  DAT_LMR_HANDLE lmr;
  DAT_LMR_TRIPLET local;      /* for this side's posts */
  DAT_RMR_CONTEXT for_others; /* 0 without remote privileges */
};
void link_register(const struct link *link, void *address, DAT_UINT32 length, int remote,
                   struct memory *memory);

void link_connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL service, const char *host);
DAT_EVENT link_next(const struct link *link);
/* Returns the next event. It must have this number and, if it is a completion, be a success. */
DAT_EVENT link_await(const struct link *link, DAT_EVENT_NUMBER number);

#endif
