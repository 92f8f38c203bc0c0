// libibverbs' functions, as far as verbs/rdma calls them.
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tests/rdma_mock/failures.h"
#include "tests/rdma_mock/mishaps.h"
#include "tests/rdma_mock/mlx5.h"
#include "tests/rdma_mock/objects.h"
#include "tests/rdma_mock/posting.h"
#include "verbs/base/mappings.h"

// libibverbs defines them as macros over functions of the same names.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace viaduct::rdma_mock {
namespace {

constexpr uint32_t kSiwVendor = 0x626d74;
constexpr uint32_t kMlx5Vendor = 0x0002c9;

std::atomic<uint32_t> last_number{0};

struct Device {
  ibv_device device = {};
  ibv_context context = {};
  EventPipe async_events;
};

// Null: the event is about the device.
Notified* About(const ibv_async_event& event) {
  switch (event.event_type) {
    case IBV_EVENT_CQ_ERR:
      return static_cast<CompletionQueue*>(event.element.cq);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return static_cast<SharedQueue*>(event.element.srq);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_COMM_EST:
      return static_cast<QueuePair*>(event.element.qp);
    default:
      return nullptr;
  }
}

void NoteRead(void* event) {
  Notified* const about = About(*static_cast<ibv_async_event*>(event));
  if (about != nullptr) ++about->unacknowledged;
}

// The key that was given back last, if it is to be given out again; else 0.
uint32_t FreedKey() {
  return mishaps.reuse_keys ? mishaps.last_freed_key.exchange(0) : uint32_t{0};
}

// EBUSY while the object is used, as documented in ibv_alloc_pd(3), ibv_reg_mr(3), ibv_create_cq(3)
// and ibv_create_srq(3).
int Busy(const Used& object) { return object.users == 0 ? 0 : EBUSY; }

void Meanwhile() {
  if (void (*const work)() = mishaps.making_memory) work();
}

ibv_mw* AllocateWindow(ibv_pd* domain, ibv_mw_type type) {
  if (LacksWindows()) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  Meanwhile();
  if (ErrorOf("ibv_alloc_mw", {ENOMEM, EIO}) != 0) return nullptr;
  ibv_mw* const window = new Window();
  Made(Kind::kWindow);
  ++static_cast<Domain*>(domain)->users;
  window->context = domain->context;
  window->pd = domain;
  window->type = type;
  // A bind counts up the last eight bits.
  const uint32_t freed = FreedKey();
  window->rkey =
      freed != 0 ? (freed & ~0xffu) | ((freed - 1) & 0xff) : (last_number.fetch_add(1) + 1) << 8;
  return window;
}

int FreeWindow(ibv_mw* handle) {
  auto* const window = static_cast<Window*>(handle);
  window->Bind(nullptr, {}, 0, nullptr);
  --static_cast<Domain*>(window->pd)->users;
  delete window;
  Gone(Kind::kWindow);
  return 0;
}

// Whether this is InfiniBand's next state for the pair, with all that the device must be told for
// it.
bool IsNext(const QueuePair& pair, ibv_qp_state state, int mask) {
  if ((mask & kKernelsOwn) != 0) return false;
  if ((mask & IBV_QP_STATE) == 0 || state == IBV_QPS_ERR) return true;
  if ((mask & AttributesOf(state)) != AttributesOf(state)) return false;
  switch (state) {
    case IBV_QPS_INIT:
      return pair.now == IBV_QPS_RESET || pair.now == IBV_QPS_INIT;
    case IBV_QPS_RTR:
      return pair.now == IBV_QPS_INIT;
    default:
      return pair.now == IBV_QPS_RTR;
  }
}

// As in the kernel (6.1), which lets a device read whatever is mapped.
bool CanPin(const void* address, size_t length, int access) {
  // The kernel's ib_access_writable.
  constexpr int kWriting = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  const bool written = (access & kWriting) != 0;
  return verbs::EveryMapping(address, length, [written](const verbs::Mapping& mapping) {
    return mapping.writable || !written;
  });
}

std::array<Used*, 4> UsedBy(const QueuePair& pair) {
  return {static_cast<Domain*>(pair.pd), static_cast<CompletionQueue*>(pair.send_cq),
          static_cast<CompletionQueue*>(pair.recv_cq), static_cast<SharedQueue*>(pair.srq)};
}

Device* MakeDevice() {
  Device* const made = new Device;  // leaked: a device exists forever
  std::strcpy(made->device.name, "mock0");
  const bool iwarp = IsIwarp();
  made->device.node_type = iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
  made->device.transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
  made->context.device = &made->device;
  made->context.ops.post_send = PostSend;
  made->context.ops.post_recv = PostReceive;
  made->context.ops.post_srq_recv = PostSharedReceive;
  made->context.ops.poll_cq = PollCq;
  made->context.ops.alloc_mw = AllocateWindow;
  made->context.ops.dealloc_mw = FreeWindow;
  made->context.ops.bind_mw = BindWindow;
  made->context.ops.req_notify_cq = RequestNotify;
  made->context.async_fd = made->async_events.reading_end();
  made->context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (IsMlx5()) OpenMlx5Library(made->device);
  return made;
}

Device& TheDevice() {
  static Device* const device = MakeDevice();
  return *device;
}

}  // namespace

