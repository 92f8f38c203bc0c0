// The socket of a pair of processes, and the data path's marks and bells. What the messages do to
// connections: peer_connections.cc.
#include "verbs/soft/shm/peer.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <utility>

#include "absl/numeric/bits.h"
#include "verbs/base/log.h"
#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/host.h"

namespace viaduct::verbs::shm {
namespace {

constexpr int kMessagesPerTurn = 64;

Fd NewEventFd() { return MoveHigh(Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))); }

uint64_t RandomToken() {
  uint64_t token = 0;
  while (getrandom(&token, sizeof token, 0) != sizeof token) {
  }
  return token;
}

// A peer's descriptor as a bell: ringing it must not block, and writing to a pipe or a socket could
// raise SIGPIPE. An eventfd is no file of any type.
bool MakeBell(const Fd& fd) {
  struct stat status;
  return fstat(fd.get(), &status) == 0 && (status.st_mode & S_IFMT) == 0 &&
         fcntl(fd.get(), F_SETFL, O_NONBLOCK) == 0;
}

}  // namespace

Peer::Peer(Host& host, EventLoop& loop, int side, Fd socket, pid_t pid,
           std::shared_ptr<Arena> arena)
    : host_(host),
      loop_(loop),
      side_(side),
      pid_(pid),
      arena_(std::move(arena)),
      pool_(*arena_, 1 - side),
      socket_(MoveHigh(std::move(socket))),
      marked_links_(std::make_unique<ShmLink*[]>(kConnections)),
      next_id_(side == 0 ? 0 : kConnections / 2),
      id_end_(side == 0 ? kConnections / 2 : kConnections) {}

Peer::~Peer() = default;

// --------------------------------------------------------------------------------- handshake

bool Peer::StartAsCreator() {
  token_ = RandomToken();
  my_event_ = NewEventFd();
  if (!my_event_.valid()) return false;
  const HelloBody body = {token_, RegisterGlobalFence() ? 1u : 0u, 0};
  const int fds[2] = {arena_->fd(), my_event_.get()};
  return SendMessage(socket_.get(), BuildMessage(MessageType::kHello, 0, body), fds) ==
             SocketResult::kDone &&
         Watch();
}

bool Peer::StartAsAcceptor(Message& hello) {
  const auto body = hello.body<HelloBody>();
  if (!MakeBell(hello.fds[1])) return false;
  peer_event_ = MoveHigh(std::move(hello.fds[1]));
  peer_event_fd_.store(peer_event_.get());
  needs_fence_.store(!RegisterGlobalFence() || body->fenced == 0);
  greeted_ = true;
  my_event_ = NewEventFd();
  if (!my_event_.valid()) return false;
  const HelloBody welcome = {body->token, RegisterGlobalFence() ? 1u : 0u, 0};
  const int fds[1] = {my_event_.get()};
  return SendMessage(socket_.get(), BuildMessage(MessageType::kWelcome, 0, welcome), fds) ==
             SocketResult::kDone &&
         Watch();
}

void Peer::OnWelcome(Message& message) {
  const auto body = message.body<HelloBody>();
  if (greeted_ || side_ != 0 || !body.has_value() || message.fds.size() != 1 ||
      !MakeBell(message.fds[0])) {
    return Die();
  }
  peer_event_ = MoveHigh(std::move(message.fds[0]));
  needs_fence_.store(!RegisterGlobalFence() || body->fenced == 0);
  peer_event_fd_.store(peer_event_.get());
  greeted_ = true;
}

bool Peer::Watch() {
  // Without a pidfd (old kernel, another namespace of processes) the hang-up alone tells.
  pidfd_ = MoveHigh(Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0))));
  my_bell().store(kBellEventFd, std::memory_order_seq_cst);
  const std::weak_ptr<Peer> weak = weak_from_this();
  if (!loop_
           .Watch(socket_.get(), EPOLLIN | EPOLLRDHUP,
                  [weak](uint32_t events) {
                    if (auto self = weak.lock()) self->OnSocket(events);
                  })
           .ok() ||
      !loop_
           .Watch(my_event_.get(), EPOLLIN | EPOLLET,
                  [weak](uint32_t) {
                    if (auto self = weak.lock()) self->host_.OnRing();
                  })
           .ok()) {
    return false;
  }
  if (pid_ == getpid() || !pidfd_.valid()) return true;
  return loop_
      .Watch(pidfd_.get(), EPOLLIN,
             [weak](uint32_t) {
               // What it said before it died comes first.
               if (auto self = weak.lock()) self->OnSocket(EPOLLHUP);
             })
      .ok();
}

