/* private_data.h, with only librdmacm: like any program over iWARP. OWN is its address. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <string.h>

#include "tests/lab/private_data.h"

enum { kPatienceMs = 10000 };

static struct sockaddr_in address_of(const char *host, int port) {
  struct sockaddr_in address;
  memset(&address, 0, sizeof address);
  address.sin_family = AF_INET;
  address.sin_port = htons((uint16_t)port);
  if (inet_pton(AF_INET, host, &address.sin_addr) != 1) fail(host);
  return address;
}

/* Without an event channel every call waits for its event, which is then id->event. */
static struct rdma_cm_id *make_id(void) {
  struct rdma_cm_id *id;
  if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) != 0) fail("rdma_create_id");
  return id;
}

static void make_pair(struct rdma_cm_id *id) {
  struct ibv_qp_init_attr attributes;
  memset(&attributes, 0, sizeof attributes);
  attributes.qp_type = IBV_QPT_RC;
  attributes.cap.max_send_wr = attributes.cap.max_recv_wr = 1;
  attributes.cap.max_send_sge = attributes.cap.max_recv_sge = 1;
  if (rdma_create_qp(id, NULL, &attributes) != 0) fail("rdma_create_qp");
}

static struct rdma_conn_param parameters(const struct answer *own) {
  struct rdma_conn_param parameters;
  memset(&parameters, 0, sizeof parameters);
  parameters.private_data = own->data;
  parameters.private_data_len = (uint8_t)own->size;
  parameters.responder_resources = parameters.initiator_depth = 1;
  return parameters;
}

static void show_event(const char *what, const struct rdma_cm_id *id) {
  const struct rdma_conn_param *seen = &id->event->param.conn;
  show(what, seen->private_data, seen->private_data_len);
}

static void dial(const char *own, const char *host, const char *number) {
  struct sockaddr_in from = address_of(own, 0), to = address_of(host, kPort);
  const struct answer data = read_answer(number);
  struct rdma_conn_param wanted = parameters(&data);
  struct rdma_cm_id *id = make_id();
  if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, kPatienceMs) != 0)
    fail("rdma_resolve_addr");
  if (rdma_resolve_route(id, kPatienceMs) != 0) fail("rdma_resolve_route");
  make_pair(id);
  if (rdma_connect(id, &wanted) == 0) {
    show_event("accept", id);
    rdma_disconnect(id);
  } else if (id->event != NULL && id->event->event == RDMA_CM_EVENT_REJECTED) {
    show_event("reject", id);
  } else {
    fail("rdma_connect");
  }
  rdma_destroy_ep(id);
}

static void await_end(struct rdma_cm_id *id) {
  struct rdma_cm_event *event;
  if (rdma_get_cm_event(id->channel, &event) != 0) fail("rdma_get_cm_event");
  if (event->event != RDMA_CM_EVENT_DISCONNECTED) fail(rdma_event_str(event->event));
  rdma_ack_cm_event(event);
}

static void serve_one(struct rdma_cm_id *listening, const char *number) {
  const struct answer data = read_answer(number);
  struct rdma_conn_param offered = parameters(&data);
  struct rdma_cm_id *id;
  if (rdma_get_request(listening, &id) != 0) fail("rdma_get_request");
  show_event("request", id);
  if (data.rejects) {
    if (rdma_reject(id, data.data, (uint8_t)data.size) != 0) fail("rdma_reject");
  } else {
    make_pair(id);
    if (rdma_accept(id, &offered) != 0) fail("rdma_accept");
    await_end(id);
  }
  rdma_destroy_ep(id);
}

int main(int argc, char **argv) {
  int i;
  if (argc < 4) {
    fprintf(stderr, "usage: private_data_cm OWN serve|ADDRESS BYTES...\n");
    return 2;
  }
  if (strcmp(argv[2], "serve") == 0) {
    struct sockaddr_in own = address_of(argv[1], kPort);
    struct rdma_cm_id *listening = make_id();
    if (rdma_bind_addr(listening, (struct sockaddr *)&own) != 0) fail("rdma_bind_addr");
    if (rdma_listen(listening, 8) != 0) fail("rdma_listen");
    for (i = 3; i < argc; i++) serve_one(listening, argv[i]);
    rdma_destroy_ep(listening);
  } else {
    for (i = 3; i < argc; i++) dial(argv[1], argv[2], argv[i]);
  }
  return 0;
}
