#include "tests/lab/dat_end.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kEvents = 32 };

DAT_IA_HANDLE ia;
DAT_EVD_HANDLE requests, connections, receives, sends;
DAT_RMR_CONTEXT remote_key;
static DAT_PZ_HANDLE zone;
static DAT_LMR_CONTEXT local_key;

void must(DAT_RETURN result, const char *what) {
  const char *major = "", *minor = "";
  if (result == DAT_SUCCESS) return;
  dat_strerror(result, &major, &minor);
  fprintf(stderr, "%s: %s %s\n", what, major, minor);
  exit(1);
}

DAT_EVENT next(DAT_EVD_HANDLE evd, const char *what) {
  DAT_EVENT event;
  DAT_COUNT more;
  must(dat_evd_wait(evd, kPatience, 1, &event, &more), what);
  return event;
}

DAT_EVENT await_connection(DAT_EVENT_NUMBER number) {
  const DAT_EVENT event = next(connections, "waiting for the connection");
  if (event.event_number != number) {
    fprintf(stderr, "connection event %#x instead of %#x\n", event.event_number, number);
    exit(1);
  }
  return event;
}

DAT_VLEN await_transfer(DAT_EVD_HANDLE evd, const char *what) {
  const DAT_EVENT event = next(evd, what);
  const DAT_DTO_COMPLETION_EVENT_DATA *done = &event.event_data.dto_completion_event_data;
  if (done->status != DAT_DTO_SUCCESS) {
    fprintf(stderr, "%s: status %d\n", what, (int)done->status);
    exit(1);
  }
  return done->transfered_length;
}

static DAT_LMR_TRIPLET piece(void *start, uint32_t bytes) {
  DAT_LMR_TRIPLET triplet;
  memset(&triplet, 0, sizeof triplet);
  triplet.virtual_address = (DAT_VADDR)(uintptr_t)start;
  triplet.segment_length = bytes;
  triplet.lmr_context = local_key;
  return triplet;
}

static DAT_DTO_COOKIE no_cookie(void) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = 0;
  return cookie;
}

void post_receive(DAT_EP_HANDLE endpoint, void *start, uint32_t bytes) {
  DAT_LMR_TRIPLET buffer = piece(start, bytes);
  must(dat_ep_post_recv(endpoint, 1, &buffer, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG),
       "dat_ep_post_recv");
}

void post_send(DAT_EP_HANDLE endpoint, void *start, uint32_t bytes) {
  DAT_LMR_TRIPLET buffer = piece(start, bytes);
  must(dat_ep_post_send(endpoint, 1, &buffer, no_cookie(), DAT_COMPLETION_DEFAULT_FLAG),
       "dat_ep_post_send");
}

void start_moving(DAT_EP_HANDLE endpoint, enum direction direction, void *here, uint32_t bytes,
                  uint64_t there, uint32_t key) {
  DAT_LMR_TRIPLET buffer = piece(here, bytes);
  DAT_RMR_TRIPLET target;
  memset(&target, 0, sizeof target);
  target.virtual_address = there;
  target.segment_length = bytes;
  target.rmr_context = key;
  if (direction == kWrite) {
    must(dat_ep_post_rdma_write(endpoint, 1, &buffer, no_cookie(), &target,
                                DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_rdma_write");
  } else {
    must(dat_ep_post_rdma_read(endpoint, 1, &buffer, no_cookie(), &target,
                               DAT_COMPLETION_DEFAULT_FLAG),
         "dat_ep_post_rdma_read");
  }
}

void move(DAT_EP_HANDLE endpoint, enum direction direction, void *here, uint32_t bytes,
          uint64_t there, uint32_t key) {
  start_moving(endpoint, direction, here, bytes, there, key);
  await_transfer(sends, direction == kWrite ? "writing" : "reading");
}

static DAT_EVD_HANDLE queue(DAT_EVD_FLAGS streams) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  must(dat_evd_create(ia, kEvents, DAT_HANDLE_NULL, streams, &evd), "dat_evd_create");
  return evd;
}

void open_adapter(char *name, void *memory, size_t bytes) {
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  DAT_REGION_DESCRIPTION region;
  DAT_LMR_HANDLE lmr;
  must(dat_ia_open(name, 8, &async, &ia), "dat_ia_open");
  must(dat_pz_create(ia, &zone), "dat_pz_create");
  requests = queue(DAT_EVD_CR_FLAG);
  connections = queue(DAT_EVD_CONNECTION_FLAG);
  receives = queue(DAT_EVD_DTO_FLAG);
  sends = queue(DAT_EVD_DTO_FLAG);
  memset(&region, 0, sizeof region);
  region.for_va = memory;
  must(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, bytes, zone, DAT_MEM_PRIV_ALL_FLAG,
                      DAT_VA_TYPE_VA, &lmr, &local_key, &remote_key, NULL, NULL),
       "dat_lmr_create");
}

DAT_EP_HANDLE make_endpoint(void) {
  DAT_EP_HANDLE endpoint = DAT_HANDLE_NULL;
  must(dat_ep_create(ia, zone, receives, sends, connections, NULL, &endpoint), "dat_ep_create");
  return endpoint;
}

void start_connecting(DAT_EP_HANDLE endpoint, const char *host, DAT_CONN_QUAL port,
                      DAT_TIMEOUT patience, DAT_COUNT bytes, void *private_data) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) exit(2);
  must(dat_ep_connect(endpoint, (DAT_IA_ADDRESS_PTR)&address, port, patience, bytes, private_data,
                      DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
       "dat_ep_connect");
}
