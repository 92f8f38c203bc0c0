// The socket of a pair of processes, and the data path's marks and bells. What the messages do to
// connections: peer_connections.cc.
#include "verbs/soft/shm/peer.h"

#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/numeric/bits.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/base/random.h"
#include "verbs/base/uncancelled.h"
#include "verbs/soft/shm/fence.h"
#include "verbs/soft/shm/host.h"

namespace viaduct::verbs::shm {
namespace {

constexpr int kMessagesPerTurn = 64;
// A peer that keeps to the protocol never has more messages per connection waiting for it.
constexpr size_t kMaxOutbox = 4 * kConnections;

}  // namespace

Peer::Peer(Host& host, EventLoop& loop, int side, Descriptor socket, pid_t pid,
           std::shared_ptr<Arena> arena)
    : host_(host),
      loop_(loop),
      side_(side),
      pid_(pid),
      arena_(std::move(arena)),
      pool_(*arena_, 1 - side),
      socket_(std::move(socket)),
      marked_links_(std::make_unique<ShmLink*[]>(kConnections)),
      next_id_(side == 0 ? 0 : kConnections / 2),
      id_end_(side == 0 ? kConnections / 2 : kConnections) {}

Peer::~Peer() = default;

// --------------------------------------------------------------------------------- handshake

bool Peer::StartAsCreator() {
  token_ = RandomWord();
  const HelloBody body = {token_, RegisterGlobalFence() ? 1u : 0u, 0};
  const int fds[1] = {arena_->fd()};
  const SocketResult sent =
      SendMessage(socket_.get(), BuildMessage(MessageType::kHello, 0, body), fds);
  if (sent == SocketResult::kGone && errno == EPIPE) HangUp();  // it may only have stopped reading
  return sent == SocketResult::kDone && Watch();
}

bool Peer::StartAsAcceptor(const HelloBody& hello) {
  needs_fence_.store(!RegisterGlobalFence() || hello.fenced == 0);
  greeted_ = true;
  const HelloBody welcome = {hello.token, RegisterGlobalFence() ? 1u : 0u, 0};
  return SendMessage(socket_.get(), BuildMessage(MessageType::kWelcome, 0, welcome), {}) ==
             SocketResult::kDone &&
         Watch();
}

void Peer::OnWelcome(Message& message) {
  const auto body = message.body<HelloBody>();
  if (greeted_ || side_ != 0 || !body.has_value()) return Die();
  needs_fence_.store(!RegisterGlobalFence() || body->fenced == 0);
  greeted_ = true;
}

bool Peer::Watch() {
  // Without a pidfd (old kernel, another PID namespace) only the hang-up tells of its death.
  pidfd_ =
      OpenHighAs<Descriptor>([this] { return static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)); });
  my_bell().store(kBellSocket, std::memory_order_seq_cst);
  const std::weak_ptr<Peer> weak = weak_from_this();
  if (!loop_
           .Watch(socket_.get(), EPOLLIN | EPOLLRDHUP,
                  [weak](uint32_t events) {
                    if (auto self = weak.lock()) self->OnSocket(events);
                  })
           .ok()) {
    return false;
  }
  if (pid_ == getpid() || !pidfd_.valid()) return true;
  return loop_
      .Watch(pidfd_.get(), EPOLLIN,
             [weak](uint32_t) {
               // What it sent before it died is read first.
               if (auto self = weak.lock()) self->OnSocket(EPOLLHUP);
             })
      .ok();
}

// ------------------------------------------------------------------------------------ socket

void Peer::OnSocket(uint32_t events) {
  const std::shared_ptr<Peer> self = shared_from_this();
  if ((events & EPOLLOUT) != 0) FlushOutbox();
  ReadMessages(events);
  // After the messages: one of them may have been a Ring, or a Ring found the socket full and was
  // dropped. The bell shows both.
  if (!dead_ && my_bell().load(std::memory_order_seq_cst) == kBellOff) host_.OnRing();
}