void PushEvent(const ibv_async_event& event, void* about) {
  TheDevice().async_events.Push(about, new ibv_async_event(event));
}

void Push(ibv_event_type type, QueuePair& pair) {
  ibv_async_event event = {};
  event.event_type = type;
  event.element.qp = &pair;
  PushEvent(event, &pair);
}

// As in the libraries, whoever has read an event of the object must first acknowledge it.
void ForgetEventsOf(void* about, const Notified& notified) {
  for (void* event : TheDevice().async_events.Forget(about)) {
    delete static_cast<ibv_async_event*>(event);
  }
  while (notified.unacknowledged != 0) sched_yield();
}

ibv_context* Verbs() { return &TheDevice().context; }

ibv_context* OtherVerbs() {
  static Device* const device = [] {
    Device* const made = new Device;  // leaked, too
    std::strcpy(made->device.name, "mock1");
    made->context.device = &made->device;
    return made;
  }();
  return &device->context;
}

ibv_qp* MakePair(ibv_pd* domain, ibv_qp_init_attr* wanted, bool carries) {
  const uint64_t request_bytes =
      32 + sizeof(ibv_sge) * wanted->cap.max_send_sge + wanted->cap.max_inline_data;
  if (wanted->cap.max_inline_data > kMaxInline ||
      wanted->cap.max_send_wr * request_bytes > kSendQueueBytes ||
      wanted->cap.max_send_sge > kMaxSegments || wanted->cap.max_recv_sge > kMaxSegments) {
    errno = EINVAL;
    return nullptr;
  }
  if (ErrorOf("ibv_create_qp", {ENOMEM, EINVAL, EIO}) != 0) return nullptr;
  const int error = mishaps.spare_pairs == 0 ? ENOMEM : mishaps.pair_error.load();
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  if (mishaps.spare_pairs > 0) --mishaps.spare_pairs;
  auto made = std::make_unique<QueuePair>(wanted->cap.max_recv_wr);
  QueuePair* const pair = made.get();
  pair->context = domain->context;
  pair->qp_context = wanted->qp_context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->srq = wanted->srq;
  pair->qp_num = last_number.fetch_add(1) + 1;
  pair->qp_type = wanted->qp_type;
  pair->now = IBV_QPS_RESET;
  pair->max_inline = wanted->cap.max_inline_data;
  pair->carries_messages = carries;
  pair->carries_answers = carries && wanted->sq_sig_all != 0;
  if (IsMlx5()) {
    const uint32_t options = mishaps.no_extensions ? uint32_t{0} : kExtensions;
    pair->extensions = {kExtensionVendor, options, 0};
  }
  Existing<QueuePair>().Add(pair);
  for (Used* const used : UsedBy(*pair)) {
    if (used != nullptr) ++used->users;
  }
  Made(Kind::kPair);
  return made.release();
}

}  // namespace viaduct::rdma_mock

