// Each call of an RDMA device's libraries in the life of a DAT program fails once, in each of its
// ways (tests/rdma_mock), or one of their events or completions reports a failure: the program gets
// an error or never notices, and can then free all that it has created and close its adapter
// gracefully.
#include <dat2/udat.h>
#include <netinet/in.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/faults/failing_device.h"

namespace viaduct::tests {
namespace {

constexpr DAT_TIMEOUT kPatience = 20'000'000;
constexpr DAT_CONN_QUAL kQualifier = 0x10c5;
constexpr DAT_COUNT kBytes = 4096;

std::string Describe(DAT_RETURN value) {
  const char *major = "?", *minor = "";
  dat_strerror(value, &major, &minor);
  return std::string(major) + " " + minor;
}

// Accepts the error that the pages name for a lack of any resource of an adapter; besides, the
// qualifier may look taken, or the address may be gone.
void Try(DAT_RETURN value, const char* call) {
  if (value == DAT_SUCCESS) return;
  const DAT_UINT32 type = DAT_GET_TYPE(value);
  EXPECT_TRUE(type == DAT_INSUFFICIENT_RESOURCES || type == DAT_CONN_QUAL_IN_USE ||
              type == DAT_CONN_QUAL_UNAVAILABLE)
      << call << ": " << Describe(value);
  throw Refused(std::string(call) + ": " + Describe(value));
}
void Must(DAT_RETURN value, const char* call) {
  EXPECT_EQ(value, DAT_RETURN{DAT_SUCCESS}) << call << ": " << Describe(value);
}

struct Kind {
  const char* name;
  bool shared = false;
  bool rejects = false;
  DAT_CLOSE_FLAGS close = DAT_CLOSE_GRACEFUL_FLAG;
};

// Both ends of a connection, in one process.
class Program {
 public:
  explicit Program(const Kind& kind) : kind_(kind) {
    char name[] = "soft0";
    DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
    const DAT_RETURN opened = dat_ia_open(name, 8, &async, &ia_);
    // librdmacm does not report why it knows no device.
    if (DAT_GET_TYPE(opened) == DAT_PROVIDER_NOT_FOUND) throw Refused(Describe(opened));
    Try(opened, "dat_ia_open");
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Frees what was created, last first; anything that is left makes the graceful close fail.
  ~Program() {
    for (DAT_CR_HANDLE request : requests_)
      Must(dat_cr_reject(request, 0, nullptr), "dat_cr_reject");
    while (!made_.empty()) {
      made_.back()();
      made_.pop_back();
    }
    Must(dat_ia_close(ia_, DAT_CLOSE_GRACEFUL_FLAG), "dat_ia_close");
  }

  void Live() {
    Make();
    Connect();
    if (kind_.rejects) return;
    Talk();
    Must(dat_ep_disconnect(to_.ep, kind_.close), "dat_ep_disconnect");
    Ended();
  }

 private:
  struct End {
    DAT_EVD_HANDLE connections, completions;
    DAT_EP_HANDLE ep;
    int posted = 0;  // requests and receives that have not completed
  };

  void Undo(std::function<DAT_RETURN()> free, const char* call) {
    made_.push_back([free = std::move(free), call] { Must(free(), call); });
  }
  DAT_EVD_HANDLE Evd(DAT_EVD_FLAGS flags) {
    DAT_EVD_HANDLE evd;
    Try(dat_evd_create(ia_, 64, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
    Undo([evd] { return dat_evd_free(evd); }, "dat_evd_free");
    return evd;
  }

  void Make() {
    DAT_IA_ATTR attributes;
    Must(dat_ia_query(ia_, nullptr, DAT_IA_FIELD_ALL, &attributes, 0, nullptr), "dat_ia_query");
    memcpy(&address_, attributes.ia_address_ptr, sizeof(sockaddr_in));
    Try(dat_pz_create(ia_, &pz_), "dat_pz_create");
    Undo([this] { return dat_pz_free(pz_); }, "dat_pz_free");
    DAT_REGION_DESCRIPTION region;
    region.for_va = memory_;
    DAT_LMR_HANDLE lmr;
    Try(dat_lmr_create(ia_, DAT_MEM_TYPE_VIRTUAL, region, kBytes, pz_, DAT_MEM_PRIV_ALL_FLAG,
                       DAT_VA_TYPE_VA, &lmr, &local_, &remote_, nullptr, nullptr),
        "dat_lmr_create");
    lmr_ = lmr;
    Undo([lmr] { return dat_lmr_free(lmr); }, "dat_lmr_free");
    Try(dat_rmr_create_for_ep(pz_, &rmr_), "dat_rmr_create_for_ep");
    Undo([this] { return dat_rmr_free(rmr_); }, "dat_rmr_free");
    arrivals_ = Evd(DAT_EVD_CR_FLAG);
    if (kind_.shared) {
      DAT_SRQ_ATTR attributes_of_srq = {16, 1, 0};
      Try(dat_srq_create(ia_, pz_, &attributes_of_srq, &srq_), "dat_srq_create");
      Undo([this] { return dat_srq_free(srq_); }, "dat_srq_free");
    }
    for (End* end : {&from_, &to_}) {
      end->connections = Evd(DAT_EVD_CONNECTION_FLAG);
      end->completions = Evd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG));
      DAT_EP_ATTR sizes = {};
      sizes.service_type = DAT_SERVICE_TYPE_RC;
      sizes.qos = DAT_QOS_BEST_EFFORT;
      sizes.max_message_size = sizes.max_rdma_size = kBytes;
      sizes.max_recv_dtos = sizes.max_request_dtos = 16;
      sizes.max_recv_iov = sizes.max_request_iov = 1;
      Try(kind_.shared && end == &to_
              ? dat_ep_create_with_srq(ia_, pz_, end->completions, end->completions,
                                       end->connections, srq_, &sizes, &end->ep)
              : dat_ep_create(ia_, pz_, end->completions, end->completions, end->connections,
                              nullptr, &end->ep),
          "dat_ep_create");
      Undo([end] { return dat_ep_free(end->ep); }, "dat_ep_free");
    }
    Try(dat_psp_create(ia_, kQualifier, arrivals_, DAT_PSP_CONSUMER_FLAG, &psp_), "dat_psp_create");
    Undo([this] { return dat_psp_free(psp_); }, "dat_psp_free");
  }

  DAT_LMR_TRIPLET Local(DAT_COUNT at, DAT_COUNT length) {
    DAT_LMR_TRIPLET triplet = {};
    triplet.lmr_context = local_;
    triplet.virtual_address = reinterpret_cast<uintptr_t>(memory_ + at);
    triplet.segment_length = static_cast<DAT_SEG_LENGTH>(length);
    return triplet;
  }

  DAT_EVENT Next(DAT_EVD_HANDLE evd, const char* what) {
    DAT_EVENT event;
    DAT_COUNT more;
    const DAT_RETURN value = dat_evd_wait(evd, kPatience, 1, &event, &more);
    if (value != DAT_SUCCESS) {
      ADD_FAILURE() << what << " never came: " << Describe(value);
      throw Refused(what);
    }
    return event;
  }

  void Receive(End& end) {
    DAT_LMR_TRIPLET in = Local(0, 64);
    const DAT_DTO_COOKIE cookie = {};
    if (kind_.shared && &end == &to_) {
      Try(dat_srq_post_recv(srq_, 1, &in, cookie), "dat_srq_post_recv");
    } else {
      Try(dat_ep_post_recv(end.ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG),
          "dat_ep_post_recv");
      ++end.posted;
    }
  }

  void Connect() {
    for (int i = 0; i < 2; ++i) {
      Receive(from_);
      Receive(to_);
    }
    Try(dat_ep_connect(from_.ep, reinterpret_cast<DAT_IA_ADDRESS_PTR>(&address_), kQualifier,
                       kPatience, 0, nullptr, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
        "dat_ep_connect");
    DAT_EVENT event;
    while (dat_evd_dequeue(arrivals_, &event) != DAT_SUCCESS) {
      DAT_COUNT more;
      if (dat_evd_wait(from_.connections, 1000, 1, &event, &more) == DAT_SUCCESS)
        Unconnected(event);
    }
    const DAT_CR_HANDLE request = event.event_data.cr_arrival_event_data.cr_handle;
    if (kind_.rejects) {
      Must(dat_cr_reject(request, 0, nullptr), "dat_cr_reject");
      EXPECT_NE(Next(from_.connections, "the reject").event_number,
                DAT_CONNECTION_EVENT_ESTABLISHED);
      return;
    }
    const DAT_RETURN accepted = dat_cr_accept(request, to_.ep, 0, nullptr);
    // The request is still there, unless the device has decided it.
    if (accepted != DAT_SUCCESS && Knows(request)) {
      requests_.push_back(request);
      EXPECT_EQ(dat_cr_accept(request, to_.ep, 0, nullptr),
                static_cast<DAT_RETURN>(DAT_CLASS_ERROR | DAT_INVALID_STATE));
    }
    Try(accepted, "dat_cr_accept");
    const DAT_EVENT passive = Next(to_.connections, "the begin of the passive side");
    const DAT_EVENT active = Next(from_.connections, "the begin of the active side");
    const bool begun[] = {active.event_number == DAT_CONNECTION_EVENT_ESTABLISHED,
                          passive.event_number == DAT_CONNECTION_EVENT_ESTABLISHED};
    if (begun[0] && begun[1]) return;
    if (begun[0]) (void)Next(from_.connections, "the end");
    if (begun[1]) (void)Next(to_.connections, "the end");
    Unconnected(begun[0] ? passive : active);
  }
  static bool Knows(DAT_CR_HANDLE request) {
    DAT_CR_PARAM parameters;
    return dat_cr_query(request, DAT_CR_FIELD_ALL, &parameters) == DAT_SUCCESS;
  }
  // A kernel that fails an accept rejects the request in the program's place.
  [[noreturn]] static void Unconnected(const DAT_EVENT& event) {
    const bool answered = FailedCall() == "rdma_accept";
    EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
                (answered && event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED) ||
                event.event_number == DAT_CONNECTION_EVENT_UNREACHABLE ||
                event.event_number == DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR)
        << std::hex << event.event_number;
    throw Refused("no connection: " + std::to_string(event.event_number & 0xff));
  }

  // Waits until a request of `end`, and the receive of a message at the other end, have completed.
  void Do(DAT_RETURN posted, const char* call, End& end, bool message) {
    End& other = &end == &from_ ? to_ : from_;
    Try(posted, call);
    ++end.posted;
    if (!Completes(end) || (message && !Completes(other))) {
      Ended();
      throw Refused("the connection is lost");
    }
  }
  bool Completes(End& end) {
    const DAT_EVENT event = Next(end.completions, "a completion");
    --end.posted;
    if (event.event_number == DAT_RMR_BIND_COMPLETION_EVENT) {
      return event.event_data.rmr_completion_event_data.status == DAT_DTO_SUCCESS;
    }
    return event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS;
  }

  void Talk() {
    const DAT_DTO_COOKIE cookie = {};
    constexpr auto kFlags = DAT_COMPLETION_DEFAULT_FLAG;
    for (End* end : {&from_, &to_}) {
      DAT_LMR_TRIPLET out = Local(128, 48);
      Do(dat_ep_post_send(end->ep, 1, &out, cookie, kFlags), "dat_ep_post_send", *end, true);
    }
    DAT_RMR_TRIPLET remote = {};
    remote.rmr_context = remote_;
    remote.virtual_address = reinterpret_cast<uintptr_t>(memory_ + 1024);
    remote.segment_length = 100;
    DAT_LMR_TRIPLET local = Local(2048, 100);
    Do(dat_ep_post_rdma_write(from_.ep, 1, &local, cookie, &remote, kFlags),
       "dat_ep_post_rdma_write", from_, false);
    Do(dat_ep_post_rdma_read(to_.ep, 1, &local, cookie, &remote, kFlags), "dat_ep_post_rdma_read",
       to_, false);
    DAT_RMR_CONTEXT bound;
    DAT_LMR_TRIPLET range = Local(1024, 100);
    Do(dat_rmr_bind(rmr_, lmr_, &range, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, from_.ep, cookie,
                    kFlags, &bound),
       "dat_rmr_bind", from_, false);
  }

  // Both ends get the event of the end, and everything that was posted comes back.
  void Ended() {
    for (End* end : {&from_, &to_}) {
      const DAT_EVENT event = Next(end->connections, "the end");
      EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
                  event.event_number == DAT_CONNECTION_EVENT_BROKEN)
          << std::hex << event.event_number;
      while (end->posted > 0) Completes(*end);
    }
  }

  const Kind kind_;
  char memory_[kBytes] = {};
  std::vector<std::function<void()>> made_;
  std::vector<DAT_CR_HANDLE> requests_;
  sockaddr_in address_ = {};
  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE lmr_ = DAT_HANDLE_NULL;
  DAT_RMR_HANDLE rmr_ = DAT_HANDLE_NULL;
  DAT_SRQ_HANDLE srq_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE psp_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE arrivals_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT local_ = 0;
  DAT_RMR_CONTEXT remote_ = 0;
  End from_ = {}, to_ = {};
};

class FailingDevice : public testing::TestWithParam<Kind> {};

TEST_P(FailingDevice, EachCallFails) {
  FailEachCallOfTheDevice([] { Program(GetParam()).Live(); });
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, FailingDevice,
    testing::Values(Kind{.name = "Plain"},
                    Kind{.name = "Shared", .shared = true, .close = DAT_CLOSE_ABRUPT_FLAG},
                    Kind{.name = "Rejected", .rejects = true}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace viaduct::tests
