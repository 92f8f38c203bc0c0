// libibverbs' functions, as far as verbs/rdma calls them.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tests/rdma_mock/objects.h"
#include "verbs/base/signals.h"

// They are macros over functions of the same names.
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

namespace viaduct::rdma_mock {
namespace {

constexpr uint32_t kSiwVendor = 0x626d74;

std::atomic<uint32_t> last_number{0};

// A channel of events is the kernel's, where no thread is stopped by a signal's handler.
using InKernel = verbs::SignalsBlocked;

// An asynchronous event of the device.
void Push(ibv_event_type type, QueuePair& pair);

struct Device {
  ibv_device device = {};
  ibv_context context = {};
  EventPipe async_events;
};

// A segment of no bytes may lie nowhere.
void Copy(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}

uint32_t PowerOfTwo(uint32_t n) {
  uint32_t power = 1;
  while (power < n) power *= 2;
  return power;
}

void Complete(ibv_cq* queue, const QueuePair& pair, uint64_t id, ibv_wc_opcode opcode,
              ibv_wc_status status, uint32_t bytes, const ibv_send_wr* immediate_of) {
  ibv_wc completion;
  completion.wr_id = id;
  completion.status = status;
  completion.opcode = opcode;
  completion.byte_len = bytes;
  completion.qp_num = pair.qp_num;
  completion.wc_flags = 0;
  if (immediate_of != nullptr) {
    completion.wc_flags = IBV_WC_WITH_IMM;
    completion.imm_data = immediate_of->imm_data;
  }
  static_cast<CompletionQueue*>(queue)->Add(completion);
}

void Copy(const PostedReceive& posted, PostedReceive* to) {
  to->id = posted.id;
  to->count = posted.count;
  for (int i = 0; i < posted.count; ++i) to->segments[i] = posted.segments[i];
}

bool TakeShared(SharedQueue& queue, PostedReceive* receive) {
  SpinLockHolder guard(&queue.lock);
  if (queue.head == queue.tail) return false;
  Copy(queue.receives[queue.head++ & queue.mask], receive);
  return true;
}

// The next receive of `peer` takes the message.
ibv_wc_status Receive(QueuePair& peer, const ibv_send_wr& work, bool write, uint32_t bytes) {
  PostedReceive receive;
  {
    SpinLockHolder guard(&peer.receive_lock);
    if (peer.failed) return IBV_WC_RNR_RETRY_EXC_ERR;
    if (std::exchange(peer.unconfirmed, false)) Push(IBV_EVENT_COMM_EST, peer);
    if (peer.srq != nullptr) {
      if (!TakeShared(*static_cast<SharedQueue*>(peer.srq), &receive)) {
        return IBV_WC_RNR_RETRY_EXC_ERR;
      }
      if (mishaps.stuck_messages > 0) {
        --mishaps.stuck_messages;
        peer.taken.push_back(receive.id);
        return IBV_WC_SUCCESS;
      }
    } else if (peer.head == peer.tail) {
      return IBV_WC_RNR_RETRY_EXC_ERR;
    } else {
      Copy(peer.receives[peer.head++ & peer.mask], &receive);
    }
  }
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (!write) {
    int at = 0;
    uint32_t offset = 0;
    for (int i = 0; i < work.num_sge; ++i) {
      const char* from = reinterpret_cast<const char*>(work.sg_list[i].addr);
      for (uint32_t left = work.sg_list[i].length; left != 0;) {
        if (at == receive.count) {
          status = IBV_WC_LOC_LEN_ERR;
          break;
        }
        const ibv_sge& to = receive.segments[at];
        const uint32_t piece = left < to.length - offset ? left : to.length - offset;
        Copy(reinterpret_cast<char*>(to.addr) + offset, from, piece);
        from += piece;
        left -= piece;
        offset += piece;
        if (offset == to.length) {
          ++at;
          offset = 0;
        }
      }
    }
  }
  const bool immediate =
      work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  Complete(peer.recv_cq, peer, receive.id, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, status,
           bytes, immediate ? &work : nullptr);
  return status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR;
}

// As the environment says.
bool IsIwarp() {
  static const bool iwarp = std::getenv("RDMA_MOCK_IWARP") != nullptr;
  return iwarp;
}
bool IsSiw() {
  static const bool siw = IsIwarp() && std::strcmp(std::getenv("RDMA_MOCK_IWARP"), "siw") == 0;
  return siw;
}

// A window as far as its poster sees it: keys are not checked here, those of binds are counted.
bool Bound(const ibv_send_wr& work) {
  const ibv_mw& window = *work.bind_mw.mw;
  return work.bind_mw.rkey == ibv_inc_rkey(window.rkey) && work.bind_mw.bind_info.mr != nullptr &&
         work.bind_mw.bind_info.mr->pd == window.pd;
}

OpenKeys& Sinks() {
  static OpenKeys* const keys = new OpenKeys;
  return *keys;
}

// siw does not ask.
bool SinksAreOpen(const ibv_send_wr& read) {
  if (!IsIwarp() || IsSiw()) return true;
  for (int i = 0; i < read.num_sge; ++i) {
    if (read.sg_list[i].length != 0 && !Sinks().Has(read.sg_list[i].lkey)) return false;
  }
  return true;
}

uint32_t BytesOf(const ibv_send_wr& work) {
  uint32_t bytes = 0;
  for (int i = 0; i < work.num_sge; ++i) bytes += work.sg_list[i].length;
  return bytes;
}

void Perform(QueuePair& pair, const ibv_send_wr& work)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(pair.post_lock) {
  const uint32_t bytes = BytesOf(work);
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  const bool immediate =
      work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (pair.peer == nullptr) {
    status = IBV_WC_WR_FLUSH_ERR;
  } else if (immediate && IsIwarp()) {
    status = IBV_WC_LOC_QP_OP_ERR;
  } else if (work.opcode == IBV_WR_RDMA_READ && work.num_sge > static_cast<int>(kMaxReadSegments)) {
    status = IBV_WC_LOC_QP_OP_ERR;
  } else if (work.opcode == IBV_WR_RDMA_READ && !SinksAreOpen(work)) {
    status = IBV_WC_LOC_PROT_ERR;
  } else if (work.opcode == IBV_WR_SEND || work.opcode == IBV_WR_SEND_WITH_IMM) {
    status = Receive(*pair.peer, work, false, bytes);
  } else if (work.opcode == IBV_WR_RDMA_READ) {
    opcode = IBV_WC_RDMA_READ;
    asked.read = static_cast<int>(bytes);
    const char* from = reinterpret_cast<const char*>(work.wr.rdma.remote_addr);
    for (int i = 0; i < work.num_sge; ++i) {
      Copy(reinterpret_cast<char*>(work.sg_list[i].addr), from, work.sg_list[i].length);
      from += work.sg_list[i].length;
    }
  } else if (work.opcode == IBV_WR_RDMA_WRITE || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    opcode = IBV_WC_RDMA_WRITE;
    char* to = reinterpret_cast<char*>(work.wr.rdma.remote_addr);
    for (int i = 0; i < work.num_sge; ++i) {
      Copy(to, reinterpret_cast<const char*>(work.sg_list[i].addr), work.sg_list[i].length);
      to += work.sg_list[i].length;
    }
    if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) status = Receive(*pair.peer, work, true, bytes);
  } else if (work.opcode == IBV_WR_BIND_MW) {
    opcode = IBV_WC_BIND_MW;
    if (!Bound(work)) status = IBV_WC_MW_BIND_ERR;
  } else {
    status = IBV_WC_REM_INV_REQ_ERR;
  }
  Complete(pair.send_cq, pair, work.wr_id, opcode, status, bytes, nullptr);
}

// As libsiw and librxe tell their drivers.
void Ring() {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const ssize_t written = write(nowhere, "", 1);
  static_cast<void>(written);
}

int PostSend(ibv_qp* handle, ibv_send_wr* work, ibv_send_wr** bad) {
  QueuePair& pair = *static_cast<QueuePair*>(handle);
  SpinLockHolder guard(&pair.post_lock);
  if (pair.peer == nullptr && mishaps.swallow) [[unlikely]]
    return 0;
  if (IsSiw()) Ring();
  for (; work != nullptr; work = work->next) {
    if (mishaps.taken_before_refusal >= 0) [[unlikely]] {
      if (mishaps.taken_before_refusal == 0) {
        *bad = work;
        return ENOMEM;
      }
      --mishaps.taken_before_refusal;
    }
    if ((work->send_flags & IBV_SEND_INLINE) != 0) {
      if (BytesOf(*work) > pair.max_inline) [[unlikely]] {
        *bad = work;
        return ENOMEM;
      }
      asked.inline_segments.store(work->num_sge, std::memory_order_relaxed);
      asked.inline_address.store(work->sg_list->addr, std::memory_order_relaxed);
    } else if (work->num_sge == 0 && work->sg_list != nullptr && work->sg_list->length != 0) {
      asked.stale_segment = true;
    }
    Perform(pair, *work);
  }
  return 0;
}

// A key that was given back, if there is one to be given out again.
uint32_t FreedKey() {
  return mishaps.reuse_keys ? mishaps.last_freed_key.exchange(0) : uint32_t{0};
}

void Meanwhile() {
  if (void (*const work)() = mishaps.making_memory) work();
}

ibv_mw* AllocateWindow(ibv_pd* domain, ibv_mw_type type) {
  Meanwhile();
  ibv_mw* const window = new ibv_mw();
  window->context = domain->context;
  window->pd = domain;
  window->type = type;
  // A bind changes the last eight bits, counting.
  const uint32_t freed = FreedKey();
  window->rkey =
      freed != 0 ? (freed & ~0xffu) | ((freed - 1) & 0xff) : (last_number.fetch_add(1) + 1) << 8;
  return window;
}

int FreeWindow(ibv_mw* window) {
  delete window;
  return 0;
}

int BindWindow(ibv_qp* pair, ibv_mw* window, ibv_mw_bind* bind) {
  ibv_send_wr work = {};
  work.wr_id = bind->wr_id;
  work.opcode = IBV_WR_BIND_MW;
  work.bind_mw.mw = window;
  work.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  work.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  PostSend(pair, &work, &bad);
  window->rkey = work.bind_mw.rkey;
  return 0;
}

int PostReceive(ibv_qp* handle, ibv_recv_wr* work, ibv_recv_wr** bad) {
  QueuePair& pair = *static_cast<QueuePair*>(handle);
  SpinLockHolder guard(&pair.receive_lock);
  for (; work != nullptr; work = work->next) {
    if (pair.tail - pair.head > pair.mask) {
      *bad = work;
      return ENOMEM;
    }
    if (pair.failed) {
      Complete(pair.recv_cq, pair, work->wr_id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
      continue;
    }
    PostedReceive& receive = pair.receives[pair.tail++ & pair.mask];
    receive.id = work->wr_id;
    receive.count = work->num_sge;
    for (int i = 0; i < work->num_sge; ++i) receive.segments[i] = work->sg_list[i];
  }
  return 0;
}

int PostSharedReceive(ibv_srq* handle, ibv_recv_wr* work, ibv_recv_wr** bad) {
  SharedQueue& queue = *static_cast<SharedQueue*>(handle);
  SpinLockHolder guard(&queue.lock);
  for (; work != nullptr; work = work->next) {
    if (queue.tail - queue.head > queue.mask) {
      *bad = work;
      return ENOMEM;
    }
    PostedReceive& receive = queue.receives[queue.tail++ & queue.mask];
    receive.id = work->wr_id;
    receive.count = work->num_sge;
    for (int i = 0; i < work->num_sge; ++i) receive.segments[i] = work->sg_list[i];
  }
  return 0;
}

int PollCq(ibv_cq* handle, int n, ibv_wc* out) {
  CompletionQueue& queue = *static_cast<CompletionQueue*>(handle);
  if (mishaps.late) [[unlikely]]
    return 0;
  SpinLockHolder guard(&queue.lock);
  int count = 0;
  while (count < n && queue.head != queue.tail)
    out[count++] = queue.ring[queue.head++ & queue.mask];
  return count;
}

int RequestNotify(ibv_cq* handle, int) {
  CompletionQueue& queue = *static_cast<CompletionQueue*>(handle);
  SpinLockHolder guard(&queue.lock);
  queue.armed = true;
  return 0;
}

Device* MakeDevice() {
  Device* const made = new Device;  // leaked, as a device is for ever
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
  return made;
}

Device& TheDevice() {
  static Device* const device = MakeDevice();
  return *device;
}

void Push(ibv_event_type type, QueuePair& pair) {
  auto* const event = new ibv_async_event();
  event->event_type = type;
  event->element.qp = &pair;
  TheDevice().async_events.Push(&pair, event);
}

}  // namespace

ibv_context* Verbs() { return &TheDevice().context; }

EventPipe::EventPipe() {
  if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
}

EventPipe::~EventPipe() { close(ends_[1]); }  // the reading end is its user's

void EventPipe::Push(void* about, void* event) {
  const InKernel kernel;
  MutexLock lock(&mutex_);
  events_.emplace_back(about, event);
  const char byte = 0;
  while (write(ends_[1], &byte, 1) < 0 && errno == EINTR) {
  }
}

void* EventPipe::Pop(int fd) {
  char byte;
  while (read(fd, &byte, 1) == 1) {
    const InKernel kernel;
    MutexLock lock(&mutex_);
    if (events_.empty()) continue;  // it was forgotten
    void* const event = events_.front().second;
    events_.pop_front();
    return event;
  }
  return nullptr;
}

std::vector<void*> EventPipe::Forget(void* about) {
  const InKernel kernel;
  std::vector<void*> forgotten;
  MutexLock lock(&mutex_);
  for (auto at = events_.begin(); at != events_.end();) {
    if (at->first != about) {
      ++at;
      continue;
    }
    forgotten.push_back(at->second);
    at = events_.erase(at);
  }
  return forgotten;
}

void CompletionQueue::Add(const ibv_wc& completion) {
  bool ring_bell = false;
  {
    SpinLockHolder guard(&lock);
    ring[tail++ & mask] = completion;
    std::swap(ring_bell, armed);
  }
  if (ring_bell && channel != nullptr) {
    static_cast<CompletionChannel*>(channel)->events.Push(this, this);
  }
}

void OpenKeys::Add(uint32_t key) {
  SpinLockHolder guard(&lock_);
  keys_.insert(key);
}

void OpenKeys::Remove(uint32_t key) {
  SpinLockHolder guard(&lock_);
  keys_.erase(key);
}

bool OpenKeys::Has(uint32_t key) {
  SpinLockHolder guard(&lock_);
  return keys_.contains(key);
}

void QueuePair::Fail() {
  SpinLockHolder guard(&receive_lock);
  failed = true;
  for (; head != tail; ++head) {
    Complete(recv_cq, *this, receives[head & mask].id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0,
             nullptr);
  }
}

void QueuePair::FlushTaken() {
  SpinLockHolder guard(&receive_lock);
  for (uint64_t id : std::exchange(taken, {})) {
    Complete(recv_cq, *this, id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
  }
  Push(IBV_EVENT_QP_LAST_WQE_REACHED, *this);
}

LatePairs& Late() {
  static LatePairs* const pairs = new LatePairs;
  return *pairs;
}

void LatePairs::Add(QueuePair* pair) {
  MutexLock lock(&mutex_);
  pairs_.insert(pair);
}

void LatePairs::Remove(QueuePair* pair) {
  MutexLock lock(&mutex_);
  pairs_.erase(pair);
}

void LatePairs::FlushAll() {
  MutexLock lock(&mutex_);
  for (QueuePair* pair : std::exchange(pairs_, {})) pair->FlushTaken();
}

void Join(QueuePair& a, QueuePair& b) {
  {
    SpinLockHolder guard(&a.post_lock);
    a.peer = &b;
  }
  SpinLockHolder guard(&b.post_lock);
  b.peer = &a;
}

void Part(QueuePair& pair) {
  QueuePair* peer;
  {
    SpinLockHolder guard(&pair.post_lock);
    peer = pair.peer;
    pair.peer = nullptr;
  }
  if (peer == nullptr) return;
  SpinLockHolder guard(&peer->post_lock);
  peer->peer = nullptr;
}

}  // namespace viaduct::rdma_mock

namespace mock = viaduct::rdma_mock;

extern "C" {

int ibv_query_device(ibv_context*, ibv_device_attr* attributes) {
  std::memset(attributes, 0, sizeof *attributes);
  if (mock::IsSiw()) attributes->vendor_id = mock::kSiwVendor;
  attributes->max_mr_size = uint64_t{1} << 40;
  attributes->max_qp = attributes->max_cq = attributes->max_mr = attributes->max_pd = 65536;
  attributes->max_qp_wr = 4096;
  attributes->max_sge = mock::kMaxSegments;
  attributes->max_sge_rd = mock::kMaxReadSegments;
  attributes->max_cqe = 1 << 20;
  attributes->max_srq = 65536;
  attributes->max_srq_wr = 4096;
  attributes->max_srq_sge = mock::kMaxSegments;
  attributes->max_qp_rd_atom = attributes->max_qp_init_rd_atom = 16;
  attributes->atomic_cap = IBV_ATOMIC_NONE;
  attributes->phys_port_cnt = 1;
  attributes->device_cap_flags = IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
  return 0;
}

int ibv_query_port(ibv_context*, uint8_t, _compat_ibv_port_attr* attributes) {
  auto* const port = reinterpret_cast<ibv_port_attr*>(attributes);
  port->state = IBV_PORT_ACTIVE;
  port->max_msg_sz = 0x40000000;
  return 0;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  ibv_pd* const domain = new ibv_pd();
  domain->context = context;
  ++mock::mishaps.live_domains;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  --mock::mishaps.live_domains;
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, size_t length, int access) {
  mock::Meanwhile();
  mock::asked.access = access;
  // The kernel's ib_access_writable.
  constexpr int kWriting = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;
  if (address == mock::mishaps.read_only && address != nullptr && (access & kWriting) != 0) {
    errno = EFAULT;
    return nullptr;
  }
  if (mock::mishaps.failing_registrations > 0 || mock::mishaps.spare_regions == 0) {
    if (mock::mishaps.failing_registrations > 0) --mock::mishaps.failing_registrations;
    errno = ENOMEM;
    return nullptr;
  }
  if (mock::mishaps.spare_regions > 0) --mock::mishaps.spare_regions;
  ibv_mr* const region = new ibv_mr();
  region->context = domain->context;
  region->pd = domain;
  region->addr = address;
  region->length = length;
  const uint32_t freed = mock::FreedKey();
  region->lkey = region->rkey = freed != 0 ? freed : mock::last_number.fetch_add(1) + 1;
  if (mock::mishaps.large_keys > 0) {
    --mock::mishaps.large_keys;
    region->lkey = region->rkey |= 0x80000000;
  }
  if ((access & IBV_ACCESS_REMOTE_WRITE) != 0) mock::Sinks().Add(region->lkey);
  return region;
}

ibv_mr* ibv_reg_mr_iova(ibv_pd* domain, void* address, size_t length, uint64_t, int access) {
  return ibv_reg_mr(domain, address, length, access);
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, size_t length, uint64_t, unsigned access) {
  return ibv_reg_mr(domain, address, length, static_cast<int>(access));
}

int ibv_dereg_mr(ibv_mr* region) {
  mock::mishaps.last_freed_key = region->lkey;
  mock::Sinks().Remove(region->lkey);
  if (mock::mishaps.spare_regions >= 0) ++mock::mishaps.spare_regions;
  delete region;
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  auto* const channel = new mock::CompletionChannel();
  channel->context = context;
  channel->fd = channel->events.reading_end();
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  close(channel->fd);
  delete static_cast<mock::CompletionChannel*>(channel);
  return 0;
}

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* its, ibv_comp_channel* channel,
                      int) {
  auto* const queue = new mock::CompletionQueue();
  queue->context = context;
  queue->channel = channel;
  queue->cq_context = its;
  const uint32_t room = mock::PowerOfTwo(static_cast<uint32_t>(entries));
  queue->cqe = static_cast<int>(room);
  queue->ring = std::make_unique<ibv_wc[]>(room);
  queue->mask = room - 1;
  return queue;
}

int ibv_destroy_cq(ibv_cq* handle) {
  auto* const queue = static_cast<mock::CompletionQueue*>(handle);
  if (queue->channel != nullptr) {
    static_cast<mock::CompletionChannel*>(queue->channel)->events.Forget(queue);
  }
  delete queue;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* handle, ibv_cq** queue, void** its) {
  auto* const channel = static_cast<mock::CompletionChannel*>(handle);
  *queue = static_cast<mock::CompletionQueue*>(channel->events.Pop(channel->fd));
  if (*queue == nullptr) return -1;
  *its = (*queue)->cq_context;
  return 0;
}

void ibv_ack_cq_events(ibv_cq*, unsigned) {}

int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  const std::unique_ptr<ibv_async_event> next(
      static_cast<ibv_async_event*>(mock::TheDevice().async_events.Pop(context->async_fd)));
  if (next == nullptr) return -1;
  *event = *next;
  return 0;
}

