// A DAT program of either version: one EVD for all completions, one for connections, one for
// requests.
#ifndef VIADUCT_TESTS_BENCH_DAT_SIDE_H_
#define VIADUCT_TESTS_BENCH_DAT_SIDE_H_

#include <netinet/in.h>

#include <cstdint>
#include <vector>

#include "tests/bench/dat_version.h"
#include "tests/bench/side.h"

namespace viaduct::bench {

class DatSide {
 public:
  static constexpr const char* kName = kDatName;

  explicit DatSide(const SideOptions& options);
  ~DatSide();
  DatSide(const DatSide&) = delete;
  DatSide& operator=(const DatSide&) = delete;

  void Listen(uint16_t port);
  void Accept();
  void Connect(uint16_t port);
  size_t connections() const { return endpoints_.size(); }

  uint32_t depth() const { return options_.depth; }
  char* in() const { return block_.start(); }
  char* out() const { return block_.start() + Block::RoundUp(options_.bytes); }
  RemoteBuffer exposed() const { return {reinterpret_cast<uint64_t>(in()), remote_context_}; }
  uint64_t received() const { return received_; }
  uint64_t completed() const { return completed_; }

  void PostReceive(size_t c = 0) {
    DAT_LMR_TRIPLET iov = Local(in(), options_.bytes);
    const DAT_RETURN result =
        dat_ep_post_recv(endpoints_[c], 1, &iov, Cookie(kReceive), DAT_COMPLETION_DEFAULT_FLAG);
    if (result != DAT_SUCCESS) Die("dat_ep_post_recv", result);
  }

  void PostSend(uint32_t bytes, size_t c = 0) {
    DAT_LMR_TRIPLET iov = Local(out(), bytes);
    const DAT_RETURN result =
        dat_ep_post_send(endpoints_[c], 1, &iov, Cookie(kRequest), DAT_COMPLETION_DEFAULT_FLAG);
    if (result != DAT_SUCCESS) Die("dat_ep_post_send", result);
  }

  void PostWrite(uint32_t bytes, const RemoteBuffer& to) {
    DAT_LMR_TRIPLET iov = Local(out(), bytes);
    DAT_RMR_TRIPLET remote;
    SetTarget(&remote, to.address);
    remote.segment_length = bytes;
    remote.rmr_context = to.key;
    const DAT_RETURN result = dat_ep_post_rdma_write(endpoints_[0], 1, &iov, Cookie(kRequest),
                                                     &remote, DAT_COMPLETION_DEFAULT_FLAG);
    if (result != DAT_SUCCESS) Die("dat_ep_post_rdma_write", result);
  }

  void Poll() {
    DAT_EVENT event;
    const DAT_RETURN result = dat_evd_dequeue(completions_, &event);
    if (result == DAT_SUCCESS) {
      Count(event);
    } else if (DAT_GET_TYPE(result) != DAT_QUEUE_EMPTY) {
      Die("dat_evd_dequeue", result);
    }
  }

  bool WaitReceive(int milliseconds) {
    const uint64_t before = received_;
    while (received_ == before) {
      DAT_EVENT event;
      DAT_COUNT more;
      const DAT_RETURN result = dat_evd_wait(
          completions_, static_cast<DAT_TIMEOUT>(milliseconds) * 1000, 1, &event, &more);
      if (DAT_GET_TYPE(result) == DAT_TIMEOUT_EXPIRED) return false;
      if (result != DAT_SUCCESS) Die("dat_evd_wait", result);
      Count(event);
    }
    return true;
  }

  bool WaitBroken(int milliseconds) {
    DAT_EVENT event;
    DAT_COUNT more;
    return dat_evd_wait(completions_, static_cast<DAT_TIMEOUT>(milliseconds) * 1000, 1, &event,
                        &more) == DAT_SUCCESS &&
           event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS;
  }

 private:
  // An event of 1.2 does not say what has completed.
  enum Kind : uint64_t { kRequest, kReceive };
  static DAT_DTO_COOKIE Cookie(Kind kind) {
    DAT_DTO_COOKIE cookie;
    cookie.as_64 = kind;
    return cookie;
  }

  DAT_LMR_TRIPLET Local(char* data, uint32_t bytes) const {
    DAT_LMR_TRIPLET triplet;
    triplet.virtual_address = reinterpret_cast<uint64_t>(data);
    triplet.segment_length = bytes;
    triplet.lmr_context = local_context_;
    return triplet;
  }
  void Count(const DAT_EVENT& event) {
    const DAT_DTO_COMPLETION_EVENT_DATA& dto = event.event_data.dto_completion_event_data;
    if (dto.status != DAT_DTO_SUCCESS) Die("completion", dto.status);
    ++(dto.user_cookie.as_64 == kReceive ? received_ : completed_);
  }

  DAT_EVD_HANDLE MakeEvd(DAT_COUNT length, DAT_EVD_FLAGS streams);
  DAT_EP_HANDLE AddEndpoint();
  void AwaitEvent(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT* event);

  const SideOptions options_;
  Block block_;
  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  sockaddr_in6 address_ = {};  // room for both families
  DAT_PZ_HANDLE zone_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE completions_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connects_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE requests_ = DAT_HANDLE_NULL;
  DAT_PSP_HANDLE service_point_ = DAT_HANDLE_NULL;
  DAT_LMR_HANDLE memory_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT local_context_ = 0;
  DAT_RMR_CONTEXT remote_context_ = 0;
  std::vector<DAT_EP_HANDLE> endpoints_;
  uint64_t received_ = 0;
  uint64_t completed_ = 0;
};

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_DAT_SIDE_H_
