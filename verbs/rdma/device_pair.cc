#include "verbs/rdma/device_pair.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/string_view.h"
#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/registration.h"
#include "verbs/rdma/shared_receive_queue.h"

namespace viaduct::verbs::rdma {
namespace {

// Bits of an attribute mask that the kernel (before Linux 4.10) has for drivers of RoCE, but sets
// for InfiniBand, too. librdmacm removes them as well.
constexpr int kKernelsOwn = 0xe00000;

// Adds the partition of the agreed path. An InfiniBand port has several, and before a path was
// agreed on the pair of a dial had that of its interface. Returns 0 or an errno.
int TakePartition(rdma_cm_id* id, ibv_qp_attr* attributes, int* mask) {
  ibv_qp_attr begin = {};
  begin.qp_state = IBV_QPS_INIT;
  int its_mask = 0;
  if (rdma_init_qp_attr(id, &begin, &its_mask) != 0) return errno;
  attributes->pkey_index = begin.pkey_index;
  *mask |= IBV_QP_PKEY_INDEX;
  return 0;
}

unsigned PairFlags(uint32_t peer_access) {
  return static_cast<unsigned>(AccessFlags(kLocalWrite | peer_access));
}

// The same status whatever the errno is.
absl::Status NoPair(int error, absl::string_view call) {
  LogErrno(error, call);
  return absl::ResourceExhaustedError(call);
}

}  // namespace

absl::StatusOr<DevicePair> DevicePair::Make(Device& device, const PairOptions& options) {
  const uint32_t most_requests = static_cast<uint32_t>(device.limits().max_qp_wr);
  const uint32_t most_segments = static_cast<uint32_t>(device.limits().max_sge);
  DevicePair pair;
  pair.options_ = options;
  for (int i = 0; i < 2; ++i) {
    pair.cap_[i].requests = std::clamp(options.max_requests[i], 1u, most_requests);
    pair.cap_[i].segments = std::clamp(options.max_segments[i], 1u, most_segments);
  }
  if (!pair.Reserve(device)) return absl::ResourceExhaustedError("no room for completions");
  const absl::Status status = pair.Create(device);
  if (!status.ok()) return status;
  return pair;
}

// If both directions complete in one CompletionCore, they share a queue of the device, whose order
// is that of the completions: a send is found before the message that answers it. Not with a shared
// receive queue, whose receives have room of their own, nor if no queue can hold both.
bool DevicePair::Reserve(const Device& device) {
  CompletionCore& sends = *options_.queues[kSends];
  CompletionCore& receives = *options_.queues[kReceives];
  const uint32_t all = cap_[kSends].requests + cap_[kReceives].requests;
  const bool together = &sends == &receives && options_.shared == nullptr &&
                        all <= static_cast<uint32_t>(device.limits().max_cqe);
  numbers_[kSends] = sends.Reserve(together ? all : cap_[kSends].requests);
  if (numbers_[kSends] < 0) return false;
  if (together) {
    numbers_[kReceives] = numbers_[kSends];
  } else if (options_.shared != nullptr) {
    numbers_[kReceives] = receives.ReserveShared(*options_.shared);
  } else {
    numbers_[kReceives] = receives.Reserve(cap_[kReceives].requests);
  }
  return numbers_[kReceives] >= 0;
}

// A device may have room for fewer requests if they have inline bytes or many segments (mlx5).
absl::Status DevicePair::Create(Device& device) {
  ibv_qp_init_attr wanted = {};
  wanted.qp_type = IBV_QPT_RC;
  wanted.sq_sig_all = 1;
  wanted.send_cq = options_.queues[kSends]->handle(numbers_[kSends]);
  wanted.recv_cq = options_.queues[kReceives]->handle(numbers_[kReceives]);
  wanted.cap.max_send_wr = cap_[kSends].requests;
  wanted.cap.max_recv_wr = cap_[kReceives].requests;
  wanted.cap.max_send_sge = cap_[kSends].segments;
  wanted.cap.max_recv_sge = cap_[kReceives].segments;
  if (options_.shared != nullptr) {
    wanted.srq = options_.shared->handle();
    wanted.cap.max_recv_wr = 0;
  }
  ibv_qp_cap inlined = wanted.cap;
  inlined.max_inline_data = device.max_inline();
  ibv_qp_cap few = wanted.cap;
  few.max_send_sge = std::min(few.max_send_sge, kFewSegments);
  few.max_recv_sge = std::min(few.max_recv_sge, kFewSegments);
  int error = 0;
  for (const ibv_qp_cap& cap : {inlined, wanted.cap, few}) {
    ibv_qp_init_attr attempt = wanted;
    attempt.cap = cap;
    handle_ = device.MakePair(options_.domain->handle, &attempt);
    if (handle_ != nullptr) {
      max_inline_ = std::min(cap.max_inline_data, attempt.cap.max_inline_data);  // what is granted
      cap_[kSends].segments = cap.max_send_sge;
      cap_[kReceives].segments = cap.max_recv_sge;
      return absl::OkStatus();
    }
    error = errno;
    if (error != EINVAL && error != ENOMEM) break;
  }
  Log(LogLevel::kDebug, device.name(), ": ibv_create_qp: ", std::strerror(error));
  return NoPair(error, "ibv_create_qp");
}

int DevicePair::Extend(rdma_cm_id* id, ibv_ece* local, bool* answers) {
  if (const int error = ibv_query_ece(handle_, local); error != 0) return error;
  ibv_ece remote = {};
  if (rdma_get_remote_ece(id, &remote) != 0) return errno;
  *answers = remote.vendor_id != 0;
  if (!*answers) return 0;
  ibv_ece wanted = {};
  wanted.vendor_id = local->vendor_id;
  wanted.options = remote.vendor_id == local->vendor_id ? remote.options : 0;
  return ibv_set_ece(handle_, &wanted);
}

// Does what rdma_create_qp does with a pair that it has made, including the provider's extensions:
// the request carries what the pair offers, the answer what it has taken of the request's.
absl::Status DevicePair::Join(const Device& device, rdma_cm_id* id) {
  if (id->verbs != handle_->context) {
    if (device.gone()) return absl::ResourceExhaustedError("the device was removed");
    Log(LogLevel::kWarn, device.name(), ": the kernel has a connection on ",
        id->verbs->device->name, " instead; two RDMA devices may have the same address");
    return absl::ResourceExhaustedError("another device");
  }
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_INIT;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) {
    if (errno == EINVAL) return absl::AbortedError("the peer has given up");
    if (errno == ENXIO || errno == ENODEV) return absl::AbortedError("the device was removed");
    return NoPair(errno, "rdma_init_qp_attr");
  }
  ibv_ece local = {};
  bool answers = false;
  if (const int error = Extend(id, &local, &answers); error != 0 && error != EOPNOTSUPP) {
    return NoPair(error, "ibv_set_ece");
  }
  if (const int error = ibv_modify_qp(handle_, &attributes, mask); error != 0) {
    return NoPair(error, "ibv_modify_qp");
  }
  if (answers) {
    const int error = ibv_query_ece(handle_, &local);
    if (error != 0 && error != EOPNOTSUPP) return NoPair(error, "ibv_query_ece");
  }
  // This is not possible once the id has a pair.
  if (local.vendor_id != 0 && rdma_set_local_ece(id, &local) != 0) {
    return NoPair(errno, "rdma_set_local_ece");
  }
  if (device.iwarp()) id->qp = handle_;
  return absl::OkStatus();
}