// ------------------------------------------------------------------------------------ socket

void Peer::OnSocket(uint32_t events) {
  const std::shared_ptr<Peer> self = shared_from_this();
  if ((events & EPOLLOUT) != 0) FlushOutbox();
  for (int i = 0; i < kMessagesPerTurn && !dead_; i++) {
    Message message;
    switch (ReceiveMessage(socket_.get(), &message)) {
      case SocketResult::kDone:
        OnMessage(message);
        continue;
      case SocketResult::kGone:
        Die();
        return;
      case SocketResult::kAgain:
        break;
    }
    if ((events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) != 0) Die();
    return;
  }
}

void Peer::OnMessage(Message& message) {
  if (message.type == MessageType::kWelcome) return OnWelcome(message);
  if (message.connection >= kConnections || !message.fds.empty()) return Die();
  switch (message.type) {
    case MessageType::kRequest:
      return OnRequest(message);
    case MessageType::kAccept:
      return OnAccept(message);
    case MessageType::kReject:
    case MessageType::kRefuse:
    case MessageType::kNotHere:
      return OnRefusal(message);
    case MessageType::kEstablished:
      return OnEstablished(message);
    case MessageType::kClose:
      return OnClose(message);
    case MessageType::kReleased:
      return OnReleased(message);
    default:
      Die();
  }
}

void Peer::Send(std::string message) {
  if (dead_) return;
  outbox_.push_back(std::move(message));
  if (outbox_.size() == 1) FlushOutbox();
}

void Peer::FlushOutbox() {
  while (!outbox_.empty()) {
    switch (SendMessage(socket_.get(), outbox_.front(), {})) {
      case SocketResult::kDone:
        outbox_.pop_front();
        break;
      case SocketResult::kAgain:
        loop_.SetEvents(socket_.get(), EPOLLIN | EPOLLRDHUP | EPOLLOUT);
        return;
      case SocketResult::kGone:
        outbox_.clear();  // the hang-up comes by itself
        return;
    }
  }
  loop_.SetEvents(socket_.get(), EPOLLIN | EPOLLRDHUP);
}

// --------------------------------------------------------------------------- marks and bells

void Peer::MarkPeer(uint32_t id) {
  DirectionBlock& theirs = arena_->direction(1 - side_);
  theirs.leaf[id / 64].fetch_or(uint64_t{1} << (id % 64), std::memory_order_release);
  theirs.summary.fetch_or(uint64_t{1} << (id / 64), std::memory_order_seq_cst);
  if (theirs.bell.load(std::memory_order_seq_cst) == kBellOff) return;
  const uint32_t kind = theirs.bell.exchange(kBellOff, std::memory_order_seq_cst);
  const int saved = errno;
  if ((kind & kBellFutex) != 0) {
    syscall(SYS_futex, &theirs.bell, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  const int event = peer_event_fd_.load(std::memory_order_relaxed);
  if ((kind & kBellEventFd) != 0 && event >= 0) {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then it is readable anyhow.
    [[maybe_unused]] const ssize_t written = write(event, &one, sizeof one);
  }
  errno = saved;
}

bool Peer::CollectMarks() {
  DirectionBlock& mine = arena_->direction(side_);
  if (mine.summary.load(std::memory_order_relaxed) == 0) return false;
  for (uint64_t leaves = mine.summary.exchange(0, std::memory_order_seq_cst); leaves != 0;
       leaves &= leaves - 1) {
    const int leaf = absl::countr_zero(leaves);
    for (uint64_t bits = mine.leaf[leaf].exchange(0, std::memory_order_acquire); bits != 0;
         bits &= bits - 1) {
      const uint32_t id = static_cast<uint32_t>(leaf) * 64 + absl::countr_zero(bits);
      SpinLockHolder holder(&marks_lock_);
      if (ShmLink* link = marked_links_[id]) link->MarkArrived();
    }
  }
  return true;
}

void Peer::Abandon() {
  socket_.Reset();
  pidfd_.Reset();
  my_event_.Reset();
  peer_event_.Reset();
  peer_event_fd_.store(-1);
  arena_->CloseFd();
  for (const auto& [id, link] : links_) {
    if (SoftQueuePair* pair = link->pair()) pair->Abandon();
  }
}

}  // namespace viaduct::verbs::shm
