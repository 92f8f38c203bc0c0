#include "verbs/rdma/device.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "verbs/base/fd.h"
#include "verbs/base/lock.h"
#include "verbs/base/log.h"
#include "verbs/base/settings.h"
#include "verbs/frame_format.h"
#include "verbs/rdma/completion_channel.h"
#include "verbs/rdma/errors.h"

namespace viaduct::verbs::rdma {
namespace {

// Held while a device starts, and across a fork.
constinit Mutex devices_mutex;
// A list of devices, never destroyed, since the control thread uses them until the process ends.
constinit Device* first_device ABSL_GUARDED_BY(devices_mutex) = nullptr;

constinit std::atomic<bool> inherited{false};

// libsiw (rdma-core 44) mistakes the mapping at 0x90000 of a context for one that the kernel has
// not made, so that about the seventh queue pair of each process fails. A completion queue that
// begins before that place and ends behind it, with 32 bytes per entry, keeps it occupied.
constexpr uint32_t kSiwVendor = 0x626d74;
constexpr int kSiwEntries = 20'000;

constexpr uint32_t kRxeVendor = 0xffffff;
constexpr uint32_t kRdmavtVendor = 0x001175;  // qib and hfi1
constexpr uint32_t kMellanoxVendor = 0x0002c9;
constexpr uint32_t kHisiliconVendor = 0x19e5;

// Requests of a pair: more than kMostRequests are not tried, and every device has kFewRequests.
constexpr uint32_t kMostRequests = 32768;
constexpr uint32_t kFewRequests = 4;
constexpr int kEventsAtOnce = 64;

ibv_qp_init_attr SmallestPair(ibv_cq* queue) {
  ibv_qp_init_attr pair = {};
  pair.send_cq = pair.recv_cq = queue;
  pair.qp_type = IBV_QPT_RC;
  pair.cap.max_send_wr = pair.cap.max_recv_wr = kFewRequests;
  pair.cap.max_send_sge = pair.cap.max_recv_sge = 1;
  return pair;
}

}  // namespace

void MakeNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

bool Device::InheritedAny() { return inherited.load(); }

absl::StatusOr<Device*> Device::Get(ibv_context* verbs, const Address& address, EventLoop& loop) {
  if (!at_fork_.registered()) return absl::ResourceExhaustedError("no memory for fork handlers");
  MutexLock lock(&devices_mutex);
  for (Device* device = first_device; device != nullptr; device = device->next_) {
    if (device->verbs_ == verbs) return device;
  }
  Device* const device = new Device(verbs, loop);
  absl::Cleanup destroy = [device] { delete device; };  // also if memory runs out
  if (absl::Status status = device->Start(address); !status.ok()) return status;
  std::move(destroy).Cancel();
  device->next_ = first_device;
  return first_device = device;
}

const AtFork Device::at_fork_(BeforeFork, AfterForkInParent, AfterForkInChild);

// A thread that starts a device holds this lock and waits for the loop, whose library is loaded
// before this one.
void Device::BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { devices_mutex.Lock(); }

void Device::AfterForkInParent() ABSL_NO_THREAD_SAFETY_ANALYSIS { devices_mutex.Unlock(); }

// The child's copies of the descriptors would keep connections alive when its parent is killed.
void Device::AfterForkInChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  // In a child of the child they are closed already.
  for (Device* device = first_device; device != nullptr && !inherited; device = device->next_) {
    for (int fd : {device->connections_->fd, device->completions_->fd, device->verbs_->async_fd,
                   device->verbs_->cmd_fd}) {
      close(fd);
    }
  }
  if (first_device != nullptr) inherited.store(true);
  devices_mutex.Unlock();
}

Device::~Device() {
  if (anchor_ != nullptr) rdma_destroy_id(anchor_);
  if (connections_ != nullptr) {
    loop_.Unwatch(connections_->fd);
    rdma_destroy_event_channel(connections_);
  }
  if (completions_ != nullptr) {
    loop_.Unwatch(completions_->fd);
    ibv_destroy_comp_channel(completions_);
  }
  loop_.Unwatch(verbs_->async_fd);
  if (first_queue_ != nullptr) ibv_destroy_cq(first_queue_);
}