void Peer::HangUp() { shutdown(socket_.get(), SHUT_RDWR); }

bool Peer::HearHangUp() {
  pollfd socket = {socket_.get(), POLLRDHUP, 0};
  if (poll(&socket, 1, 0) <= 0) return false;
  while (!dead_) OnSocket(EPOLLHUP);  // nothing more comes
  return true;
}

void Peer::ReadMessages(uint32_t events) {
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
  if (message.connection >= kConnections || !message.fds.empty()) return Die();
  switch (message.type) {
    case MessageType::kWelcome:
      return OnWelcome(message);
    case MessageType::kRing:
      return;  // OnSocket checks the bell
    case MessageType::kRequest:
      return OnRequest(message);
    case MessageType::kAccept:
      return OnAccept(message);
    case MessageType::kReject:
    case MessageType::kRefuse:
    case MessageType::kNotHere:
      return OnRefusal(message);
    case MessageType::kRedirect:
      return OnRedirect(message);
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
  if (outbox_.size() == kMaxOutbox) {
    return HangUp();
  }
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
        return AwaitRoom(true);
      case SocketResult::kGone:
        // The loop sees the hang-up, which need not be the peer's: it may only have stopped
        // reading, or this process may not send any more.
        outbox_.clear();
        return HangUp();
    }
  }
  AwaitRoom(false);
  if (idle()) host_.LeaveIdlePeers();
}

void Peer::AwaitRoom(bool awaits) {
  if (awaits_room_ == awaits) return;
  awaits_room_ = awaits;
  loop_.SetEvents(socket_.get(), EPOLLIN | EPOLLRDHUP | (awaits ? uint32_t{EPOLLOUT} : 0u));
}

// --------------------------------------------------------------------------- marks and bells

void Peer::MarkPeer(uint32_t id) {
  DirectionBlock& theirs = arena_->direction(1 - side_);
  theirs.leaf[id / 64].fetch_or(uint64_t{1} << (id % 64), std::memory_order_release);
  theirs.summary.fetch_or(uint64_t{1} << (id / 64), std::memory_order_seq_cst);
  RingBell();
}

void Peer::RingBell() {
  DirectionBlock& theirs = arena_->direction(1 - side_);
  if (theirs.bell.load(std::memory_order_seq_cst) == kBellOff) return;
  uint32_t kind = theirs.bell.exchange(kBellOff, std::memory_order_seq_cst);
  const int saved = errno;
  // One sleeper collects for all. If nobody sleeps at this bell (any more, yet, or knowing of us),
  // the control thread collects.
  if ((kind & kBellFutex) != 0 &&
      syscall(SYS_futex, &theirs.bell, FUTEX_WAKE, 1, nullptr, nullptr, 0) != 1) {
    kind |= kBellSocket;
  }
  // A Ring that could not be sent is repeated at the next mark, or before that at the next tick.
  if ((kind & kBellSocket) != 0 && !Ring()) {
    theirs.bell.fetch_or(kBellSocket, std::memory_order_seq_cst);
    unrung_.store(true, std::memory_order_release);
    host_.RingAgainSoon();
  }
  errno = saved;
}

void Peer::RingAgain() {
  if (unrung_.exchange(false, std::memory_order_acquire)) RingBell();
}

// Never blocks, whatever the peer does to the socket. A full socket is as good as a Ring: the peer
// has something to read, and checks its bell after that.
bool Peer::Ring() {
  constexpr MessageHeader kMessage = {kMessageMagic, MessageType::kRing, 0, 0, 0};
  return uncancelled::Send(socket_.get(), &kMessage, sizeof kMessage,
                           MSG_DONTWAIT | MSG_NOSIGNAL) >= 0 ||
         !IsShortage(errno);
}

void Peer::CollectMarks() {
  DirectionBlock& mine = arena_->direction(side_);
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
}

}  // namespace viaduct::verbs::shm
