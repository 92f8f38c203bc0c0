// DevicePair: the device's queue pair of one connection, and the room for its completions. The
// first one is made together with the queue pair of verbs/device.h, so that the creation of the
// latter fails if the device has no more pairs, and connecting does not wait for one. The pair of a
// later connection is made when its route is known.
//
// Empty if default-constructed or moved from. It has one owner, who takes care of thread safety.
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

// What a pair is to have. A device without room for all of it gives fewer inline bytes or segments.
struct PairOptions {
  std::shared_ptr<DomainCore> domain;
  std::shared_ptr<CompletionCore> queues[2];  // which take its completions
  std::shared_ptr<SharedReceiveCore> shared;  // may be null
  uint32_t max_requests[2] = {1, 1};
  uint32_t max_segments[2] = {1, 1};

  bool operator==(const PairOptions&) const = default;
};

// What a peer may do to a pair, and how many reads may be in flight at a time.
struct PeerTerms {
  uint32_t access = 0;  // Access bits: kRemoteRead, kRemoteWrite, kRemoteAtomic
  // Reads by the peer, and reads from the peer. Not set: as the connection's id has it.
  std::optional<uint8_t> reads_in = {};
  std::optional<uint8_t> reads_out = {};
};

// How many requests of a pair's send queue are for nudges (see Connection), which only siw needs.
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
  // How many requests of a direction the device takes, with how many segments and inline bytes
  // each.
  uint32_t max_requests(Direction direction) const { return cap_[direction].requests; }
  uint32_t max_segments(Direction direction) const { return cap_[direction].segments; }
  uint32_t max_inline() const { return max_inline_; }

  // Becomes the pair of `id`, and from now on receives may be posted to it; `device` is the device
  // that has the pair. Aborted: the id has ended, by the peer or with the device.
  // ResourceExhausted: the id is one of another device, or the pair cannot be prepared.
  absl::Status Join(const Device& device, rdma_cm_id* id);
  // InfiniBand and RoCE, where we move the pair through the verbs' states: the peer has asked or
  // answered, and from now on its messages may come. Returns 0 or an errno.
  int Open(const Device& device, rdma_cm_id* id, const PeerTerms& terms);
  // Called before Open for a dial: takes the provider's extensions that the answer has agreed to.
  // Returns 0 or an errno.
  int TakeAgreed(rdma_cm_id* id);
  // iWARP, where the driver opens the pair: limits what the peer may do. Returns 0 or an errno.
  int Limit(uint32_t access);
  // Destroys the device's pair; the room for its completions stays until the destructor.
  void Destroy();

 private:
  struct Capacity {
    uint32_t requests = 0;
    uint32_t segments = 1;
  };

  // Reserves room for its completions. False: there is none.
  bool Reserve(const Device& device);
  absl::Status Create(Device& device);
  // Finds the extensions of the pair's provider, and sets those to use if the pair `answers` a
  // request that names some. Returns 0 or an errno; EOPNOTSUPP: the provider has none.
  int Extend(rdma_cm_id* id, ibv_ece* local, bool* answers);
  // Moves the pair to a state of the verbs, as the id and the terms say. Returns 0 or an errno.
  int Advance(const Device& device, rdma_cm_id* id, ibv_qp_state state, const PeerTerms& terms);
  void Swap(DevicePair& other) noexcept;

  ibv_qp* handle_ = nullptr;
  PairOptions options_;
  Capacity cap_[2];
  uint32_t max_inline_ = 0;
  int numbers_[2] = {-1, -1};  // of the device's queues in CompletionCore
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_DEVICE_PAIR_H_
