/* What a DAT program is told when something is wrong with an RDMA device, its rights, or the peer.
 *
 * usage: bad_input ADAPTER open                   opens it
 *        bad_input ADAPTER memory                 registers 16 MiB
 *        bad_input ADAPTER connect ADDRESS PORT   connects, with a limit of 8 seconds
 *        bad_input ADAPTER hold                   connects with itself, waits until that ends and
 * the adapter says why, opens it once more
 *        bad_input ADAPTER give-up                accepts, disconnects before the peer has said a
 * word, and opens it once more
 *
 * Prints a line for each step: its name and the result.
 */
#include <arpa/inet.h>
#include <dat2/udat.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lab/event_names.h"

enum { kPort = 7199, kPatience = 8000000, kLong = 60000000, kBytes = 16 << 20 };

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE zone;
static DAT_EVD_HANDLE errors, requests, connections, receives, sends;
static char *name;

static int answer(const char *step, DAT_RETURN result) {
  const char *major = "", *minor = "";
  dat_strerror(result, &major, &minor);
  printf("%s: %s\n", step, major);
  return result == DAT_SUCCESS;
}

static int open_adapter(const char *step) {
  errors = ia = DAT_HANDLE_NULL;
  return answer(step, dat_ia_open(name, 8, &errors, &ia));
}

static DAT_EVD_HANDLE queue(DAT_EVD_FLAGS streams) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  if (dat_evd_create(ia, 16, DAT_HANDLE_NULL, streams, &evd) != DAT_SUCCESS) exit(1);
  return evd;
}

static DAT_EP_HANDLE make_endpoint(void) {
  DAT_EP_HANDLE endpoint = DAT_HANDLE_NULL;
  if (!answer("endpoint", dat_ep_create(ia, zone, receives, sends, connections, NULL, &endpoint)))
    exit(0);
  return endpoint;
}

static void make_queues(void) {
  if (dat_pz_create(ia, &zone) != DAT_SUCCESS) exit(1);
  requests = queue(DAT_EVD_CR_FLAG);
  connections = queue(DAT_EVD_CONNECTION_FLAG);
  receives = queue(DAT_EVD_DTO_FLAG);
  sends = queue(DAT_EVD_DTO_FLAG);
}

static DAT_EVENT next(DAT_EVD_HANDLE evd, DAT_TIMEOUT patience) {
  DAT_EVENT event;
  DAT_COUNT more;
  if (dat_evd_wait(evd, patience, 1, &event, &more) != DAT_SUCCESS) {
    printf("no event\n");
    exit(0);
  }
  return event;
}

static void connect_to(struct sockaddr_in *address, int port) {
  if (!answer("connect",
              dat_ep_connect(make_endpoint(), (DAT_IA_ADDRESS_PTR)address, (DAT_CONN_QUAL)port,
                             kPatience, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG))) {
    exit(0);
  }
}

static void hold(void) {
  DAT_IA_ATTR attributes;
  DAT_PSP_HANDLE point;
  DAT_EVENT event;
  struct sockaddr_in own;
  if (dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attributes, 0, NULL) != DAT_SUCCESS) exit(1);
  memcpy(&own, attributes.ia_address_ptr, sizeof own);
  if (!answer("listen", dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &point))) return;
  connect_to(&own, kPort);
  event = next(requests, kPatience);
  answer("accept",
         dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, make_endpoint(), 0, NULL));
  printf("one side: %s\n", name_of_event(next(connections, kPatience).event_number));
  printf("other side: %s\n", name_of_event(next(connections, kPatience).event_number));
  fflush(stdout);
  printf("one side: %s\n", name_of_event(next(connections, kLong).event_number));
  printf("other side: %s\n", name_of_event(next(connections, kLong).event_number));
  printf("the adapter: %s\n", name_of_event(next(errors, kLong).event_number));
  answer("close", dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
  open_adapter("open again");
}

static void give_up(void) {
  const DAT_EP_HANDLE endpoint = make_endpoint();
  DAT_PSP_HANDLE point;
  DAT_EVENT event;
  if (!answer("listen", dat_psp_create(ia, kPort, requests, DAT_PSP_CONSUMER_FLAG, &point))) return;
  fflush(stdout);
  event = next(requests, kLong);
  answer("accept",
         dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoint, 0, NULL));
  answer("disconnect", dat_ep_disconnect(endpoint, DAT_CLOSE_ABRUPT_FLAG));
  answer("free", dat_ep_free(endpoint));
  answer("close", dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
  open_adapter("open again");
  fflush(stdout);
  getchar(); /* the end of the process would wait for the peer, too */
}

int main(int argc, char **argv) {
  const char *what = argc > 2 ? argv[2] : "";
  name = argc > 1 ? argv[1] : "";
  if (!open_adapter("open")) return 0;
  make_queues();
  if (strcmp(what, "memory") == 0) {
    DAT_REGION_DESCRIPTION region;
    DAT_LMR_HANDLE lmr;
    DAT_LMR_CONTEXT local;
    DAT_RMR_CONTEXT remote;
    DAT_VLEN size;
    DAT_VADDR start;
    region.for_va = calloc(1, kBytes);
    answer("register", dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, kBytes, zone,
                                      DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
                                      DAT_VA_TYPE_VA, &lmr, &local, &remote, &size, &start));
  } else if (strcmp(what, "connect") == 0 && argc > 4) {
    struct sockaddr_in to;
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    inet_pton(AF_INET, argv[3], &to.sin_addr);
    connect_to(&to, atoi(argv[4]));
    printf("outcome: %s\n", name_of_event(next(connections, 2 * kPatience).event_number));
  } else if (strcmp(what, "hold") == 0) {
    hold();
  } else if (strcmp(what, "give-up") == 0) {
    give_up();
  }
  return 0;
}
