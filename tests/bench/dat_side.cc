#include "tests/bench/dat_side.h"

namespace viaduct::bench {
namespace {

constexpr DAT_TIMEOUT kTimeoutMicroseconds = 20000000;

void Must(const char* what, DAT_RETURN result) {
  if (result != DAT_SUCCESS) Die(what, result);
}

}  // namespace

DatSide::DatSide(const SideOptions& options)
    : options_(options), block_(2 * Block::RoundUp(options.bytes)) {
  memset(out(), 1, options_.bytes);
  char name[] = "soft0";
  DAT_EVD_HANDLE asynchronous = DAT_HANDLE_NULL;
  Must("dat_ia_open", dat_ia_open(name, 8, &asynchronous, &ia_));
  DAT_IA_ATTR attributes;
  Must("dat_ia_query", dat_ia_query(ia_, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr));
  const sockaddr* address = attributes.ia_address_ptr;
  memcpy(&address_, address,
         address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
  Must("dat_pz_create", dat_pz_create(ia_, &zone_));
  completions_ = MakeEvd(static_cast<DAT_COUNT>(4 * options_.depth), DAT_EVD_DTO_FLAG);
  connects_ = MakeEvd(1024, DAT_EVD_CONNECTION_FLAG);
  requests_ = MakeEvd(64, DAT_EVD_CR_FLAG);
  Must("dat_lmr_create", CreateLmr(ia_, block_.start(), block_.bytes(), zone_, &memory_,
                                   &local_context_, &remote_context_));
}

DatSide::~DatSide() { dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG); }

DAT_EVD_HANDLE DatSide::MakeEvd(DAT_COUNT length, DAT_EVD_FLAGS streams) {
  DAT_EVD_HANDLE evd;
  Must("dat_evd_create", dat_evd_create(ia_, length, DAT_HANDLE_NULL, streams, &evd));
  return evd;
}

DAT_EP_HANDLE DatSide::AddEndpoint() {
  DAT_EP_ATTR attributes = {};
  attributes.service_type = DAT_SERVICE_TYPE_RC;
  attributes.max_message_size = options_.bytes;
  attributes.max_rdma_size = options_.bytes;
  attributes.qos = DAT_QOS_BEST_EFFORT;
  attributes.max_recv_dtos = static_cast<DAT_COUNT>(options_.depth);
  attributes.max_request_dtos = static_cast<DAT_COUNT>(options_.depth);
  attributes.max_recv_iov = 1;
  attributes.max_request_iov = 1;
  attributes.max_rdma_write_iov = 1;
  DAT_EP_HANDLE endpoint;
  Must("dat_ep_create",
       dat_ep_create(ia_, zone_, completions_, completions_, connects_, &attributes, &endpoint));
  endpoints_.push_back(endpoint);
  return endpoint;
}

void DatSide::AwaitEvent(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT* event) {
  DAT_COUNT more;
  // Disconnects of earlier connections come here too.
  do {
    Must("dat_evd_wait", dat_evd_wait(evd, kTimeoutMicroseconds, 1, event, &more));
  } while (event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
  if (event->event_number != number) Die("connection event", event->event_number);
}

void DatSide::Listen(uint16_t port) {
  Must("dat_psp_create",
       dat_psp_create(ia_, port, requests_, DAT_PSP_CONSUMER_FLAG, &service_point_));
}

void DatSide::Connect(uint16_t port) {
  DAT_EP_HANDLE endpoint = AddEndpoint();
  Must("dat_ep_connect", dat_ep_connect(endpoint, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address_),
                                        port, kTimeoutMicroseconds, 0, nullptr, DAT_QOS_BEST_EFFORT,
                                        DAT_CONNECT_DEFAULT_FLAG));
  DAT_EVENT event;
  AwaitEvent(connects_, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

void DatSide::Accept() {
  DAT_EP_HANDLE endpoint = AddEndpoint();
  DAT_EVENT event;
  AwaitEvent(requests_, DAT_CONNECTION_REQUEST_EVENT, &event);
  Must("dat_cr_accept",
       dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, endpoint, 0, nullptr));
  AwaitEvent(connects_, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

}  // namespace viaduct::bench