namespace mock = viaduct::rdma_mock;

extern "C" {

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  if (const int error = mock::ErrorOf("ibv_query_device", {ENOMEM, EIO}); error != 0) return error;
  std::memset(attributes, 0, sizeof *attributes);
  if (mock::IsSiw()) attributes->vendor_id = mock::kSiwVendor;
  if (mock::IsMlx5()) attributes->vendor_id = mock::kMlx5Vendor;
  attributes->max_mr_size = uint64_t{1} << 40;
  attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_pd = 65536;
  attributes->max_qp_wr = 4096;
  attributes->max_sge = mock::kMaxSegments;
  attributes->max_sge_rd = mock::kMaxReadSegments;
  attributes->max_cqe = 32767;  // as rxe
  attributes->max_srq = 65536;
  attributes->max_srq_wr = 1 << 20;  // as rxe
  attributes->max_srq_sge = mock::kMaxSegments;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  attributes->atomic_cap = IBV_ATOMIC_NONE;
  attributes->phys_port_cnt = 2;
  attributes->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  return 0;
}

int ibv_query_port(ibv_context*, uint8_t number, _compat_ibv_port_attr* attributes) {
  if (const int error = mock::ErrorOf("ibv_query_port", {ENOMEM, EIO}); error != 0) return error;
  auto* const port = reinterpret_cast<ibv_port_attr*>(attributes);
  port->state = IBV_PORT_ACTIVE;
  port->max_msg_sz = 0x40000000;
  port->link_layer =
      mock::IsInfiniband(number) ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  if (mock::ErrorOf("ibv_alloc_pd", {ENOMEM, EIO, EPERM}) != 0) return nullptr;
  ibv_pd* const domain = new mock::Domain();
  domain->context = context;
  mock::Made(mock::Kind::kDomain);
  return domain;
}

int ibv_dealloc_pd(ibv_pd* handle) {
  auto* const domain = static_cast<mock::Domain*>(handle);
  if (const int error = mock::Busy(*domain); error != 0) return error;
  mock::Gone(mock::Kind::kDomain);
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  return ibv_reg_mr_iova(domain, address, length, reinterpret_cast<uint64_t>(address), access);
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, size_t length, uint64_t from, int access) {
  mock::CallDriver(*domain->context);
  mock::Meanwhile();
  if (mock::ErrorOf("ibv_reg_mr", {ENOMEM, EINVAL, EIO}) != 0) return nullptr;
  mock::asked.access = access;
  if (!mock::CanPin(address, length, access)) {
    errno = EFAULT;
    return nullptr;
  }
  if (mock::mishaps.failing_registrations > 0 || mock::mishaps.spare_regions == 0) {
    if (mock::mishaps.failing_registrations > 0) --mock::mishaps.failing_registrations;
    errno = ENOMEM;
    return nullptr;
  }
  if (mock::mishaps.spare_regions > 0) --mock::mishaps.spare_regions;
  ibv_mr* const region = new mock::MemoryRegion();
  ++static_cast<mock::Domain*>(domain)->users;
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  const uint32_t freed = mock::FreedKey();
  region->lkey = region->rkey = freed != 0 ? freed : mock::last_number.fetch_add(1) + 1;
  if (mock::mishaps.large_keys > 0 || mock::mishaps.large_until_back > 0) {
    if (mock::mishaps.large_keys > 0) --mock::mishaps.large_keys;
    region->lkey = region->rkey |= 0x80000000;
  }
  mock::Regions().Add(region->lkey);
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) mock::Sinks().Add(region->lkey);
  const mock::Reach reach = {.domain = domain,
                             .pair = nullptr,
                             .from = from,
                             .length = length,
                             .memory = static_cast<char*>(address),
                             .access = static_cast<unsigned>(access)};
  mock::Remote().Open(region->rkey, reach, mock::RemoteKeys::NewEntry());
  mock::Made(mock::Kind::kRegion);
  return region;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t from,
                         unsigned access) {
  return ibv_reg_mr_iova(domain, address, length, from, static_cast<int>(access));
}