absl::Status Device::Start(const Address& address) {
  sockaddr_storage at;
  address.ToSockaddr(0, &at);
  connections_ = rdma_create_event_channel();
  if (connections_ == nullptr) return ErrnoStatus(errno, "rdma_create_event_channel");
  if (rdma_create_id(connections_, &anchor_, static_cast<CmHandler*>(this), RDMA_PS_TCP) != 0 ||
      rdma_bind_addr(anchor_, reinterpret_cast<sockaddr*>(&at)) != 0) {
    return ErrnoStatus(errno, "rdma_cm");
  }
  if (const int error = ibv_query_device(verbs_, &limits_); error != 0) {
    return ErrnoStatus(error, "query the device");
  }
  rings_by_write_ = limits_.vendor_id == kSiwVendor || limits_.vendor_id == kRxeVendor ||
                    limits_.vendor_id == kRdmavtVendor;
  if (manager() == Manager::kSiw) {
    first_queue_ = ibv_create_cq(verbs_, kSiwEntries, nullptr, nullptr, 0);
    if (first_queue_ == nullptr) return ErrnoStatus(errno, "ibv_create_cq");
  }
  completions_ = ibv_create_comp_channel(verbs_);
  if (completions_ == nullptr) return ErrnoStatus(errno, "ibv_create_comp_channel");
  connections_->fd = MoveHigh(Fd(connections_->fd)).Release();
  completions_->fd = MoveHigh(Fd(completions_->fd)).Release();
  absl::Status status = QueryPorts();
  if (status.ok()) status = ProbeLimits();
  if (!status.ok()) return status;
  for (int fd : {connections_->fd, completions_->fd, verbs_->async_fd}) MakeNonBlocking(fd);
  status = Watch(connections_->fd, &Device::ReadConnections);
  if (status.ok()) status = Watch(completions_->fd, &Device::ReadCompletions);
  if (status.ok()) status = Watch(verbs_->async_fd, &Device::ReadAsyncEvents);
  return status;
}

// The kernel closes the channels of a device that was removed, which epoll would report for ever.
absl::Status Device::Watch(int fd, void (Device::*read)()) {
  return loop_.Watch(fd, EPOLLIN, [this, fd, read](uint32_t events) {
    (this->*read)();
    if ((events & (EPOLLERR | EPOLLHUP)) != 0) loop_.Unwatch(fd);
  });
}

// mlx4 has adapters with an InfiniBand port beside an Ethernet port. Ports that are not there for
// this host may not be asked.
absl::Status Device::QueryPorts() {
  for (int number = 1; number <= limits_.phys_port_cnt; ++number) {
    ibv_port_attr port = {};
    if (const int error = ibv_query_port(verbs_, static_cast<uint8_t>(number), &port); error != 0) {
      if (number == anchor_->port_num) return ErrnoStatus(error, "query the port");
      continue;
    }
    if (port.max_msg_sz != 0) max_message_ = std::min(port.max_msg_sz, max_message_);
    infiniband_ports_[static_cast<size_t>(number)] = port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  }
  if (iwarp()) max_message_ -= kFrameBytes;
  return absl::OkStatus();
}

// What a queue pair may have is not among the attributes, so this tries it.
absl::Status Device::ProbeLimits() {
  // RFC 5040: a read has one sink. Some iWARP devices take more, but none says so.
  max_read_segments_ =
      iwarp() ? 1
              : std::max(1, std::min(limits_.max_sge, limits_.max_sge_rd > 0 ? limits_.max_sge_rd
                                                                             : limits_.max_sge));
  ibv_pd* const domain = ibv_alloc_pd(verbs_);
  if (domain == nullptr) return ErrnoStatus(errno, "ibv_alloc_pd");
  const absl::Cleanup free_domain = [domain] { ibv_dealloc_pd(domain); };
  ibv_cq* const queue = ibv_create_cq(verbs_, 16, nullptr, nullptr, 0);
  if (queue == nullptr) return ErrnoStatus(errno, "ibv_create_cq");
  const absl::Cleanup destroy_queue = [queue] { ibv_destroy_cq(queue); };
  ProbeInline(domain, queue);
  ProbeWindows(domain);
  return ProbeRequests(domain, queue);
}

ibv_qp* Device::MakePair(ibv_pd* domain, ibv_qp_init_attr* wanted) const {
  return mlx5_.serves() ? mlx5_.CreatePair(domain, wanted) : ibv_create_qp(domain, wanted);
}

bool Device::CanMake(ibv_pd* domain, ibv_qp_init_attr wanted) const {
  ibv_qp* const pair = MakePair(domain, &wanted);
  if (pair == nullptr) return false;
  ibv_destroy_qp(pair);
  return true;
}

void Device::ProbeInline(ibv_pd* domain, ibv_cq* queue) {
  // siw (Linux 6.1) ends a connection if the peer's empty read meets a send that went inline.
  if (manager() == Manager::kSiw) return;
  ibv_qp_init_attr wanted = SmallestPair(queue);
  for (uint32_t bytes : {256u, 128u, 80u, 64u, 32u}) {
    wanted.cap.max_inline_data = bytes;
    if (!CanMake(domain, wanted)) continue;
    max_inline_ = bytes;
    return;
  }
}

