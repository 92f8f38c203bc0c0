// One RDMA device as librdmacm has opened it. The control thread reads its three channels
// (connections, completions, asynchronous events). The process has one object per device, for ever.
#ifndef VIADUCT_VERBS_RDMA_DEVICE_H_
#define VIADUCT_VERBS_RDMA_DEVICE_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <cstdint>
#include <deque>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "verbs/base/address.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/errand.h"
#include "verbs/base/event_loop.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/mlx5.h"

namespace viaduct::verbs::rdma {

// A copy, so that librdmacm's own is acknowledged at once and destroying an id never waits.
struct CmEvent {
  rdma_cm_event_type type;
  int status = 0;
  rdma_cm_id* id = nullptr;  // of a request: its own, not the listener's
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  absl::InlinedVector<uint8_t, 256> private_data;
};

// Makes the calls that read from `fd` return at once if there is nothing to read.
void MakeNonBlocking(int fd);

// What an id's context points to. Called on the control thread; may destroy ids. Once an event may
// have come for it, it is destroyed on the control thread, after Device::Forget or TakeEventsOf.
class CmHandler {
 public:
  virtual void OnCmEvent(const CmEvent& event) = 0;

 protected:
  ~CmHandler() = default;
};

// What a completion queue's context points to.
class CqHandler {
 public:
  virtual void OnCqEvent() = 0;  // control thread

 protected:
  ~CqHandler() = default;
};

// Is notified of a queue pair's asynchronous events.
class QpHandler {
 public:
  virtual void OnQpEvent(ibv_event_type type) = 0;  // control thread

 protected:
  ~QpHandler() = default;
};

// Which of the device's own windows are used: type 1, good in its domain; type 2, good on one pair.
struct DeviceWindows {
  bool of_domain = false;
  bool of_pair = false;
  // What the device's library refuses, or does not hear.
  uint64_t longest = std::numeric_limits<uint64_t>::max();
  bool from_zero = true;  // those of a pair
};

// Segments of a request that every device takes. Where there are more, the request goes through
// memory of our own, or in parts.
inline constexpr uint32_t kFewSegments = 2;

class Device final : private CmHandler {
 public:
  // The device behind a context that librdmacm has opened, for `address`.
  static absl::StatusOr<Device*> Get(ibv_context* verbs, const Address& address, EventLoop& loop);
  // This is a forked child whose parent had devices open: librdmacm is in the middle of what the
  // parent did with them, and their memory is not mapped here.
  static bool InheritedAny();

  ibv_context* verbs() const { return verbs_; }
  EventLoop& loop() const { return loop_; }
  std::string name() const { return verbs_->device->name; }
  bool iwarp() const { return verbs_->device->transport_type == IBV_TRANSPORT_IWARP; }
  Manager manager() const;
  // The port is an InfiniBand port, not an Ethernet port.
  bool is_infiniband(uint8_t port) const { return infiniband_ports_[port]; }
  // The device demands that the peer may write to the sink of a read, whose key the peer gets (RFC
  // 5040). siw does not.
  bool opens_sinks() const { return manager() == Manager::kIwarp; }
  // A segment may name an offset instead of an address in memory. libhns (rdma-core 44), and a
  // libmlx5 that cannot be told not to (mlx5.h), write short messages with the processor, to the
  // address in the segment. No device of Mellanox is trusted to have a better library.
  bool takes_offsets() const;
  // For a pair with a shared receive queue the device reports when the receives that the pair has
  // taken from it are flushed (InfiniBand 1.4, 10.3.1). Linux's software drivers take none ahead.
  bool tells_last_receive() const { return !iwarp() && !rings_by_write_; }
  // It completes a receive before it answers the sender, and answers nothing for a pair in error.
  bool answers_late() const;
  // Its library passes requests to the driver by write(), a cancellation point, with a lock held.
  bool rings_by_write() const { return rings_by_write_; }
  const ibv_device_attr& limits() const { return limits_; }
  bool atomics() const { return limits_.atomic_cap != IBV_ATOMIC_NONE; }
  DeviceWindows windows() const;
  // On every port, without a frame, for which there is extra room.
  uint32_t max_message() const { return max_message_; }
  uint32_t max_inline() const { return max_inline_; }
  // How many requests each queue of a pair can have if they have at most kFewSegments segments. The
  // maxima that the device advertises do not all hold at the same time.
  uint32_t max_requests() const { return max_requests_; }
  uint32_t max_read_segments() const { return max_read_segments_; }
  // Those of a shared queue complete in one queue of the device.
  uint32_t max_shared_receives() const {
    return static_cast<uint32_t>(std::max(0, std::min(limits_.max_srq_wr, limits_.max_cqe)));
  }
  rdma_event_channel* connections() const { return connections_; }
  // Control thread: from now on events of the id go to `handler`.
  void SetHandler(rdma_cm_id* id, CmHandler* handler);
  // Control thread: reads the events that have come, so that they are delivered, a little later,
  // even if an id ends.
  void ReadAhead();
  // Control thread: returns the events that have come for the handler and were not delivered yet;
  // they will not be delivered any more.
  std::vector<CmEvent> TakeEventsOf(const CmHandler& handler);
  void Forget(const CmHandler& handler);
  ibv_comp_channel* completions() const { return completions_; }
  // As ibv_create_qp. All pairs are made with it, so that those of mlx5 keep to verbs/device.h
  // (mlx5.h). Any thread.
  ibv_qp* MakePair(ibv_pd* domain, ibv_qp_init_attr* wanted) const;
  // The handler is notified of the pair's asynchronous events until RemovePair, which comes before
  // the pair is destroyed; the destruction waits for events that are being delivered. Others in the
  // process may have pairs of this device, which librdmacm opens only once. Any thread.
  void AddPair(const ibv_qp* pair, QpHandler* handler);
  void RemovePair(const ibv_qp* pair);
  // The device was removed or has failed; nothing can be made on it any more.
  bool gone() const { return gone_; }
  // As the methods of Context.
  bool AddFailureSink(FailureSink* sink);
  void RemoveFailureSink(FailureSink* sink);

