// DevicePair: the device's queue pair of one connection, and the room for its completions. It is
// made with the queue pair of verbs/device.h, so that who creates that hears if the device has no
// more of them, and who connects does not wait for it; a later connection's is made when its route
// is known.
//
// Empty when it was made without a device, or moved from. One owner, who sees to threads.
#ifndef VIADUCT_VERBS_RDMA_DEVICE_PAIR_H_
#define VIADUCT_VERBS_RDMA_DEVICE_PAIR_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "verbs/rdma/completion_queue.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/memory.h"
#include "verbs/rdma/work_id.h"

namespace viaduct::verbs::rdma {

class SharedReceiveCore;

// What is asked of it. A device that has not room for all gives fewer inline bytes, or segments.
struct PairOptions {
  std::shared_ptr<DomainCore> domain;
  std::shared_ptr<CompletionCore> queues[2];  // where its completions are looked up
  std::shared_ptr<SharedReceiveCore> shared;  // may be null
  uint32_t max_requests[2] = {1, 1};
  uint32_t max_segments[2] = {1, 1};

  bool operator==(const PairOptions&) const = default;
};

// What a peer may do to a pair, and how much of it is under way at a time.
struct PeerTerms {
  uint32_t access = 0;  // Access bits: kRemoteRead, kRemoteWrite, kRemoteAtomic
  // Reads of the peer's, and reads at the peer. Unknown: as the connection's id has it.
  std::optional<uint8_t> reads_in = {};
  std::optional<uint8_t> reads_out = {};
};

// Of the requests for its send queue so many are for nudges (Connection): siw's.
inline uint32_t NudgeRoom(const Device& device) {
  return device.manager() == Manager::kSiw ? 1 : 0;
}

class DevicePair {
 public:
  // ResourceExhausted: the device, or one of its completion queues, has no room for it.
  static absl::StatusOr<DevicePair> Make(Device& device, const PairOptions& options);
  DevicePair() = default;
  DevicePair(DevicePair&& other) noexcept { Swap(other); }
  DevicePair& operator=(DevicePair&& other) noexcept {
    DevicePair old;
    old.Swap(*this);
    Swap(other);
    return *this;
  }
  ~DevicePair();

  ibv_qp* handle() const { return handle_; }
  const PairOptions& options() const { return options_; }
  // Requests of a direction that the device takes, and of each the segments and the inline bytes.
  uint32_t max_requests(Direction direction) const { return cap_[direction].requests; }
  uint32_t max_segments(Direction direction) const { return cap_[direction].segments; }
  uint32_t max_inline() const { return max_inline_; }

  // Becomes the pair of `id`, to which receives may be posted; `device` is the one that has it.
  // Aborted: the id has ended, by the peer or with the device. ResourceExhausted: it is one of
  // another device, or cannot be had.
  absl::Status Join(const Device& device, rdma_cm_id* id);
  // InfiniBand and RoCE, where the way through the verbs' states is ours. The peer has asked, or
  // answered, and from now on it may come. An errno.
  int Open(const Device& device, rdma_cm_id* id, const PeerTerms& terms);
  // Before that, of a dial: which extensions of its provider the answer has agreed to. An errno.
  int TakeAgreed(rdma_cm_id* id);
  // iWARP, where the driver opens it: what the peer may do from now on. An errno.
  int Limit(uint32_t access);
  // The device's is no more; the room for its completions stays until this ends.
  void Destroy();

 private:
  struct Capacity {
    uint32_t requests = 0;
    uint32_t segments = 1;
  };

  // Room for its completions. False: there is none.
  bool Reserve();
  absl::Status Create(Device& device);
  // What extensions of its provider it has, and which of them shall be used: `answers` a request
  // that says so. An errno; EOPNOTSUPP: it has none.
  int Extend(rdma_cm_id* id, ibv_ece* local, bool* answers);
  // To a state of the verbs, as the id and the terms have it. An errno.
  int Advance(const Device& device, rdma_cm_id* id, ibv_qp_state state, const PeerTerms& terms);
  void Swap(DevicePair& other) noexcept;

  ibv_qp* handle_ = nullptr;
  PairOptions options_;
  Capacity cap_[2];
  uint32_t max_inline_ = 0;
  int numbers_[2] = {-1, -1};  // of the completion queues' parts
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_DEVICE_PAIR_H_