void ibv_ack_async_event(ibv_async_event*) {}

ibv_srq* ibv_create_srq(ibv_pd* domain, ibv_srq_init_attr* wanted) {
  auto* const queue = new mock::SharedQueue();
  queue->context = domain->context;
  queue->pd = domain;
  const uint32_t room = mock::PowerOfTwo(wanted->attr.max_wr);
  queue->receives = std::make_unique<mock::PostedReceive[]>(room);
  queue->mask = room - 1;
  return queue;
}

int ibv_destroy_srq(ibv_srq* queue) {
  delete static_cast<mock::SharedQueue*>(queue);
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
  const uint64_t request_bytes =
      32 + sizeof(ibv_sge) * wanted->cap.max_send_sge + wanted->cap.max_inline_data;
  if (wanted->cap.max_inline_data > mock::kMaxInline ||
      wanted->cap.max_send_wr * request_bytes > mock::kSendQueueBytes ||
      wanted->cap.max_send_sge > mock::kMaxSegments ||
      wanted->cap.max_recv_sge > mock::kMaxSegments) {
    errno = EINVAL;
    return nullptr;
  }
  auto* const pair = new mock::QueuePair();
  pair->context = domain->context;
  pair->qp_context = wanted->qp_context;
  pair->pd = domain;
  pair->send_cq = wanted->send_cq;
  pair->recv_cq = wanted->recv_cq;
  pair->srq = wanted->srq;
  pair->qp_num = mock::last_number.fetch_add(1) + 1;
  pair->qp_type = wanted->qp_type;
  pair->state = IBV_QPS_INIT;
  const uint32_t room = mock::PowerOfTwo(wanted->cap.max_recv_wr);
  pair->receives = std::make_unique<mock::PostedReceive[]>(room);
  pair->mask = room - 1;
  pair->max_inline = wanted->cap.max_inline_data;
  ++mock::mishaps.live_pairs;
  return pair;
}

