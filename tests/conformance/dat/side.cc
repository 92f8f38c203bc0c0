#include "tests/conformance/dat/side.h"

#include <arpa/inet.h>
#include <signal.h>

#include <cstdio>
#include <stdexcept>

#include "tests/conformance/harness/sleeper.h"

namespace viaduct::tests {
namespace {

constexpr DAT_UINT32 kClassMask = 0xC0000000;

char kAdapter[] = "soft0";

[[noreturn]] void EndBody(const std::string& why) { throw std::runtime_error(why); }

// True on InfiniBand and RoCE, whose connection manager carries no length: zeros follow the data.
bool fabric_pads = false;

std::vector<uint8_t> PrivateData(const void* data, DAT_COUNT size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  while (fabric_pads && size > 0 && bytes[size - 1] == 0) --size;
  return {bytes, bytes + size};
}

}  // namespace

std::string Describe(DAT_RETURN value) {
  const char *type = "?", *subtype = "";
  (void)dat_strerror(value, &type, &subtype);
  char text[256];
  snprintf(text, sizeof text, "0x%08x %s %s", value, type, subtype);
  return text;
}

void MustSucceed(DAT_RETURN value, const char* call, const char* file, int line) {
  if (value == DAT_SUCCESS) return;
  EndBody(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " + Describe(value));
}

::testing::AssertionResult Fails(DAT_RETURN value, DAT_UINT32 type) {
  if ((value & kClassMask) == DAT_CLASS_ERROR && DAT_GET_TYPE(value) == type) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << Describe(value) << " instead of " << Describe(DAT_CLASS_ERROR | type);
}

::testing::AssertionResult Fails(DAT_RETURN value, DAT_UINT32 type, DAT_UINT32 subtype) {
  if (value == (DAT_CLASS_ERROR | type | subtype)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << Describe(value) << " instead of " << Describe(DAT_CLASS_ERROR | type | subtype);
}

sockaddr_in Ipv4(const char* address) {
  sockaddr_in out = {};
  out.sin_family = AF_INET;
  inet_pton(AF_INET, address, &out.sin_addr);
  return out;
}
DAT_IA_ADDRESS_PTR Pointer(sockaddr_in& address) { return reinterpret_cast<sockaddr*>(&address); }

DAT_DTO_COOKIE Cookie(uint64_t value) {
  DAT_DTO_COOKIE cookie;
  cookie.as_64 = value;
  return cookie;
}

std::vector<uint8_t> Pattern(size_t size, uint8_t seed) {
  std::vector<uint8_t> data(size);
  for (size_t i = 0; i < size; ++i) data[i] = static_cast<uint8_t>(seed + 7 * i + i / 256);
  return data;
}

uint64_t NowMicroseconds() { return static_cast<uint64_t>(Now() / 1000); }

DAT_EVENT Next(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout) {
  DAT_EVENT event;
  DAT_COUNT more = 0;
  Must(dat_evd_wait(evd, timeout, 1, &event, &more));
  EXPECT_EQ(event.evd_handle, evd);
  return event;
}

DAT_EVENT Next(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_TIMEOUT timeout) {
  DAT_EVENT event = Next(evd, timeout);
  if (event.event_number != number) {
    char text[64];
    snprintf(text, sizeof text, "event 0x%05x instead of 0x%05x", event.event_number, number);
    EndBody(text);
  }
  return event;
}

DAT_CONNECTION_EVENT_DATA NextConnection(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number,
                                         DAT_EP_HANDLE ep, DAT_TIMEOUT timeout) {
  DAT_EVENT event = Next(evd, number, timeout);
  EXPECT_EQ(event.event_data.connect_event_data.ep_handle, ep);
  return event.event_data.connect_event_data;
}

DAT_CR_ARRIVAL_EVENT_DATA NextRequest(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout) {
  return Next(evd, DAT_CONNECTION_REQUEST_EVENT, timeout).event_data.cr_arrival_event_data;
}

DAT_DTO_COMPLETION_EVENT_DATA NextCompletion(DAT_EVD_HANDLE evd, DAT_TIMEOUT timeout) {
  return Next(evd, DAT_DTO_COMPLETION_EVENT, timeout).event_data.dto_completion_event_data;
}

::testing::AssertionResult IsEmpty(DAT_EVD_HANDLE evd) {
  DAT_EVENT event;
  const DAT_RETURN value = dat_evd_dequeue(evd, &event);
  if (DAT_GET_TYPE(value) == DAT_QUEUE_EMPTY) return ::testing::AssertionSuccess();
  if (value != DAT_SUCCESS) return ::testing::AssertionFailure() << Describe(value);
  return ::testing::AssertionFailure() << "event 0x" << std::hex << event.event_number;
}

DAT_EP_PARAM ParametersOf(DAT_EP_HANDLE ep) {
  DAT_EP_PARAM param;
  Must(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
  return param;
}

DAT_EP_STATE StateOf(DAT_EP_HANDLE ep) {
  DAT_EP_STATE state;
  Must(dat_ep_get_status(ep, &state, nullptr, nullptr));
  return state;
}

DAT_CR_PARAM ParametersOf(const DAT_CR_ARRIVAL_EVENT_DATA& request) {
  DAT_CR_PARAM param;
  Must(dat_cr_query(request.cr_handle, DAT_CR_FIELD_ALL, &param));
  return param;
}

std::vector<uint8_t> PrivateDataOf(const DAT_CR_PARAM& param) {
  return PrivateData(param.private_data, param.private_data_size);
}
std::vector<uint8_t> PrivateDataOf(const DAT_CONNECTION_EVENT_DATA& event) {
  return PrivateData(event.private_data, event.private_data_size);
}

Side::Side() {
  Must(dat_ia_open(kAdapter, 8, &async_evd, &ia));
  Must(dat_ia_query(ia, nullptr, DAT_IA_FIELD_ALL, &attributes, DAT_PROVIDER_FIELD_ALL, &provider));
  fabric_pads = provider.max_private_data_size < 64;
  Must(dat_pz_create(ia, &pz));
  cr_evd = NewEvd(DAT_EVD_CR_FLAG);
  connect_evd = NewEvd(DAT_EVD_CONNECTION_FLAG);
  receive_evd = NewEvd(DAT_EVD_DTO_FLAG);
  request_evd = NewEvd(DAT_EVD_DTO_FLAG);
  DAT_REGION_DESCRIPTION region;
  region.for_va = bytes_;
  DAT_LMR_HANDLE lmr;
  DAT_LMR_CONTEXT context;
  Must(CreateLmr(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof bytes_, pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
                 &context, nullptr, nullptr, nullptr));
  in_ = Triplet(&bytes_[0], 1, context);
  out_ = Triplet(&bytes_[1], 1, context);
}

Side::~Side() { EXPECT_EQ(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_RETURN{DAT_SUCCESS}); }

DAT_EVD_HANDLE Side::NewEvd(DAT_EVD_FLAGS flags, DAT_COUNT length) {
  DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
  Must(dat_evd_create(ia, length, DAT_HANDLE_NULL, flags, &evd));
  return evd;
}

DAT_EP_HANDLE Side::NewEp(const DAT_EP_ATTR* ep_attributes) {
  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
  Must(dat_ep_create(ia, pz, receive_evd, request_evd, connect_evd, ep_attributes, &ep));
  return ep;
}

DAT_PSP_HANDLE Side::Listen(DAT_CONN_QUAL qualifier, DAT_PSP_FLAGS flags) {
  DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
  Must(dat_psp_create(ia, qualifier, cr_evd, flags, &psp));
  return psp;
}

DAT_RETURN Side::TryConnect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout,
                            const std::vector<uint8_t>& data) {
  return dat_ep_connect(ep, attributes.ia_address_ptr, qualifier, timeout,
                        static_cast<DAT_COUNT>(data.size()), const_cast<uint8_t*>(data.data()),
                        DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}
void Side::Connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout,
                   const std::vector<uint8_t>& data) {
  Must(TryConnect(ep, qualifier, timeout, data));
}

DAT_RETURN Side::TryAccept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, const std::vector<uint8_t>& data) {
  return dat_cr_accept(cr, ep, static_cast<DAT_COUNT>(data.size()),
                       const_cast<uint8_t*>(data.data()));
}

void Side::AcceptFrom(Peer& peer, DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier) {
  DAT_PSP_HANDLE psp = Listen(qualifier);
  peer.Tell("listening");
  Must(TryAccept(NextRequest(cr_evd).cr_handle, ep));
  NextConnection(connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
  Must(dat_psp_free(psp));
  peer.Tell("accepted");
}

void Side::ConnectTo(Peer& peer, DAT_EP_HANDLE ep, DAT_CONN_QUAL qualifier) {
  peer.Await("listening");
  Connect(ep, qualifier);
  NextConnection(connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
  peer.Await("accepted");
}

void Side::PostReceive(DAT_EP_HANDLE ep, uint64_t cookie) {
  Must(dat_ep_post_recv(ep, 1, &in_, Cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG));
}
DAT_RETURN Side::TrySend(DAT_EP_HANDLE ep, uint64_t cookie, DAT_COMPLETION_FLAGS flags) {
  return dat_ep_post_send(ep, 1, &out_, Cookie(cookie), flags);
}

int SendUntilFull(const Side& side, DAT_EP_HANDLE ep, const Memory& memory, int most) {
  DAT_LMR_TRIPLET all = memory.Local(0, memory.bytes.size());
  DAT_EVENT event;
  DAT_COUNT more;
  for (int complete = 0; complete < most; ++complete) {
    Must(dat_ep_post_send(ep, 1, &all, Cookie(0), DAT_COMPLETION_DEFAULT_FLAG));
    if (dat_evd_wait(side.request_evd, kSecond / 4, 1, &event, &more) != DAT_SUCCESS) {
      return complete;
    }
  }
  return most;
}

void Side::ExpectFlushedReceives(DAT_EP_HANDLE ep, uint64_t first, uint64_t last) {
  for (uint64_t cookie = first; cookie <= last; ++cookie) {
    const DAT_DTO_COMPLETION_EVENT_DATA done = NextCompletion(receive_evd);
    EXPECT_EQ(done.ep_handle, ep);
    EXPECT_EQ(done.user_cookie.as_64, cookie);
    EXPECT_EQ(done.status, DAT_DTO_ERR_FLUSHED);
  }
}

Memory::Memory(const Side& side, size_t size, DAT_MEM_PRIV_FLAGS privileges) : bytes(size) {
  DAT_REGION_DESCRIPTION region;
  region.for_va = bytes.data();
  Must(CreateLmr(side.ia, DAT_MEM_TYPE_VIRTUAL, region, size, side.pz, privileges, &lmr,
                 &lmr_context, &rmr_context, nullptr, nullptr));
}

DAT_DTO_COMPLETION_STATUS InitiatingSide::Read(size_t offset, size_t length) {
  DAT_LMR_TRIPLET local = memory.Local(offset, length);
  Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
  return NextCompletion(request_evd).status;
}

StoppedPeer::StoppedPeer(const Peer& peer) : pid_(peer.pid()) { StopProcess(pid_); }

void StoppedPeer::Continue() {
  if (pid_ != 0) kill(pid_, SIGCONT);
  pid_ = 0;
}

}  // namespace viaduct::tests