 private:
  Device(ibv_context* verbs, EventLoop& loop) : verbs_(verbs), loop_(loop), mlx5_(verbs->device) {}
  ~Device();  // only of a device that could not be started
  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();
  static const AtFork at_fork_;
  absl::Status Start(const Address& address);
  absl::Status Watch(int fd, void (Device::*read)());
  absl::Status QueryPorts();
  absl::Status ProbeLimits();
  void ProbeInline(ibv_pd* domain, ibv_cq* queue);
  void ProbeWindows(ibv_pd* domain);
  absl::Status ProbeRequests(ibv_pd* domain, ibv_cq* queue);
  // False: errno says why not.
  bool CanMake(ibv_pd* domain, ibv_qp_init_attr wanted) const;
  void ReadConnections();
  // Reads one event and puts it behind those in unheard_. False: there is none.
  bool ReadConnectionEvent();
  void TellUnheardLater();
  void ReadCompletions();
  void ReadAsyncEvents();
  // Null: the pair is not ours.
  QpHandler* HandlerOf(const ibv_qp* pair);
  // A queue to which pairs complete, or from which they take receives, has failed. The device may
  // not report each of these pairs, so this notifies their handlers that they have failed.
  void FailPairsOf(const void* queue);
  void FailPairsIf(absl::FunctionRef<bool(const ibv_qp&)> is_one);
  void OnCmEvent(const CmEvent& event) override;  // of the anchor
  void Fail();

  ibv_context* const verbs_;
  EventLoop& loop_;
  Device* next_ = nullptr;  // in the list of the process's devices
  const Mlx5 mlx5_;
  ibv_device_attr limits_ = {};
  uint32_t max_message_ = 0x7fffffff;
  std::bitset<256> infiniband_ports_;  // by number
  uint32_t max_inline_ = 0;
  uint32_t max_requests_ = 0;
  uint32_t max_read_segments_ = 1;
  DeviceWindows own_windows_;
  bool rings_by_write_ = false;
  ibv_cq* first_queue_ = nullptr;  // only for siw: see device.cc
  rdma_cm_id* anchor_ = nullptr;   // as long as an id is bound, librdmacm keeps the device open
  rdma_event_channel* connections_ = nullptr;
  struct Unheard {
    CmHandler* handler;
    CmEvent event;
  };
  std::deque<Unheard> unheard_;  // control thread: read, but not delivered yet
  Errand<&Device::ReadConnections, Device*> telling_errand_;
  ibv_comp_channel* completions_ = nullptr;
  std::atomic<bool> gone_{false};  // set under sinks_mutex_, under which the sinks are called
  Mutex sinks_mutex_;
  std::unordered_set<FailureSink*> sinks_ ABSL_GUARDED_BY(sinks_mutex_);
  Mutex pairs_mutex_;
  std::unordered_map<const ibv_qp*, QpHandler*> pairs_ ABSL_GUARDED_BY(pairs_mutex_);
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_DEVICE_H_