// A driver may advertise windows that its library does not have (libbnxt_re of rdma-core 44).
void Device::ProbeWindows(ibv_pd* domain) {
  const auto can_make = [domain](ibv_mw_type type) {
    ibv_mw* const window = ibv_alloc_mw(domain, type);
    return window != nullptr && ibv_dealloc_mw(window) == 0;
  };
  const unsigned flags = limits_.device_cap_flags;
  constexpr unsigned kType2 = IBV_DEVICE_MEM_WINDOW_TYPE_2A | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  own_windows_.of_domain = (flags & IBV_DEVICE_MEM_WINDOW) != 0 && can_make(IBV_MW_TYPE_1);
  own_windows_.of_pair = (flags & kType2) != 0 && can_make(IBV_MW_TYPE_2);
}

absl::Status Device::ProbeRequests(ibv_pd* domain, ibv_cq* queue) {
  ibv_qp_init_attr wanted = SmallestPair(queue);
  const uint32_t few = std::min(kFewSegments, static_cast<uint32_t>(std::max(limits_.max_sge, 1)));
  wanted.cap.max_send_sge = wanted.cap.max_recv_sge = few;
  max_requests_ = std::min(static_cast<uint32_t>(std::max(limits_.max_qp_wr, 1)), kMostRequests);
  for (; max_requests_ >= kFewRequests; max_requests_ /= 2) {
    wanted.cap.max_send_wr = wanted.cap.max_recv_wr = max_requests_;
    if (CanMake(domain, wanted)) return absl::OkStatus();
  }
  return ErrnoStatus(errno, "ibv_create_qp");
}

Manager Device::manager() const {
  if (!iwarp()) return Manager::kInfiniband;
  return limits_.vendor_id == kSiwVendor ? Manager::kSiw : Manager::kIwarp;
}

bool Device::takes_offsets() const {
  return limits_.vendor_id != kMellanoxVendor && limits_.vendor_id != kHisiliconVendor;
}

// rxe: its responder's state COMPLETE comes before ACKNOWLEDGE. siw: the read that asks for a
// message's verdict comes after the message, and a kernel thread answers it.
bool Device::answers_late() const {
  return limits_.vendor_id == kRxeVendor || limits_.vendor_id == kSiwVendor;
}

// iWARP: a read's sink would have to be the window itself, and no driver that has windows was at
// hand to try it. rxe (Linux 6.1) checks the bounds of the region and not of the window. libmlx5
// (rdma-core 44) refuses a bind of more than 2 GiB, and libhns overlooks that it counts from 0.
DeviceWindows Device::windows() const {
  const std::string wanted = ChoiceSetting(SettingId::kWindows);
  if (iwarp() || wanted == "regions") return {};
  if (wanted == "auto" && limits_.vendor_id == kRxeVendor) return {};
  DeviceWindows windows = own_windows_;
  if (limits_.vendor_id == kMellanoxVendor) windows.longest = uint64_t{1} << 31;
  windows.from_zero = limits_.vendor_id != kHisiliconVendor;
  return windows;
}

void Device::ReadConnections() {
  // Requests may come as fast as they are delivered; others must have their turn in between.
  for (int i = 0; i < kEventsAtOnce; i++) {
    if (unheard_.empty() && !ReadConnectionEvent()) return;
    const Unheard next = std::move(unheard_.front());
    unheard_.pop_front();
    next.handler->OnCmEvent(next.event);
  }
  TellUnheardLater();
}

// The descriptor does not report them any more, since they were read.
void Device::TellUnheardLater() {
  if (!unheard_.empty()) telling_errand_.Post(loop_, this);
}

bool Device::ReadConnectionEvent() {
  rdma_cm_event* event;
  if (rdma_get_cm_event(connections_, &event) != 0) return false;
  CmEvent copy;
  copy.type = event->event;
  copy.status = event->status;
  copy.id = event->id;
  CmHandler* handler = static_cast<CmHandler*>(event->id->context);
  switch (event->event) {
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
    case RDMA_CM_EVENT_ESTABLISHED:
    case RDMA_CM_EVENT_REJECTED: {
      const rdma_conn_param& conn = event->param.conn;
      copy.responder_resources = conn.responder_resources;
      copy.initiator_depth = conn.initiator_depth;
      const auto* data = static_cast<const uint8_t*>(conn.private_data);
      if (data != nullptr) copy.private_data.assign(data, data + conn.private_data_len);
      break;
    }
    default:
      break;
  }
  rdma_ack_cm_event(event);
  Log(LogLevel::kTrace, name(), ": ", rdma_event_str(copy.type), ", status ", copy.status);
  unheard_.push_back({handler, std::move(copy)});
  return true;
}