int ibv_destroy_qp(ibv_qp* handle) {
  auto* const pair = static_cast<mock::QueuePair*>(handle);
  mock::Part(*pair);
  mock::Late().Remove(pair);
  for (void* event : mock::TheDevice().async_events.Forget(pair)) {
    delete static_cast<ibv_async_event*>(event);
  }
  --mock::mishaps.live_pairs;
  delete pair;
  return 0;
}

int ibv_modify_qp(ibv_qp* handle, ibv_qp_attr* attributes, int mask) {
  if ((mask & IBV_QP_ACCESS_FLAGS) != 0) {
    mock::asked.peer_access = static_cast<unsigned>(attributes->qp_access_flags);
    mock::asked.delay = (mask & IBV_QP_MIN_RNR_TIMER) != 0 ? attributes->min_rnr_timer : 0;
  }
  if ((mask & IBV_QP_STATE) == 0) return 0;
  auto* const pair = static_cast<mock::QueuePair*>(handle);
  pair->state = attributes->qp_state;
  if (attributes->qp_state == IBV_QPS_ERR) {
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

int ibv_query_qp(ibv_qp* pair, ibv_qp_attr* attributes, int, ibv_qp_init_attr*) {
  attributes->qp_state = pair->state;
  return 0;
}

const char* ibv_wc_status_str(ibv_wc_status) { return "a failure"; }
}
