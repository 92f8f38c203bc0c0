// What the mock's handles point to. The device has no wire: a post moves the bytes and completes on
// both sides before it returns.
//
// Locks, in this order: that of Everything (control calls), that under which pairs are joined and
// parted, a pair's post_lock, its receive_lock, the lock of a shared queue or a completion queue. A
// post takes the last three.
#ifndef VIADUCT_TESTS_RDMA_MOCK_OBJECTS_H_
#define VIADUCT_TESTS_RDMA_MOCK_OBJECTS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "tests/rdma_mock/kind.h"
#include "tests/rdma_mock/remote_keys.h"
#include "tests/rdma_mock/told.h"
#include "verbs/base/lock.h"

namespace viaduct::rdma_mock {

using verbs::Mutex;
using verbs::MutexLock;
using verbs::SpinLock;
using verbs::SpinLockHolder;

// Limits as of hardware; the others are in ibv_query_device.
constexpr uint32_t kMaxSegments = 16;
constexpr uint32_t kMaxReadSegments = 8;
constexpr uint32_t kMaxInline = 256;
// The size of all requests that a pair's send queue may hold, each with its segments and inline
// bytes.
constexpr uint64_t kSendQueueBytes = 1 << 20;

uint32_t PowerOfTwo(uint32_t least);

// A queue of events behind a descriptor: the pipe holds one byte for each event.
class EventPipe {
 public:
  EventPipe();
  ~EventPipe();
  EventPipe(const EventPipe&) = delete;
  EventPipe& operator=(const EventPipe&) = delete;

  int reading_end() const { return ends_[0]; }
  void Push(void* about, void* event);
  // Waits for an event, in the way in which `fd` waits, which is the reading end or a copy of it.
  // Null: see errno. `taken` is called with the event before anybody could forget it.
  void* Pop(int fd, void (*taken)(void* event) = nullptr);
  // Removes the events about this object, and returns them to the caller, who owns them. A reader
  // of their bytes finds no event.
  std::vector<void*> Forget(void* about);

 private:
  int ends_[2];
  Mutex mutex_;
  std::deque<std::pair<void*, void*>> events_ ABSL_GUARDED_BY(mutex_);
};

// An object that asynchronous events are about.
struct Notified {
  std::atomic<int> unacknowledged{0};  // events that were read
};

// The existing objects of one kind.
template <typename Object>
class Existence {
 public:
  void Add(Object* object) {
    MutexLock lock(&mutex_);
    objects_.insert(object);
  }
  void Remove(Object* object) {
    MutexLock lock(&mutex_);
    objects_.erase(object);
  }
  template <typename Call>
  void ForEach(Call call) {
    MutexLock lock(&mutex_);
    for (Object* object : objects_) call(*object);
  }

 private:
  Mutex mutex_;
  std::set<Object*> objects_ ABSL_GUARDED_BY(mutex_);
};
template <typename Object>
Existence<Object>& Existing() {
  static Existence<Object>* const existence = new Existence<Object>;
  return *existence;
}

struct CompletionChannel : ibv_comp_channel {
  EventPipe events;
  std::atomic<int> queues{0};  // those not destroyed
};

// As with libmlx5: bytes of a message, or of a read's answer, that lie in the completion until it
// is polled, and the place to which they go then. No key is checked.
constexpr uint32_t kMostCarried = 32;
struct Carried {
  char bytes[kMostCarried];
  uint32_t length;
  std::vector<ibv_sge> to;  // has room for all of them
  uint32_t place = 0;       // index of the completion, as its queue counts
};

// An object that others are made of. It is not destroyed before them.
struct Used {
  std::atomic<int> users{0};
};

struct Domain : ibv_pd, Used {};

struct MemoryRegion : ibv_mr, Used {};  // used by windows bound to it

struct Window : ibv_mw {
  Mutex mutex;
  MemoryRegion* bound ABSL_GUARDED_BY(mutex) = nullptr;
  uint32_t open ABSL_GUARDED_BY(mutex) = 0;  // the key under which it is bound
  RemoteKeys::Entry entry ABSL_GUARDED_BY(mutex) = RemoteKeys::NewEntry();  // while unbound

  // Binds the window, on the pair `by`, to what `info` says, under this key from now on. A null
  // region unbinds it.
  void Bind(MemoryRegion* region, const ibv_mw_bind_info& info, uint32_t key, const ibv_qp* by);
};

struct CompletionQueue : ibv_cq, Notified, Used {
  std::atomic<int> unacknowledged_completions{0};  // events that were read
  SpinLock lock;
  std::unique_ptr<ibv_wc[]> ring;
  uint32_t mask;
  uint32_t head ABSL_GUARDED_BY(lock) = 0;
  uint32_t tail ABSL_GUARDED_BY(lock) = 0;
  bool armed ABSL_GUARDED_BY(lock) = false;
  std::deque<Carried> carried ABSL_GUARDED_BY(lock);

