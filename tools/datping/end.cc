#include "tools/datping/end.h"

#include <algorithm>
#include <cstring>

namespace viaduct::datping {
namespace {

constexpr DAT_COMPLETION_FLAGS kDefault = DAT_COMPLETION_DEFAULT_FLAG;
constexpr DAT_DTO_COOKIE kReceive = {.as_64 = 1};
constexpr DAT_DTO_COOKIE kRequest = {.as_64 = 2};

}  // namespace

void Must(const std::string& call, DAT_RETURN value) {
  if (value == DAT_SUCCESS) return;
  const char *type = "?", *detail = "";
  (void)dat_strerror(value, &type, &detail);
  throw Failure(call + ": " + type + (*detail != '\0' ? std::string(" ") + detail : ""));
}

Adapter::Adapter(const std::string& name) {
  std::string copy = name;
  DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
  const auto open = [&](DAT_BOOLEAN thread_safe) {
    return dat_ia_openv(copy.data(), 8, &async, &ia_, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
                        thread_safe);
  };
  DAT_RETURN opened = open(DAT_TRUE);
  // Many a line of dat.conf says nonthreadsafe, and not every library of such a line is.
  const bool unsafe_line = DAT_GET_TYPE(opened) == DAT_PROVIDER_NOT_FOUND &&
                           DAT_GET_SUBTYPE(opened) == DAT_THREAD_SAFETY_NOT_FOUND;
  if (unsafe_line) opened = open(DAT_FALSE);
  Must("dat_ia_open " + name, opened);
  if (unsafe_line) {
    DAT_PROVIDER_ATTR provider = {};
    Must("dat_ia_query", dat_ia_query(ia_, nullptr, 0, nullptr, DAT_PROVIDER_FIELD_ALL, &provider));
    if (provider.is_thread_safe != DAT_TRUE) {
      throw Failure("the library of adapter " + name + " is not thread-safe");
    }
  }
  Must("dat_pz_create", dat_pz_create(ia_, &zone_));
}

int Adapter::family() const {
  DAT_IA_ATTR attributes;
  Must("dat_ia_query",
       dat_ia_query(ia_, nullptr, DAT_IA_FIELD_IA_ADDRESS_PTR, &attributes, 0, nullptr));
  return attributes.ia_address_ptr->sa_family;
}

Adapter::~Adapter() { (void)dat_ia_close(ia_, DAT_CLOSE_ABRUPT_FLAG); }

Request::~Request() {
  if (handle_ != DAT_HANDLE_NULL) (void)dat_cr_reject(handle_, 0, nullptr);
}

bool Request::Read(Parameters* parameters, Place* place) const {
  DAT_CR_PARAM param;
  Must("dat_cr_query", dat_cr_query(handle_, DAT_CR_FIELD_ALL, &param));
  return Decode(param.private_data, static_cast<size_t>(param.private_data_size), parameters,
                place);
}

void Request::Accept(DAT_EP_HANDLE ep, const Parameters& parameters, const Place& place) {
  Wire wire = Encode(parameters, place);
  Must("dat_cr_accept", dat_cr_accept(handle_, ep, wire.size(), wire.data()));
  handle_ = DAT_HANDLE_NULL;
}

End::End(const Parameters& parameters, int timeout_seconds)
    : parameters_(parameters),
      timeout_seconds_(timeout_seconds),
      memory_(2 * size_t{std::max(parameters.bytes, kLeastBytes)}),
      room_(std::max(parameters.bytes, kLeastBytes)) {}

// The other constructor has returned, so that the destructor runs, whatever is thrown here.
End::End(const Adapter& adapter, const Parameters& parameters, int timeout_seconds)
    : End(parameters, timeout_seconds) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = memory_.data();
  DAT_RMR_CONTEXT remote = 0;
  Must("dat_lmr_create", dat_lmr_create(adapter.ia(), DAT_MEM_TYPE_VIRTUAL, region, memory_.size(),
                                        adapter.zone(), DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
                                        &lmr_, &context_, &remote, nullptr, nullptr));
  own_ = {reinterpret_cast<uintptr_t>(memory_.data()), remote};
  if (parameters.completion == Completion::kCno) {
    Must("dat_cno_create", dat_cno_create(adapter.ia(), {nullptr, nullptr}, &cno_));
  }
  const auto depth = static_cast<DAT_COUNT>(parameters.depth) + 2;  // also for the barrier
  for (DAT_EVD_HANDLE* evd : {&receive_evd_, &request_evd_}) {
    Must("dat_evd_create", dat_evd_create(adapter.ia(), depth, cno_, DAT_EVD_DTO_FLAG, evd));
  }
  Must("dat_evd_create",
       dat_evd_create(adapter.ia(), 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &connect_evd_));
  DAT_EP_ATTR attributes = {};
  attributes.max_recv_dtos = depth;
  attributes.max_request_dtos = 2 * depth;  // a message may follow each write
  attributes.max_recv_iov = attributes.max_request_iov = 1;
  Must("dat_ep_create", dat_ep_create(adapter.ia(), adapter.zone(), receive_evd_, request_evd_,
                                      connect_evd_, &attributes, &ep_));
  for (uint32_t i = 0; i < parameters.depth; ++i) PostReceive();
}