void Device::SetHandler(rdma_cm_id* id, CmHandler* handler) {
  id->context = handler;
  for (Unheard& unheard : unheard_) {
    if (unheard.event.id == id) unheard.handler = handler;
  }
}

void Device::ReadAhead() {
  while (ReadConnectionEvent()) {
  }
  TellUnheardLater();
}

std::vector<CmEvent> Device::TakeEventsOf(const CmHandler& handler) {
  ReadAhead();
  std::vector<CmEvent> events;
  for (Unheard& unheard : unheard_) {
    if (unheard.handler == &handler) events.push_back(std::move(unheard.event));
  }
  Forget(handler);
  return events;
}

void Device::Forget(const CmHandler& handler) {
  std::erase_if(unheard_, [&](const Unheard& unheard) { return unheard.handler == &handler; });
}

void Device::ReadCompletions() {
  ibv_cq* queue;
  void* handler;
  // Queues may report events as fast as they are handled; others must have their turn in between.
  for (int i = 0; i < kEventsAtOnce && ibv_get_cq_event(completions_, &queue, &handler) == 0; i++) {
    ibv_ack_cq_events(queue, 1);
    static_cast<CqHandler*>(handler)->OnCqEvent();
  }
}

void Device::AddPair(const ibv_qp* pair, QpHandler* handler) {
  MutexLock lock(&pairs_mutex_);
  pairs_[pair] = handler;
}

void Device::RemovePair(const ibv_qp* pair) {
  MutexLock lock(&pairs_mutex_);
  pairs_.erase(pair);
}

QpHandler* Device::HandlerOf(const ibv_qp* pair) {
  MutexLock lock(&pairs_mutex_);
  const auto found = pairs_.find(pair);
  return found != pairs_.end() ? found->second : nullptr;
}

void Device::FailPairsOf(const void* queue) {
  Log(LogLevel::kWarn, name(),
      ": a queue has failed: its connections end, and it serves no others; close the adapter");
  FailPairsIf([queue](const ibv_qp& pair) {
    return pair.send_cq == queue || pair.recv_cq == queue || pair.srq == queue;
  });
}

void Device::FailPairsIf(absl::FunctionRef<bool(const ibv_qp&)> is_one) {
  MutexLock lock(&pairs_mutex_);  // as long as a pair is listed, its handler exists
  for (const auto& [pair, handler] : pairs_) {
    if (is_one(*pair)) handler->OnQpEvent(IBV_EVENT_QP_FATAL);
  }
}

bool Device::AddFailureSink(FailureSink* sink) {
  MutexLock lock(&sinks_mutex_);
  if (gone_) return false;
  sinks_.insert(sink);
  return true;
}

void Device::RemoveFailureSink(FailureSink* sink) {
  MutexLock lock(&sinks_mutex_);
  sinks_.erase(sink);
}

// A driver that cannot be detached from its processes reports its removal only here (siw and rxe of
// Linux 6.1).
void Device::OnCmEvent(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_DEVICE_REMOVAL) Fail();
}

// A device may report this more than once, and if it is not removed, it reports none of its pairs.
void Device::Fail() {
  {
    MutexLock lock(&sinks_mutex_);
    if (gone_.exchange(true)) return;
    Log(LogLevel::kWarn, name(),
        ": the device was removed or has failed; close its adapters and open them again when "
        "ibv_devices shows it");
    for (FailureSink* sink : sinks_) sink->OnDeviceFailed();
  }
  FailPairsIf([](const ibv_qp&) { return true; });
}

void Device::ReadAsyncEvents() {
  ibv_async_event event;
  while (ibv_get_async_event(verbs_, &event) == 0) {
    const ibv_event_type type = event.event_type;
    QpHandler* pair = nullptr;
    switch (type) {
      case IBV_EVENT_QP_FATAL:
      case IBV_EVENT_QP_REQ_ERR:
      case IBV_EVENT_QP_ACCESS_ERR:
      case IBV_EVENT_QP_LAST_WQE_REACHED:
        pair = HandlerOf(event.element.qp);
        break;
      case IBV_EVENT_DEVICE_FATAL:
        Fail();
        break;
      case IBV_EVENT_PORT_ERR:
        Log(LogLevel::kWarn, name(), ": port ", event.element.port_num,
            " is down; its connections end when their retries do");
        break;
      case IBV_EVENT_CQ_ERR:
        FailPairsOf(event.element.cq);
        break;
      case IBV_EVENT_SRQ_ERR:
        FailPairsOf(event.element.srq);
        break;
      default:
        break;
    }
    // Called before the event is acknowledged: until then nobody can destroy the pair.
    if (pair != nullptr) pair->OnQpEvent(type);
    ibv_ack_async_event(&event);
  }
}

}  // namespace viaduct::verbs::rdma