  // `bytes`: what lies in the completion, or null.
  void Add(const ibv_wc& completion, const Carried* bytes);
  // Moves the bytes that lie in the oldest completion to their place.
  void Unload() ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock);
  // Reports that it has completions, if it is armed.
  void Ring();
};

struct PostedReceive {
  uint64_t id;
  int count;
  ibv_sge segments[kMaxSegments];
};

// The receives of a pair or a shared queue; guarded by its lock.
class ReceiveRing {
 public:
  // Room for at least so many.
  explicit ReceiveRing(uint32_t count);
  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ > mask_; }
  void Put(const ibv_recv_wr& work) {
    PostedReceive& receive = ring_[tail_++ & mask_];
    receive.id = work.wr_id;
    receive.count = work.num_sge;
    for (int i = 0; i < work.num_sge; ++i) receive.segments[i] = work.sg_list[i];
  }
  // Valid until the next Put.
  const PostedReceive& Take() { return ring_[head_++ & mask_]; }

 private:
  const uint32_t mask_;
  const std::unique_ptr<PostedReceive[]> ring_;
  uint32_t head_ = 0;
  uint32_t tail_ = 0;
};

struct SharedQueue : ibv_srq, Notified, Used {
  explicit SharedQueue(uint32_t count) : receives(count) {}
  SpinLock lock;
  ReceiveRing receives ABSL_GUARDED_BY(lock);
};

struct QueuePair : ibv_qp, Notified {
  explicit QueuePair(uint32_t receive_count) : receives(receive_count) {}
  SpinLock post_lock;
  QueuePair* peer ABSL_GUARDED_BY(post_lock) = nullptr;
  std::atomic<bool> stopped{false};  // nothing posted is executed any more
  SpinLock receive_lock;
  ReceiveRing receives ABSL_GUARDED_BY(receive_lock);
  std::atomic<ibv_qp_state> now{IBV_QPS_RESET};  // the library's own `state` has no lock
  uint32_t max_inline;
  bool carries_messages = false;  // short messages lie in the completion
  bool carries_answers = false;   // so do short answers of reads
  ibv_ece extensions = {};        // what it has, from INIT on what it uses; vendor 0: none
  uint32_t wanted_extensions = ~uint32_t{0};
  uint16_t partition = 0;           // from its state changes, like what follows
  std::atomic<unsigned> access{0};  // what the peer may do, of IBV_ACCESS_*
  uint8_t reads_in = 0;
  uint8_t reads_out = 0;
  bool failed ABSL_GUARDED_BY(receive_lock) = false;
  // Receives of the shared queue that were taken by messages which have not ended.
  std::vector<uint64_t> taken ABSL_GUARDED_BY(receive_lock);

  // Flushes everything that is posted, and whatever will be posted.
  void Fail();
  // Flushes what the pair has taken from a shared queue, and reports that this was all.
  void FlushTaken();
};

// Bits of a mask for ibv_modify_qp that old kernels also set for a pair of InfiniBand, but refuse.
constexpr int kKernelsOwn = 0xe00000;

// The attributes that a pair must get with its change to `state`, as a mask for ibv_modify_qp.
constexpr int AttributesOf(ibv_qp_state state) {
  switch (state) {
    case IBV_QPS_INIT:
      return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    case IBV_QPS_RTR:
      return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    case IBV_QPS_RTS:
      return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
             IBV_QP_MAX_QP_RD_ATOMIC;
    default:
      return IBV_QP_STATE;
  }
}

// Pairs whose FlushTaken is delayed.
class LatePairs {
 public:
  void Add(QueuePair* pair);
  void Remove(QueuePair* pair);
  void FlushAll();

 private:
  Mutex mutex_;
  std::set<QueuePair*> pairs_ ABSL_GUARDED_BY(mutex_);
};
LatePairs& Late();

// A segment of no bytes may have any address.
inline void CopyBytes(void* to, const void* from, size_t bytes) {
  if (bytes != 0) std::memcpy(to, from, bytes);
}
// Carries out a read, and completes it.
void Answer(QueuePair& pair, uint64_t id, const char* from, const ibv_sge* to, int count);

// A read that waits for its answer.
struct HeldRead {
  QueuePair* pair;
  uint64_t id;
  const char* from;
  std::vector<ibv_sge> to;
};
class HeldReads {
 public:
  void Add(HeldRead read);
  void AnswerAll();
  void Flush(QueuePair& pair);

 private:
  SpinLock lock_;
  std::deque<HeldRead> reads_ ABSL_GUARDED_BY(lock_);
};
HeldReads& Held();

// No connection gets this pair any more.
void Unbind(const QueuePair& pair);
void Join(QueuePair& a, QueuePair& b);
void Part(QueuePair& pair);

