#include "tests/rdma_mock/objects.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "verbs/base/signals.h"
#include "verbs/base/uncancelled.h"

namespace viaduct::rdma_mock {
namespace {

// Held while a pair gets or loses a peer, so that no peer is destroyed meanwhile.
Mutex& Joining() {
  static constinit Mutex mutex;
  return mutex;
}

// An event channel belongs to the kernel, where no thread is stopped by a signal handler, or
// cancelled.
using InKernel = verbs::SignalsBlocked;

}  // namespace

bool IsIwarp() {
  static const bool iwarp = std::getenv("RDMA_MOCK_IWARP") != nullptr;
  return iwarp;
}
bool IsSiw() {
  static const bool siw = IsIwarp() && std::strcmp(std::getenv("RDMA_MOCK_IWARP"), "siw") == 0;
  return siw;
}

bool LacksWindows() {
  static const bool lacks = std::getenv("RDMA_MOCK_NO_WINDOWS") != nullptr;
  return lacks;
}

bool IsInfiniband(int port) { return !IsIwarp() && IsMlx5() == (port == 2); }

bool IsMlx5() {
  static const bool mlx5 = std::getenv("RDMA_MOCK_MLX5") != nullptr;
  return mlx5;
}

OpenKeys& Regions() {
  static OpenKeys* const keys = new OpenKeys;
  return *keys;
}

OpenKeys& Sinks() {
  static OpenKeys* const keys = new OpenKeys;
  return *keys;
}

void Complete(ibv_cq* queue, const QueuePair& pair, uint64_t id, ibv_wc_opcode opcode,
              ibv_wc_status status, uint32_t bytes, const ibv_send_wr* more_of,
              const Carried* carried) {
  ibv_wc completion;
  completion.wr_id = id;
  completion.status = status;
  completion.opcode = opcode;
  completion.byte_len = bytes;
  completion.qp_num = pair.qp_num;
  completion.wc_flags = 0;
  if (status != IBV_WC_SUCCESS) [[unlikely]] {
    // On failure, the other fields say nothing.
    completion.opcode = static_cast<ibv_wc_opcode>(0x7f);
    completion.byte_len = 0xdeadbeef;
    completion.wc_flags = ~0u;
    completion.imm_data = 0xdeadbeef;
  } else if (more_of != nullptr && more_of->opcode == IBV_WR_SEND_WITH_INV) {
    completion.wc_flags = IBV_WC_WITH_INV;
    completion.invalidated_rkey = more_of->invalidate_rkey;
  } else if (more_of != nullptr) {
    completion.wc_flags = IBV_WC_WITH_IMM;
    completion.imm_data = more_of->imm_data;
  }
  static_cast<CompletionQueue*>(queue)->Add(completion, carried);
}

uint32_t PowerOfTwo(uint32_t least) {
  uint32_t power = 1;
  while (power < least) power *= 2;
  return power;
}

ReceiveRing::ReceiveRing(uint32_t count)
    : mask_(PowerOfTwo(count) - 1), ring_(std::make_unique<PostedReceive[]>(mask_ + 1)) {}

EventPipe::EventPipe() {
  if (pipe2(ends_, O_CLOEXEC) != 0) ends_[0] = ends_[1] = -1;
}

EventPipe::~EventPipe() { close(ends_[1]); }  // the user closes the reading end

void EventPipe::Push(void* about, void* event) {
  const InKernel kernel;
  MutexLock lock(&mutex_);
  events_.emplace_back(about, event);
  const char byte = 0;
  while (verbs::uncancelled::Write(ends_[1], &byte, 1) < 0 && errno == EINTR) {
  }
}

void* EventPipe::Pop(int fd, void (*taken)(void* event)) {
  char byte;
  while (read(fd, &byte, 1) == 1) {
    const InKernel kernel;
    MutexLock lock(&mutex_);
    if (events_.empty()) continue;  // the event was forgotten
    void* const event = events_.front().second;
    events_.pop_front();
    if (taken != nullptr) taken(event);
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

void Window::Bind(MemoryRegion* region, const ibv_mw_bind_info& info, uint32_t key,
                  const ibv_qp* by) {
  MutexLock lock(&mutex);
  if (bound != nullptr) {
    entry = Remote().Remove(open);
    --bound->users;
  }
  bound = region;
  if (region == nullptr) return;
  ++region->users;
  open = key;
  const Reach whole = Remote().Find(region->rkey);
  const bool from_zero = (info.mw_access_flags & IBV_ACCESS_ZERO_BASED) != 0;
  const Reach reach = {.domain = pd,
                       .pair = type == IBV_MW_TYPE_2 ? by : nullptr,
                       .from = from_zero ? 0 : info.addr,
                       .length = info.length,
                       .memory = whole.memory + (info.addr - whole.from),
                       .access = info.mw_access_flags};
  Remote().Open(key, reach, std::move(entry));
}

void CompletionQueue::Add(const ibv_wc& completion, const Carried* bytes) {
  bool ring_bell = false;
  {
    SpinLockHolder guard(&lock);
    if (tail - head > mask) {
      fputs("rdma_mock: a completion queue overflows\n", stderr);
      abort();
    }
    if (bytes != nullptr) [[unlikely]] {
      carried.push_back(*bytes);
      carried.back().place = tail;
    }
    ring[tail++ & mask] = completion;
    std::swap(ring_bell, armed);
  }
  if (ring_bell && channel != nullptr) {
    static_cast<CompletionChannel*>(channel)->events.Push(this, this);
  }
}

void CompletionQueue::Unload() {
  const Carried& oldest = carried.front();
  if (oldest.place != head) return;
  uint32_t done = 0;
  for (const ibv_sge& to : oldest.to) {
    const uint32_t piece = std::min(oldest.length - done, to.length);
    CopyBytes(reinterpret_cast<void*>(to.addr), oldest.bytes + done, piece);
    done += piece;
  }
  carried.pop_front();
}

void CompletionQueue::Ring() {
  {
    SpinLockHolder guard(&lock);
    if (channel == nullptr || !std::exchange(armed, false)) return;
  }
  static_cast<CompletionChannel*>(channel)->events.Push(this, this);
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
  Held().Flush(*this);
  SpinLockHolder guard(&receive_lock);
  failed = true;
  while (!receives.empty()) {
    Complete(recv_cq, *this, receives.Take().id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
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

void Answer(QueuePair& pair, uint64_t id, const char* from, const ibv_sge* to, int count) {
  uint32_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += to[i].length;
  if (pair.carries_answers && bytes <= kMostCarried) [[unlikely]] {
    Carried carried = {.bytes = {}, .length = bytes, .to = {to, to + count}};
    CopyBytes(carried.bytes, from, bytes);
    return Complete(pair.send_cq, pair, id, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, bytes, nullptr,
                    &carried);
  }
  for (int i = 0; i < count; from += to[i++].length) {
    CopyBytes(reinterpret_cast<void*>(to[i].addr), from, to[i].length);
  }
  Complete(pair.send_cq, pair, id, IBV_WC_RDMA_READ, IBV_WC_SUCCESS, bytes, nullptr);
}

void HeldReads::Add(HeldRead read) {
  SpinLockHolder guard(&lock_);
  reads_.push_back(std::move(read));
}

void HeldReads::AnswerAll() {
  SpinLockHolder guard(&lock_);
  for (const HeldRead& read : std::exchange(reads_, {})) {
    Answer(*read.pair, read.id, read.from, read.to.data(), static_cast<int>(read.to.size()));
  }
}

void HeldReads::Flush(QueuePair& pair) {
  SpinLockHolder guard(&lock_);
  for (const HeldRead& read : reads_) {
    if (read.pair == &pair) {
      Complete(pair.send_cq, pair, read.id, IBV_WC_RDMA_READ, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
    }
  }
  std::erase_if(reads_, [&](const HeldRead& read) { return read.pair == &pair; });
}

HeldReads& Held() {
  static HeldReads* const reads = new HeldReads;
  return *reads;
}

void Join(QueuePair& a, QueuePair& b) {
  MutexLock joining(&Joining());
  {
    SpinLockHolder guard(&a.post_lock);
    a.peer = &b;
    a.now = IBV_QPS_RTS;
  }
  SpinLockHolder guard(&b.post_lock);
  b.peer = &a;
  b.now = IBV_QPS_RTS;
}

void Part(QueuePair& pair) {
  MutexLock joining(&Joining());
  QueuePair* peer;
  {
    SpinLockHolder guard(&pair.post_lock);
    peer = pair.peer;
    pair.peer = nullptr;
  }
  if (peer == nullptr) return;
  SpinLockHolder guard(&peer->post_lock);
  peer->peer = nullptr;
  if (IsIwarp()) peer->now = IBV_QPS_ERR;  // the end of TCP is the end of the pair
}

}  // namespace viaduct::rdma_mock