// Changes only rights and domains. In place, as mlx5 does, without a look at how memory is pinned.
int ibv_rereg_mr(ibv_mr* region, int flags, ibv_pd* domain, void*, size_t, int access) {
  const auto change = static_cast<mock::Change>(mock::mishaps.change.load());
  if (change == mock::Change::kRefused) {
    errno = EOPNOTSUPP;
    return IBV_REREG_MR_ERR_INPUT;
  }
  if (mock::ErrorOf("ibv_rereg_mr", {ENOMEM, EINVAL, EIO}) != 0) return IBV_REREG_MR_ERR_CMD;
  if (change != mock::Change::kInPlace && !mock::CanPin(region->addr, region->length, access)) {
    errno = EFAULT;
    return IBV_REREG_MR_ERR_CMD;
  }
  mock::asked.access = access;
  mock::RemoteKeys::Entry entry = mock::Remote().Remove(region->rkey);
  mock::Reach reach = entry.mapped();
  reach.access = static_cast<unsigned>(access);
  if ((flags & IBV_REREG_MR_CHANGE_PD) != 0) {
    --static_cast<mock::Domain*>(region->pd)->users;
    ++static_cast<mock::Domain*>(domain)->users;
    reach.domain = region->pd = domain;
  }
  mock::Sinks().Remove(region->lkey);
  if (change == mock::Change::kAnotherKey) {
    mock::Regions().Remove(region->lkey);
    region->lkey = region->rkey = mock::last_number.fetch_add(1) + 1;
    mock::Regions().Add(region->lkey);
  }
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) mock::Sinks().Add(region->lkey);
  mock::Remote().Open(region->rkey, reach, std::move(entry));
  return 0;
}

int ibv_dereg_mr(ibv_mr* handle) {
  auto* const region = static_cast<mock::MemoryRegion*>(handle);
  if (const int error = mock::Busy(*region); error != 0) return error;
  --static_cast<mock::Domain*>(region->pd)->users;
  mock::Regions().Remove(region->lkey);
  mock::Sinks().Remove(region->lkey);
  mock::Remote().Remove(region->rkey);
  mock::mishaps.last_freed_key = region->lkey;
  if (mock::mishaps.spare_regions >= 0) ++mock::mishaps.spare_regions;
  if (mock::mishaps.large_until_back > 0) --mock::mishaps.large_until_back;
  delete region;
  mock::Gone(mock::Kind::kRegion);
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  if (mock::ErrorOf("ibv_create_comp_channel", {EMFILE, ENOMEM, EIO}) != 0) return nullptr;
  auto* const channel = new mock::CompletionChannel();
  mock::Made(mock::Kind::kChannel);
  channel->context = context;
  channel->fd = channel->events.reading_end();
  return channel;
}

// libibverbs keeps a channel that has queues; the mock then keeps only the channel's descriptor.
int ibv_destroy_comp_channel(ibv_comp_channel* handle) {
  auto* const channel = static_cast<mock::CompletionChannel*>(handle);
  const bool busy = channel->queues != 0;
  if (!busy) close(channel->fd);
  delete channel;
  mock::Gone(mock::Kind::kChannel);
  return busy ? EBUSY : 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* its, ibv_comp_channel* channel,
                      int) {
  if (mock::ErrorOf("ibv_create_cq", {ENOMEM, EINVAL, EIO}) != 0) return nullptr;
  auto made = std::make_unique<mock::CompletionQueue>();
  mock::CompletionQueue* const queue = made.get();
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = its;
  const uint32_t room = mock::PowerOfTwo(static_cast<uint32_t>(entries));
  queue->cqe = static_cast<int>(room);
  queue->ring = std::make_unique<ibv_wc[]>(room);
  queue->mask = room - 1;
  mock::Existing<mock::CompletionQueue>().Add(queue);
  if (channel != nullptr) ++static_cast<mock::CompletionChannel*>(channel)->queues;
  mock::Made(mock::Kind::kCompletionQueue);
  ++mock::asked.completion_queues;
  return made.release();
}