// A set of local keys of memory.
class OpenKeys {
 public:
  void Add(uint32_t key);
  void Remove(uint32_t key);
  bool Has(uint32_t key);

 private:
  SpinLock lock_;
  std::set<uint32_t> keys_ ABSL_GUARDED_BY(lock_);
};

// The one device, and its asynchronous events.
ibv_context* Verbs();
// A second device, mock1, that nobody can use.
ibv_context* OtherVerbs();
void Push(ibv_event_type type, QueuePair& pair);
// `about`: the object with which the event must be forgotten, or null.
void PushEvent(const ibv_async_event& event, void* about);
void TellIds(Ids which, rdma_cm_event_type type, int status);
// As ibv_create_qp. `carries`: short data lie in completions, as libmlx5 does it unless told
// otherwise.
ibv_qp* MakePair(ibv_pd* domain, ibv_qp_init_attr* wanted, bool carries);
OpenKeys& Regions();
// The keys of memory that peers may write, as iWARP hardware requires it of the sink of a read.
OpenKeys& Sinks();

// `more_of`: the request whose immediate data or invalidated key come with the completion, or null.
// `carried`: what lies in the completion, or null.
void Complete(ibv_cq* queue, const QueuePair& pair, uint64_t id, ibv_wc_opcode opcode,
              ibv_wc_status status, uint32_t bytes, const ibv_send_wr* more_of,
              const Carried* carried = nullptr);

// The state of mishaps.h.
struct Mishaps {
  std::atomic<int> failing_registrations{0};
  std::atomic<int> change{0};  // a Change
  std::atomic<bool> reuse_keys{false};
  std::atomic<uint32_t> last_freed_key{0};
  std::atomic<bool> swallow{false};
  std::atomic<bool> endless_ringing{false};
  std::atomic<int> most_shown{INT_MAX};
  std::atomic<int> failing_work{0};
  std::atomic<int> work_status{0};  // IBV_WC_SUCCESS: none fails
  std::atomic<int> work_before{0};
  std::atomic<int> large_keys{0};
  std::atomic<int> large_until_back{0};
  std::atomic<int> missed_neighbours{0};
  std::atomic<int> missed_at_open{0};
  std::atomic<bool> held_opens{false};
  std::atomic<bool> held_established{false};
  std::atomic<int> missed_hosts{0};
  std::atomic<int> stale_connections{0};
  std::atomic<int> stale_answers{0};
  std::atomic<int> hung_up_accepts{0};
  std::atomic<uint32_t> spoken_vendor{0};
  std::atomic<uint32_t> spoken_options{0};
  std::atomic<bool> no_extensions{false};
  std::atomic<bool> untold_reads{false};
  std::atomic<bool> second_port{false};
  std::atomic<bool> elsewhere{false};
  std::atomic<int> lost_disconnects{0};
  std::atomic<int> stuck_messages{0};
  std::atomic<int> spare_regions{-1};  // -1: any number
  std::atomic<int> spare_pairs{-1};    // likewise
  std::atomic<int> pair_error{0};
  std::atomic<int> attributes_error{0};
  std::atomic<int> accept_error{0};
  std::atomic<int> taken_before_refusal{-1};
  std::atomic<int> refused_receives{0};
  std::atomic<void (*)()> making_memory{nullptr};
  std::atomic<bool> late_flushes{false};
  std::atomic<int> lost_confirmations{0};
  std::atomic<bool> held_pairs{false};
  std::atomic<bool> held_reads{false};
  std::atomic<bool> held_routes{false};
  std::atomic<bool> refusing{false};
  std::atomic<bool> kept_queues{false};
};
inline constinit Mishaps mishaps;

// The state of asked.h.
struct Asked {
  std::atomic<int> access{0};
  std::atomic<unsigned> peer_access{0};
  std::atomic<int> delay{0};
  std::atomic<int> read{-1};
  std::atomic<int> read_segments{-1};
  std::atomic<int> partition{-1};
  std::atomic<int> reads_in{-1};
  std::atomic<int> reads_out{-1};
  std::atomic<uint32_t> extensions{0};
  std::atomic<uint32_t> agreed_extensions{0};
  std::atomic<uint32_t> used_extensions{0};
  std::atomic<bool> crossed_reads{false};
  std::atomic<int> changes{0};
  std::atomic<int> inline_segments{0};
  std::atomic<uint64_t> inline_address{0};
  std::atomic<bool> fenced_bind{false};
  std::atomic<uint32_t> invalidated{0};
  std::atomic<bool> stale_segment{false};
  std::atomic<int> completion_queues{0};
  std::atomic<int> empty_writes{0};
  std::atomic<int> arms{0};
  std::atomic<int> endless_calls{0};
};
inline constinit Asked asked;

}  // namespace viaduct::rdma_mock

#endif  // VIADUCT_TESTS_RDMA_MOCK_OBJECTS_H_