End::~End() {
  if (ep_ != nullptr) (void)dat_ep_free(ep_);
  for (DAT_EVD_HANDLE evd : {receive_evd_, request_evd_, connect_evd_}) {
    if (evd != nullptr) (void)dat_evd_free(evd);
  }
  if (cno_ != nullptr) (void)dat_cno_free(cno_);
  if (lmr_ != nullptr) (void)dat_lmr_free(lmr_);
}

DAT_EVENT End::NextConnectionEvent(DAT_TIMEOUT patience) {
  DAT_EVENT event;
  DAT_COUNT more;
  Must("dat_evd_wait", dat_evd_wait(connect_evd_, patience, 1, &event, &more));
  return event;
}

bool End::Connect(DAT_IA_ADDRESS_PTR host, DAT_CONN_QUAL service) {
  Wire wire = Encode(parameters_, own_);
  Must("dat_ep_connect", dat_ep_connect(ep_, host, service, Patience(), wire.size(), wire.data(),
                                        DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
  // An event always comes: the attempt itself has the time-out, and reports its outcome.
  const DAT_EVENT event = NextConnectionEvent(DAT_TIMEOUT_INFINITE);
  switch (event.event_number) {
    case DAT_CONNECTION_EVENT_ESTABLISHED:
      break;
    case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
      return false;
    case DAT_CONNECTION_EVENT_PEER_REJECTED:
      throw Failure("the server has rejected this: it says why");
    case DAT_CONNECTION_EVENT_UNREACHABLE:
      throw Failure("the host cannot be reached");
    default:
      throw Failure("the server does not answer");
  }
  Parameters theirs;
  const DAT_CONNECTION_EVENT_DATA& data = event.event_data.connect_event_data;
  if (!Decode(data.private_data, static_cast<size_t>(data.private_data_size), &theirs, &remote_)) {
    throw Failure("the server is no datping");
  }
  return true;
}

void End::Accept(Request* request, const Place& remote) {
  remote_ = remote;
  request->Accept(ep_, parameters_, own_);
  if (NextConnectionEvent(Patience()).event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
    throw Ended();
}

void End::PostReceive() {
  DAT_LMR_TRIPLET segment = {own_.address, room_, context_};
  Must("dat_ep_post_recv", dat_ep_post_recv(ep_, 1, &segment, kReceive, kDefault));
}

void End::PostMessage(uint32_t bytes) {
  DAT_LMR_TRIPLET segment = {own_.address + room_, bytes, context_};
  Must("dat_ep_post_send", dat_ep_post_send(ep_, 1, &segment, kRequest, kDefault));
  ++requests_posted_;
}

void End::Post(uint64_t n) {
  if (parameters_.operation == Operation::kSend) return PostMessage(parameters_.bytes);
  const DAT_RMR_TRIPLET remote = {remote_.address, parameters_.bytes, remote_.context};
  if (parameters_.operation == Operation::kRead) {
    DAT_LMR_TRIPLET segment = {own_.address, parameters_.bytes, context_};
    Must("dat_ep_post_rdma_read",
         dat_ep_post_rdma_read(ep_, 1, &segment, kRequest, &remote, kDefault));
    ++requests_posted_;
    return;
  }
  // In a stream the buffer is the library's, because earlier writes are still in flight.
  if (parameters_.silent_write()) {
    memory_[room_ + parameters_.bytes - 1] = static_cast<char>(Parameters::Mark(n));
  }
  DAT_LMR_TRIPLET segment = {own_.address + room_, parameters_.bytes, context_};
  Must("dat_ep_post_rdma_write",
       dat_ep_post_rdma_write(ep_, 1, &segment, kRequest, &remote, kDefault));
  ++requests_posted_;
  if (parameters_.test == Test::kLatency && !parameters_.silent_write()) PostMessage(0);
}

void End::Took(const DAT_EVENT& event) {
  if (event.event_number != DAT_DTO_COMPLETION_EVENT) throw Ended();
  const DAT_DTO_COMPLETION_EVENT_DATA& done = event.event_data.dto_completion_event_data;
  if (done.status == DAT_DTO_ERR_FLUSHED || done.status == DAT_DTO_ERR_TRANSPORT) throw Ended();
  if (done.status != DAT_DTO_SUCCESS) {
    throw Failure("a request failed with status " + std::to_string(done.status));
  }
  if (done.user_cookie.as_64 == kRequest.as_64) {
    ++requests_done_;
  } else {
    ++receives_done_;
    PostReceive();
  }
}

bool End::Dequeue(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  const DAT_RETURN value = dat_evd_dequeue(evd, &event);
  if (DAT_GET_TYPE(value) == DAT_QUEUE_EMPTY) return false;
  Must("dat_evd_dequeue", value);
  Took(event);
  return true;
}

void End::Look(DAT_EVD_HANDLE evd) {
  if (parameters_.completion == Completion::kPoll) {
    Dequeue(receive_evd_);
    if (requests_done_ != requests_posted_) Dequeue(request_evd_);
    return;
  }
  if (parameters_.completion == Completion::kWait) {
    DAT_EVENT event;
    DAT_COUNT more;
    const DAT_RETURN value = dat_evd_wait(evd, Patience(), 1, &event, &more);
    if (DAT_GET_TYPE(value) == DAT_TIMEOUT_EXPIRED) throw Failure("the other end is silent");
    Must("dat_evd_wait", value);
    return Took(event);
  }
  if (Dequeue(evd)) return;
  DAT_EVD_HANDLE hint;
  const DAT_RETURN value = dat_cno_wait(cno_, Patience(), &hint);
  if (DAT_GET_TYPE(value) == DAT_QUEUE_EMPTY) throw Failure("the other end is silent");
  Must("dat_cno_wait", value);
}

void End::AwaitRequests(uint64_t left) {
  for (ping::Patience patience(timeout_seconds_); requests_posted_ - requests_done_ > left;
       patience.Look(come())) {
    Look(request_evd_);
  }
}

void End::AwaitReceives(uint64_t count) {
  for (ping::Patience patience(timeout_seconds_); receives_done_ < count; patience.Look(come())) {
    Look(receive_evd_);
  }
}

void End::AwaitWrite(uint64_t n) {
  const auto* flag =
      reinterpret_cast<const volatile unsigned char*>(memory_.data() + parameters_.bytes - 1);
  const unsigned char wanted = Parameters::Mark(n);
  for (ping::Patience patience(timeout_seconds_); *flag != wanted; patience.Look(come())) {
    Look(receive_evd_);  // writes land while somebody polls
  }
}

// A read completes only when everything before it has arrived.
void End::Barrier() {
  const DAT_RMR_TRIPLET nothing = {remote_.address, 0, remote_.context};
  Must("dat_ep_post_rdma_read",
       dat_ep_post_rdma_read(ep_, 0, nullptr, kRequest, &nothing, kDefault));
  ++requests_posted_;
  AwaitRequests();
}

void End::AwaitEnd() {
  while (parameters_.completion == Completion::kPoll) Look(receive_evd_);
  DAT_EVENT event;
  DAT_COUNT more;
  Must("dat_evd_wait", dat_evd_wait(connect_evd_, DAT_TIMEOUT_INFINITE, 1, &event, &more));
  throw Ended();
}

void End::Disconnect() {
  Must("dat_ep_disconnect", dat_ep_disconnect(ep_, DAT_CLOSE_GRACEFUL_FLAG));
  (void)NextConnectionEvent(Patience());
}

}  // namespace viaduct::datping