int DevicePair::TakeAgreed(rdma_cm_id* id) {
  ibv_ece agreed = {};
  if (const int error = ibv_query_ece(handle_, &agreed); error != 0) {
    return error == EOPNOTSUPP ? 0 : error;
  }
  ibv_ece remote = {};
  if (rdma_get_remote_ece(id, &remote) != 0) return errno;
  agreed.options = remote.vendor_id == agreed.vendor_id ? remote.options : 0;
  const int error = ibv_set_ece(handle_, &agreed);
  return error == EOPNOTSUPP ? 0 : error;  // libmlx5 names a vendor even if it takes none
}

// The terms are set with the first state in which the peer reaches the pair. The kernel's own would
// open it to everything, and make a peer that finds no receive wait for most of a second.
int DevicePair::Advance(const Device& device, rdma_cm_id* id, ibv_qp_state state,
                        const PeerTerms& terms) {
  ibv_qp_attr attributes = {};
  attributes.qp_state = state;
  int mask = 0;
  if (rdma_init_qp_attr(id, &attributes, &mask) != 0) return errno;
  const bool infiniband = device.is_infiniband(id->port_num);
  if (state == IBV_QPS_RTR) {
    if (infiniband) {
      if (const int error = TakePartition(id, &attributes, &mask); error != 0) return error;
    }
    attributes.qp_access_flags = PairFlags(terms.access);
    attributes.min_rnr_timer = kReceiverNotReadyTimer;
    mask |= IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER;
    attributes.max_dest_rd_atomic = terms.reads_in.value_or(attributes.max_dest_rd_atomic);
  } else {
    attributes.max_rd_atomic = terms.reads_out.value_or(attributes.max_rd_atomic);
  }
  if (infiniband) mask &= ~kKernelsOwn;
  int error = ETIMEDOUT;
  for (int tries = infiniband ? 1 : kOpenTries; error == ETIMEDOUT && tries > 0; --tries) {
    error = ibv_modify_qp(handle_, &attributes, mask);
  }
  return error;
}

int DevicePair::Open(const Device& device, rdma_cm_id* id, const PeerTerms& terms) {
  for (const ibv_qp_state state : {IBV_QPS_RTR, IBV_QPS_RTS}) {
    if (const int error = Advance(device, id, state, terms); error != 0) return error;
  }
  return 0;
}

int DevicePair::Limit(uint32_t access) {
  ibv_qp_attr attributes = {};
  attributes.qp_access_flags = PairFlags(access);
  return ibv_modify_qp(handle_, &attributes, IBV_QP_ACCESS_FLAGS);
}

void DevicePair::Destroy() {
  if (handle_ != nullptr) ibv_destroy_qp(std::exchange(handle_, nullptr));
}

DevicePair::~DevicePair() {
  Destroy();
  for (int i = 0; i < 2; ++i) {
    if (numbers_[i] < 0) continue;
    if (i == kReceives && options_.shared != nullptr) {
      options_.queues[i]->ReleaseShared(*options_.shared);
    } else {
      options_.queues[i]->Release(numbers_[i], cap_[i].requests);
    }
  }
}

void DevicePair::Swap(DevicePair& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(options_, other.options_);
  std::swap(cap_, other.cap_);
  std::swap(max_inline_, other.max_inline_);
  std::swap(numbers_, other.numbers_);
}

}  // namespace viaduct::verbs::rdma