int ibv_destroy_cq(ibv_cq* handle) {
  auto* const queue = static_cast<mock::CompletionQueue*>(handle);
  if (const int error = mock::Busy(*queue); error != 0) return error;
  mock::Existing<mock::CompletionQueue>().Remove(queue);
  mock::ForgetEventsOf(queue, *queue);
  const bool kept = mock::mishaps.kept_queues;
  if (auto* const channel = static_cast<mock::CompletionChannel*>(queue->channel)) {
    channel->events.Forget(queue);
    if (!kept) --channel->queues;
  }
  while (queue->unacknowledged_completions != 0) sched_yield();
  delete queue;
  mock::Gone(mock::Kind::kCompletionQueue);
  return kept ? EIO : 0;
}

int ibv_get_cq_event(ibv_comp_channel* handle, ibv_cq** queue, void** its) {
  auto* const channel = static_cast<mock::CompletionChannel*>(handle);
  *queue = static_cast<mock::CompletionQueue*>(channel->events.Pop(channel->fd, [](void* event) {
    ++static_cast<mock::CompletionQueue*>(event)->unacknowledged_completions;
  }));
  if (*queue == nullptr) return -1;
  *its = (*queue)->cq_context;
  return 0;
}

// Whoever destroys the queue waits for this.
void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  static_cast<mock::CompletionQueue*>(queue)->unacknowledged_completions -= static_cast<int>(count);
}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  const std::unique_ptr<ibv_async_event> next(static_cast<ibv_async_event*>(
      mock::TheDevice().async_events.Pop(context->async_fd, mock::NoteRead)));
  if (next == nullptr) return -1;
  *event = *next;
  return 0;
}

void ibv_ack_async_event(ibv_async_event* event) {
  mock::Notified* const about = mock::About(*event);
  if (about != nullptr) --about->unacknowledged;
}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* wanted) {
  if (mock::ErrorOf("ibv_create_srq", {ENOMEM, EINVAL, EIO}) != 0) return nullptr;
  mock::Made(mock::Kind::kSharedQueue);
  auto* const queue = new mock::SharedQueue(wanted->attr.max_wr);
  ++static_cast<mock::Domain*>(domain)->users;
  queue->context = domain->context;
  queue->pd = domain;
  mock::Existing<mock::SharedQueue>().Add(queue);
  return queue;
}

int ibv_destroy_srq(ibv_srq* handle) {
  auto* const queue = static_cast<mock::SharedQueue*>(handle);
  if (const int error = mock::Busy(*queue); error != 0) return error;
  --static_cast<mock::Domain*>(queue->pd)->users;
  mock::Existing<mock::SharedQueue>().Remove(queue);
  mock::ForgetEventsOf(queue, *queue);
  delete queue;
  mock::Gone(mock::Kind::kSharedQueue);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  return mock::MakePair(domain, wanted, mock::IsMlx5());
}

int ibv_destroy_qp(ibv_qp* handle) {
  while (mock::mishaps.held_pairs) sched_yield();
  auto* const pair = static_cast<mock::QueuePair*>(handle);
  mock::Unbind(*pair);
  mock::Part(*pair);
  mock::Late().Remove(pair);
  mock::Existing<mock::QueuePair>().Remove(pair);
  mock::ForgetEventsOf(pair, *pair);
  if (mock::mishaps.spare_pairs >= 0) ++mock::mishaps.spare_pairs;
  for (mock::Used* const used : mock::UsedBy(*pair)) {
    if (used != nullptr) --used->users;
  }
  delete pair;
  mock::Gone(mock::Kind::kPair);  // last: a test that has waited for this may limit the pairs
  return 0;
}

int ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  if (const int error = mock::ErrorOf("ibv_modify_qp", {ENOMEM, EINVAL, EIO}); error != 0) {
    return error;
  }
  auto* const pair = static_cast<mock::QueuePair*>(handle);
  if (!mock::IsNext(*pair, attributes->qp_state, mask)) return EINVAL;
  if ((mask & IBV_QP_STATE) != 0 && attributes->qp_state == IBV_QPS_RTR &&
      !mock::IsInfiniband(mock::mishaps.second_port ? 2 : 1)) {
    while (mock::mishaps.held_opens) sched_yield();
    if (mock::mishaps.missed_at_open > 0) {
      --mock::mishaps.missed_at_open;
      return ETIMEDOUT;
    }
  }
  ++mock::asked.changes;
  if ((mask & IBV_QP_PKEY_INDEX) != 0) pair->partition = attributes->pkey_index;
  if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) != 0) pair->reads_in = attributes->max_dest_rd_atomic;
  if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) != 0) pair->reads_out = attributes->max_rd_atomic;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) pair->access = attributes->qp_access_flags;
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0 && attributes->qp_state != IBV_QPS_INIT) {
    mock::asked.peer_access = static_cast<unsigned>(attributes->qp_access_flags);
    mock::asked.delay = (mask & IBV_QP_MIN_RNR_TIMER) != 0 ? attributes->min_rnr_timer : 0;
  }
  if ((mask & IBV_QP_STATE) == 0) return 0;
  pair->now = attributes->qp_state;
  if (pair->now == IBV_QPS_RTS) mock::asked.partition = pair->partition;
  if (attributes->qp_state == IBV_QPS_INIT || attributes->qp_state == IBV_QPS_RTR) {
    pair->extensions.options &= pair->wanted_extensions;
    mock::asked.used_extensions = pair->extensions.options;
  }
  if (attributes->qp_state == IBV_QPS_ERR) {
    mock::Unbind(*pair);
    mock::Part(*pair);
    pair->Fail();
    if (pair->srq == nullptr) return 0;
    if (mock::mishaps.late_flushes) {
      mock::Late().Add(pair);
    } else {
      pair->FlushTaken();
    }
  }
  return 0;
}

int ibv_query_ece(ibv_qp* pair, ibv_ece* extensions) {
  if (const int error = mock::ErrorOf("ibv_query_ece", {EOPNOTSUPP, ENOMEM}); error != 0) {
    return error;
  }
  *extensions = static_cast<mock::QueuePair*>(pair)->extensions;
  return extensions->vendor_id != 0 ? 0 : EOPNOTSUPP;
}

// As in libmlx5, which tells its device with the next change. Extensions are agreed on before the
// pair is open.
int ibv_set_ece(ibv_qp* handle, ibv_ece* extensions) {
  auto* const pair = static_cast<mock::QueuePair*>(handle);
  if (const int error = mock::ErrorOf("ibv_set_ece", {EOPNOTSUPP, EINVAL, ENOMEM}); error != 0) {
    return error;
  }
  if (pair->extensions.vendor_id == 0 || mock::mishaps.no_extensions) return EOPNOTSUPP;
  const bool closed = pair->now == IBV_QPS_RESET || pair->now == IBV_QPS_INIT;
  if (!closed || extensions->vendor_id != pair->extensions.vendor_id ||
      extensions->comp_mask != 0) {
    return EINVAL;
  }
  pair->wanted_extensions = extensions->options;
  return 0;
}

int ibv_query_qp(ibv_qp* pair, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  mock::CallDriver(*pair->context);
  if (const int error = mock::ErrorOf("ibv_query_qp", {ENOMEM, EIO}); error != 0) return error;
  attributes->qp_state = static_cast<mock::QueuePair*>(pair)->now;
  return 0;
}

const char* ibv_wc_status_str(ibv_wc_status) { return "a failure"; }
}
