#include "tests/rdma_mock/posting.h"

#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/functional/function_ref.h"
#include "tests/rdma_mock/failures.h"
#include "tests/rdma_mock/objects.h"

namespace viaduct::rdma_mock {
namespace {

void Copy(const PostedReceive& posted, PostedReceive* to) {
  to->id = posted.id;
  to->count = posted.count;
  for (int i = 0; i < posted.count; ++i) to->segments[i] = posted.segments[i];
}

bool Take(ReceiveRing& ring, PostedReceive* receive) {
  if (ring.empty()) return false;
  Copy(ring.Take(), receive);
  return true;
}

bool TakeShared(SharedQueue& queue, PostedReceive* receive) {
  SpinLockHolder guard(&queue.lock);
  return Take(queue.receives, receive);
}

// A key of no region: InfiniBand's reserved key with index 0xffffff.
constexpr uint32_t kNobodysKey = 0xffffff00;

// Only mlx5 checks whether there is such a region.
bool IsOfMemory(uint32_t key) { return key != kNobodysKey && (!IsMlx5() || Regions().Has(key)); }

// Copies the message to where the receive says.
ibv_wc_status Place(const ibv_send_wr& work, const PostedReceive& receive) {
  int at = 0;
  uint32_t offset = 0;
  for (int i = 0; i < work.num_sge; ++i) {
    const char* from = reinterpret_cast<const char*>(work.sg_list[i].addr);
    for (uint32_t left = work.sg_list[i].length; left != 0;) {
      if (at == receive.count) return IBV_WC_LOC_LEN_ERR;
      const ibv_sge& to = receive.segments[at];
      if (!IsOfMemory(to.lkey)) [[unlikely]]
        return IBV_WC_LOC_PROT_ERR;
      const uint32_t piece = left < to.length - offset ? left : to.length - offset;
      CopyBytes(reinterpret_cast<char*>(to.addr) + offset, from, piece);
      from += piece;
      left -= piece;
      offset += piece;
      if (offset == to.length) {
        ++at;
        offset = 0;
      }
    }
  }
  return IBV_WC_SUCCESS;
}

// As rxe counts it (Linux 6.1), where 2 GiB are less than nothing.
int32_t RoomOf(const PostedReceive& receive) {
  uint32_t room = 0;
  for (int i = 0; i < receive.count; ++i) room += receive.segments[i].length;
  return static_cast<int32_t>(room);
}

// Whether the message stays in the completion of the receive, which was posted to `peer`.
bool IsCarried(const QueuePair& peer, const PostedReceive& receive, uint32_t bytes) {
  if (!peer.carries_messages || bytes > kMostCarried) [[likely]]
    return false;
  return static_cast<int32_t>(bytes) <= RoomOf(receive);
}

Carried Carry(const ibv_send_wr& work, const PostedReceive& receive) {
  Carried carried = {
      .bytes = {}, .length = 0, .to = {receive.segments, receive.segments + receive.count}};
  for (int i = 0; i < work.num_sge; ++i) {
    const ibv_sge& from = work.sg_list[i];
    CopyBytes(carried.bytes + carried.length, reinterpret_cast<const char*>(from.addr),
              from.length);
    carried.length += from.length;
  }
  return carried;
}

// The next receive of `peer` takes the message.
ibv_wc_status Receive(QueuePair& peer, const ibv_send_wr& work, bool write, uint32_t bytes) {
  PostedReceive receive;
  {
    SpinLockHolder guard(&peer.receive_lock);
    if (peer.failed) return IBV_WC_RNR_RETRY_EXC_ERR;
    if (peer.srq != nullptr) {
      if (!TakeShared(*static_cast<SharedQueue*>(peer.srq), &receive)) {
        return IBV_WC_RNR_RETRY_EXC_ERR;
      }
      if (mishaps.stuck_messages > 0) {
        --mishaps.stuck_messages;
        peer.taken.push_back(receive.id);
        return IBV_WC_SUCCESS;
      }
    } else if (!Take(peer.receives, &receive)) {
      return IBV_WC_RNR_RETRY_EXC_ERR;
    }
  }
  std::optional<Carried> carried;
  ibv_wc_status status = FailedStatus(
      "a receive", nullptr, {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_QP_OP_ERR});
  if (status != IBV_WC_SUCCESS) {
    write = true;  // nothing lands
  } else if (!write && IsCarried(peer, receive, bytes)) {
    carried = Carry(work, receive);
  } else if (!write) {
    status =
        static_cast<int32_t>(bytes) <= RoomOf(receive) ? Place(work, receive) : IBV_WC_LOC_LEN_ERR;
  }
  const bool more = work.opcode != IBV_WR_SEND;
  Complete(peer.recv_cq, peer, receive.id, write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV, status,
           bytes, more ? &work : nullptr, carried.has_value() ? &*carried : nullptr);
  return status == IBV_WC_SUCCESS ? IBV_WC_SUCCESS : IBV_WC_REM_INV_REQ_ERR;
}

bool IsOver(QueuePair& pair) {
  SpinLockHolder guard(&pair.post_lock);
  return pair.peer == nullptr;
}

constexpr uint64_t kMlx5LongestWindow = uint64_t{1} << 31;

// Whether the bind is valid as its poster sees the window: the keys count up.
bool Bound(const ibv_send_wr& work) {
  const ibv_mw& window = *work.bind_mw.mw;
  const ibv_mr* const region = work.bind_mw.bind_info.mr;
  return work.bind_mw.rkey == ibv_inc_rkey(window.rkey) && region != nullptr &&
         region->pd == window.pd && (Remote().Find(region->rkey).access & IBV_ACCESS_MW_BIND) != 0;
}

// siw does not check this.
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

// Calls `move` with the memory of the peer that the request names. False: it may not be accessed in
// this way.
bool ReachPeer(QueuePair& pair, const ibv_send_wr& work, uint32_t bytes, unsigned access,
               absl::FunctionRef<void(char*)> move) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pair.post_lock) {
  QueuePair& peer = *pair.peer;
  bool open = (peer.access & access) == access;
  // siw checks no right of the pair, and no right to read.
  if (IsSiw()) {
    open = true;
    access &= ~unsigned{IBV_ACCESS_REMOTE_READ};
  }
  const auto& [address, key] = work.wr.rdma;
  return (open || bytes == 0) && Remote().Use(peer, key, address, bytes, access, move);
}

// The peer's pair stops, and then this pair stops too.
ibv_wc_status Refused(QueuePair& pair) ABSL_EXCLUSIVE_LOCKS_REQUIRED(pair.post_lock) {
  pair.stopped = pair.peer->stopped = true;
  Push(IBV_EVENT_QP_ACCESS_ERR, *pair.peer);
  pair.peer->Fail();
  return IBV_WC_REM_ACCESS_ERR;
}

void Write(const ibv_send_wr& work, char* to) {
  for (int i = 0; i < work.num_sge; ++i) {
    CopyBytes(to, reinterpret_cast<const char*>(work.sg_list[i].addr), work.sg_list[i].length);
    to += work.sg_list[i].length;
  }
}

void Perform(QueuePair& pair, const ibv_send_wr& work)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(pair.post_lock) {
  const uint32_t bytes = BytesOf(work);
  ibv_wc_status status = IBV_WC_SUCCESS;
  ibv_wc_opcode opcode = IBV_WC_SEND;
  const bool immediate =
      work.opcode == IBV_WR_SEND_WITH_IMM || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
  if (pair.peer == nullptr || pair.stopped) {
    status = IBV_WC_WR_FLUSH_ERR;
  } else if ((status = FailedStatus("a request of the send queue", &work,
                                    {IBV_WC_RETRY_EXC_ERR, IBV_WC_REM_OP_ERR,
                                     IBV_WC_LOC_PROT_ERR})) != IBV_WC_SUCCESS) {
    pair.stopped = true;
  } else if (immediate && IsIwarp()) {
    status = IBV_WC_LOC_QP_OP_ERR;
  } else if (work.opcode == IBV_WR_RDMA_READ && work.num_sge > static_cast<int>(kMaxReadSegments)) {
    status = IBV_WC_LOC_QP_OP_ERR;
  } else if (work.opcode == IBV_WR_RDMA_READ && !SinksAreOpen(work)) {
    status = IBV_WC_LOC_PROT_ERR;
  } else if (work.opcode == IBV_WR_SEND || work.opcode == IBV_WR_SEND_WITH_IMM) {
    status = Receive(*pair.peer, work, false, bytes);
  } else if (work.opcode == IBV_WR_SEND_WITH_INV) {
    const uint32_t key = IsSiw() ? work.wr.rdma.rkey : work.invalidate_rkey;  // as libsiw
    asked.invalidated = key;
    status =
        Remote().Close(*pair.peer, key) ? Receive(*pair.peer, work, false, bytes) : Refused(pair);
  } else if (work.opcode == IBV_WR_RDMA_READ) {
    asked.read = static_cast<int>(bytes);
    asked.read_segments = work.num_sge;
    const auto answer = [&](const char* from) {
      if (mishaps.held_reads) [[unlikely]] {
        return Held().Add({&pair, work.wr_id, from, {work.sg_list, work.sg_list + work.num_sge}});
      }
      Answer(pair, work.wr_id, from, work.sg_list, work.num_sge);
    };
    if (ReachPeer(pair, work, bytes, IBV_ACCESS_REMOTE_READ, answer)) return;
    status = Refused(pair);
  } else if (work.opcode == IBV_WR_RDMA_WRITE || work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
    opcode = IBV_WC_RDMA_WRITE;
    if (work.num_sge == 0) ++asked.empty_writes;
    if (!ReachPeer(pair, work, bytes, IBV_ACCESS_REMOTE_WRITE,
                   [&](char* to) { Write(work, to); })) {
      status = Refused(pair);
    } else if (work.opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
      status = Receive(*pair.peer, work, true, bytes);
    }
  } else if (work.opcode == IBV_WR_BIND_MW) {
    opcode = IBV_WC_BIND_MW;
    asked.fenced_bind = (work.send_flags & IBV_SEND_FENCE) != 0;
    if (Bound(work)) {
      const bool some = work.bind_mw.bind_info.length != 0;
      static_cast<Window*>(work.bind_mw.mw)
          ->Bind(some ? static_cast<MemoryRegion*>(work.bind_mw.bind_info.mr) : nullptr,
                 work.bind_mw.bind_info, work.bind_mw.rkey, &pair);
    } else {
      status = IBV_WC_MW_BIND_ERR;
    }
  } else {
    status = IBV_WC_REM_INV_REQ_ERR;
  }
  Complete(pair.send_cq, pair, work.wr_id, opcode, status, bytes, nullptr);
  if (pair.stopped) [[unlikely]]
    pair.Fail();
}

}  // namespace

