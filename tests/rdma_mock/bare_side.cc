#include "tests/rdma_mock/bare_side.h"

#include <arpa/inet.h>
#include <netinet/in.h>

namespace viaduct::bench {
namespace {

constexpr int kResolveMs = 10'000;

sockaddr_in At(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void Must(const char* what, int result) {
  if (result != 0) Die(what, result);
}

}  // namespace

BareSide::BareSide(const SideOptions& options)
    : options_(options),
      block_(2 * Block::RoundUp(options.bytes)),
      channel_(rdma_create_event_channel()) {}

rdma_cm_id* BareSide::Await(rdma_cm_event_type type) {
  rdma_cm_event* event;
  Must("rdma_get_cm_event", rdma_get_cm_event(channel_, &event));
  rdma_cm_id* const id = event->id;
  if (event->event != type) Die("rdma_get_cm_event", event->event);
  rdma_ack_cm_event(event);
  return id;
}

void BareSide::MakePair(rdma_cm_id* id) {
  if (domain_ == nullptr) {
    domain_ = ibv_alloc_pd(id->verbs);
    const int access = IBV_ACCESS_LOCAL_WRITE;
    region_ = ibv_reg_mr(domain_, block_.start(), block_.bytes(), access);
    queue_ = ibv_create_cq(id->verbs, static_cast<int>(2 * options_.depth), nullptr, nullptr, 0);
  }
  ibv_qp_init_attr wanted = {};
  wanted.send_cq = wanted.recv_cq = queue_;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = wanted.cap.max_recv_wr = options_.depth;
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = options_.bytes;
  Must("rdma_create_qp", rdma_create_qp(id, domain_, &wanted));
  pairs_.push_back(id->qp);
}

void BareSide::Listen(uint16_t port) {
  Must("rdma_create_id", rdma_create_id(channel_, &listener_, nullptr, RDMA_PS_TCP));
  sockaddr_in address = At(port);
  Must("rdma_bind_addr", rdma_bind_addr(listener_, reinterpret_cast<sockaddr*>(&address)));
  Must("rdma_listen", rdma_listen(listener_, 1));
}

void BareSide::Accept() {
  rdma_cm_id* const id = Await(RDMA_CM_EVENT_CONNECT_REQUEST);
  MakePair(id);
  rdma_conn_param parameters = {};
  Must("rdma_accept", rdma_accept(id, &parameters));
  Await(RDMA_CM_EVENT_ESTABLISHED);
}

void BareSide::Connect(uint16_t port) {
  rdma_cm_id* id;
  Must("rdma_create_id", rdma_create_id(channel_, &id, nullptr, RDMA_PS_TCP));
  sockaddr_in from = At(0), to = At(port);
  Must("rdma_resolve_addr", rdma_resolve_addr(id, reinterpret_cast<sockaddr*>(&from),
                                              reinterpret_cast<sockaddr*>(&to), kResolveMs));
  Await(RDMA_CM_EVENT_ADDR_RESOLVED);
  Must("rdma_resolve_route", rdma_resolve_route(id, kResolveMs));
  Await(RDMA_CM_EVENT_ROUTE_RESOLVED);
  MakePair(id);
  rdma_conn_param parameters = {};
  Must("rdma_connect", rdma_connect(id, &parameters));
  Await(RDMA_CM_EVENT_ESTABLISHED);
}

}  // namespace viaduct::bench