void CallDriver(const ibv_context& context) {
  const ssize_t written = write(context.cmd_fd, "", 1);
  static_cast<void>(written);
}

int PostSend(ibv_qp* handle, ibv_send_wr* work, ibv_send_wr** bad) {
  QueuePair& pair = *static_cast<QueuePair*>(handle);
  SpinLockHolder guard(&pair.post_lock);
  if (IsMlx5() && work->opcode == IBV_WR_BIND_MW &&
      work->bind_mw.bind_info.length > kMlx5LongestWindow) [[unlikely]] {
    *bad = work;
    return EOPNOTSUPP;  // as libmlx5
  }
  if (pair.peer == nullptr && mishaps.swallow) [[unlikely]]
    return 0;
  if (pair.peer == nullptr && mishaps.refusing) [[unlikely]] {
    *bad = work;
    return EINVAL;
  }
  if (const int error = ErrorOf("ibv_post_send", {ENOMEM, EINVAL, EIO}); error != 0) [[unlikely]] {
    *bad = work;
    return error;
  }
  if (IsSiw()) CallDriver(*handle->context);
  for (; work != nullptr; work = work->next) {
    if (IsSiw() && work->opcode == IBV_WR_RDMA_READ && (work->send_flags & IBV_SEND_FENCE) != 0) {
      *bad = work;
      return EINVAL;
    }
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

int BindWindow(ibv_qp* pair, ibv_mw* window, ibv_mw_bind* bind) {
  ibv_send_wr work = {};
  work.wr_id = bind->wr_id;
  work.opcode = IBV_WR_BIND_MW;
  work.send_flags = bind->send_flags;
  work.bind_mw.mw = window;
  work.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  work.bind_mw.bind_info = bind->bind_info;
  ibv_send_wr* bad = nullptr;
  if (const int error = PostSend(pair, &work, &bad); error != 0) return error;
  window->rkey = work.bind_mw.rkey;
  return 0;
}

int PostReceive(ibv_qp* handle, ibv_recv_wr* work, ibv_recv_wr** bad) {
  QueuePair& pair = *static_cast<QueuePair*>(handle);
  if (pair.now == IBV_QPS_RESET || (mishaps.refusing && IsOver(pair))) [[unlikely]] {
    *bad = work;
    return EINVAL;
  }
  SpinLockHolder guard(&pair.receive_lock);
  if (const int error = ErrorOf("ibv_post_recv", {ENOMEM, EINVAL, EIO}); error != 0) [[unlikely]] {
    *bad = work;
    return error;
  }
  for (; work != nullptr; work = work->next) {
    if (pair.receives.full() || mishaps.refused_receives > 0) [[unlikely]] {
      if (mishaps.refused_receives > 0) --mishaps.refused_receives;
      *bad = work;
      return ENOMEM;
    }
    if (pair.failed) {
      Complete(pair.recv_cq, pair, work->wr_id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR, 0, nullptr);
    } else {
      pair.receives.Put(*work);
    }
  }
  return 0;
}

int PostSharedReceive(ibv_srq* handle, ibv_recv_wr* work, ibv_recv_wr** bad) {
  SharedQueue& queue = *static_cast<SharedQueue*>(handle);
  SpinLockHolder guard(&queue.lock);
  if (const int error = ErrorOf("ibv_post_srq_recv", {ENOMEM, EINVAL, EIO}); error != 0)
      [[unlikely]] {
    *bad = work;
    return error;
  }
  for (; work != nullptr; work = work->next) {
    if (queue.receives.full()) {
      *bad = work;
      return ENOMEM;
    }
    queue.receives.Put(*work);
  }
  return 0;
}

int PollCq(ibv_cq* handle, int n, ibv_wc* out) {
  CompletionQueue& queue = *static_cast<CompletionQueue*>(handle);
  if (const int most = mishaps.most_shown; most < n) [[unlikely]] {
    if (most < 0) return -1;
    n = most;
  }
  SpinLockHolder guard(&queue.lock);
  int count = 0;
  while (count < n && queue.head != queue.tail) {
    if (!queue.carried.empty()) [[unlikely]]
      queue.Unload();
    out[count++] = queue.ring[queue.head++ & queue.mask];
  }
  return count;
}

int RequestNotify(ibv_cq* handle, int) {
  CompletionQueue& queue = *static_cast<CompletionQueue*>(handle);
  ++asked.arms;
  {
    SpinLockHolder guard(&queue.lock);
    queue.armed = true;
  }
  if (mishaps.endless_ringing) [[unlikely]]
    queue.Ring();
  return 0;
}

}  // namespace viaduct::rdma_mock
