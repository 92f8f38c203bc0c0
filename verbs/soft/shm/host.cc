// Peers and listeners. Bells and sleeping: host_bells.cc.
#include "verbs/soft/shm/host.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "verbs/base/accept.h"
#include "verbs/base/epoch.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/base/per_process.h"
#include "verbs/soft/rendezvous.h"
#include "verbs/soft/shm/fence.h"

namespace viaduct::verbs::shm {
namespace {

constexpr Nanos kHelloTimeout = 5'000'000'000;
constexpr size_t kMaxHandshakes = 256;
constexpr int kAcceptsPerTurn = 16;
constexpr int kPortTries = 256;
constexpr uint16_t kFirstFreePort = 49152;
constexpr char kService[] = "viaduct";
// Pairs that one process may open with another one. The requester gives out half the numbers of
// each pair, so together they carry as many connections as a device allows.
constexpr int kMostPairs = 65536 / (kConnections / 2);

// Is the listener of a context at `own` also at `asked`? 127.0.1.1, Debian's address for the host's
// own name, counts as 127.0.0.1: nobody else can listen there, since a port has one listener.
bool IsAt(const Address& own, const Address& asked) {
  return asked == own || (asked.IsLoopback() && (!own.IsLoopback() || own == LoopbackOf(own)));
}

}  // namespace

Host& Host::Get(EventLoop& loop) {
  auto& host = PerProcess<Host>::Get(loop);
  RegisterGlobalFence();
  loop.OnExit([](EventLoop&) { PerProcess<Host>::Find()->AnnounceExit(); });
  return host;
}

Host::Host(EventLoop& loop)
    : loop_(loop), peers_(new PeerList), ticker_(loop.NewTicker([this] { return Tick(); })) {}

Host::~Host() { delete peers_.load(); }

void Host::AnnounceExit() {
  const EpochGuard guard;
  for (const std::shared_ptr<Peer>& peer : peers_.load()->peers) peer->AnnounceExit();
}

void Host::AddUser(Nanos silence) {
  silence_.store(silence, std::memory_order_relaxed);
  MutexLock holder(&listeners_mutex_);
  users_++;
}

void Host::RemoveUser() {
  {
    MutexLock holder(&listeners_mutex_);
    --users_;
  }
  LeaveIdlePeers();
}

bool Host::HasUsers() {
  MutexLock holder(&listeners_mutex_);
  return users_ != 0;
}

void Host::LeaveIdlePeers() {
  if (!HasUsers()) leave_errand_.Post(loop_, this);
}

void Host::LeavePeers() {
  std::vector<std::shared_ptr<Peer>> left = peers_.load()->peers;
  std::erase_if(left, [](const auto& peer) { return !peer->idle(); });
  {
    // Before there can be a user again: whoever finds its listener must see that the old pair is
    // left, and Die takes its time.
    MutexLock holder(&listeners_mutex_);
    if (users_ != 0) return;
    for (const std::shared_ptr<Peer>& peer : left) peer->HangUp();
  }
  for (const std::shared_ptr<Peer>& peer : left) peer->Die();
}

// ------------------------------------------------------------------------------------- peers

std::shared_ptr<Peer> Host::FindPeer(pid_t pid) {
  for (const std::shared_ptr<Peer>& peer : peers_.load()->peers) {
    if (peer->pid() == pid && !peer->dead() && peer->HasRoom() &&
        (pid != getpid() || peer->side() == 0)) {
      return peer;
    }
  }
  return nullptr;
}

int Host::CountPeers(pid_t pid, int side) {
  const auto& peers = peers_.load()->peers;
  return static_cast<int>(std::count_if(peers.begin(), peers.end(), [&](const auto& peer) {
    return peer->pid() == pid && peer->side() == side;
  }));
}

void Host::Publish(std::unique_ptr<PeerList> list) {
  list->marks.clear();
  for (const std::shared_ptr<Peer>& peer : list->peers) list->marks.push_back(&peer->my_marks());
  const std::unique_ptr<PeerList> old(peers_.exchange(list.release()));
  EpochSynchronize();  // no poll reads the old one any more
}

void Host::Adopt(std::shared_ptr<Peer> peer) {
  auto list = std::make_unique<PeerList>(*peers_.load());
  list->peers.push_back(std::move(peer));
  Publish(std::move(list));
}

void Host::Forget(Peer& peer) {
  auto list = std::make_unique<PeerList>(*peers_.load());
  std::erase_if(list->peers, [&peer](const auto& other) { return other.get() == &peer; });
  Publish(std::move(list));
}

absl::StatusOr<Descriptor> Host::Dial(uint16_t port, pid_t* pid) {
  return DialTo<Descriptor>(kService, port, pid);
}

bool Host::IsServed(uint16_t port) { return IsServedAt(kService, port); }

absl::Status Host::Place(const std::shared_ptr<ShmLink>& link, Descriptor socket, pid_t pid,
                         absl::Span<const uint8_t> note) {
  std::shared_ptr<Peer> peer = FindPeer(pid);
  // A process that has closed its last adapter and opened one again has left the pair, which the
  // loop may not have noticed yet.
  while (peer != nullptr && peer->HearHangUp()) peer = FindPeer(pid);
  if (peer == nullptr) {
    if (CountPeers(pid, 0) >= kMostPairs) {
      return absl::ResourceExhaustedError("no more shared memory with the process");
    }
    std::shared_ptr<Arena> arena = Arena::Create();
    if (arena == nullptr) return absl::ResourceExhaustedError("no shared memory");
    peer = std::make_shared<Peer>(*this, loop_, 0, std::move(socket), pid, std::move(arena));
    Adopt(peer);
    if (!peer->StartAsCreator() && !peer->HearHangUp()) {
      peer->Die();
      return absl::ResourceExhaustedError("no memory or descriptors to greet the process");
    }
  }
  if (peer->Request(link, note)) return absl::OkStatus();
  return peer->dead() ? absl::NotFoundError("the process has gone")
                      : absl::ResourceExhaustedError("no shared memory for a connection");
}

void Host::Connect(std::shared_ptr<ShmLink> link, Descriptor socket, pid_t pid,
                   const RequestBody& body, std::vector<uint8_t> private_data) {
  // Tasks are copied; descriptors are not.
  auto shared = std::make_shared<Descriptor>(std::move(socket));
  link->wanted = std::make_unique<ShmLink::Wanted>();
  link->wanted->body = body;
  link->wanted->private_data = std::move(private_data);
  loop_.Post([this, link = std::move(link), shared, pid] {
    if (link->cancelled || link->pair() == nullptr) return;
    const absl::Status placed = Place(link, std::move(*shared), pid, {});
    if (placed.ok()) return;
    // Asked again: Place may call sinks, which may destroy the pair.
    SoftQueuePair* const pair = link->pair();
    if (pair == nullptr) return;
    // Without memory or descriptors for this wire, the next one may do.
    if (absl::IsResourceExhausted(placed)) pair->NoteNoResources();
    link->NotHere();
  });
}

void Host::Follow(const std::shared_ptr<ShmLink>& link, uint16_t port,
                  absl::Span<const uint8_t> note) {
  if (link->pair() == nullptr) return;
  ConnectOutcome outcome = ConnectOutcome::kRefused;
  if (link->wanted != nullptr && ++link->wanted->redirections <= kMostHandOffs) {
    link->wanted->body.port = port;
    pid_t pid;
    absl::StatusOr<Descriptor> socket = Dial(port, &pid);
    const absl::Status placed =
        socket.ok() ? Place(link, *std::move(socket), pid, note) : socket.status();
    if (placed.ok()) return;
    if (absl::IsResourceExhausted(placed)) outcome = ConnectOutcome::kNoResources;
  }
  link->FailAttempt(outcome);
}

absl::Status Host::AskToTake(uint16_t port, absl::Span<const uint8_t> note, Deadline deadline) {
  const absl::StatusOr<Descriptor> socket = DialToAsk<Descriptor>(kService, port);
  if (!socket.ok()) return socket.status();
  const RedirectBody body = {port, 0};
  Message answer;
  if (SendMessage(socket->get(), BuildMessage(MessageType::kAsk, 0, body, note), {}) !=
          SocketResult::kDone ||
      !AwaitInput(socket->get(), deadline) ||
      ReceiveMessage(socket->get(), &answer) != SocketResult::kDone) {
    return absl::UnavailableError("who is there does not answer");
  }
  if (answer.type == MessageType::kYes) return absl::OkStatus();
  return absl::NotFoundError("nobody there takes the request");
}

// --------------------------------------------------------------------------------- listening

absl::StatusOr<uint16_t> Host::Listen(uint16_t port) {
  static std::atomic<uint32_t> next_port{0};
  absl::StatusOr<Descriptor> fd = absl::AlreadyExistsError("no free port");
  if (port != 0) {
    fd = ListenAt<Descriptor>(kService, port);
    if (absl::IsAlreadyExists(fd.status())) Log(LogLevel::kInfo, fd.status().message());
  } else {
    for (int i = 0; i < kPortTries && absl::IsAlreadyExists(fd.status()); i++) {
      const uint32_t offset = (static_cast<uint32_t>(getpid()) * 257 + next_port.fetch_add(1));
      port = static_cast<uint16_t>(kFirstFreePort + offset % (65536 - kFirstFreePort));
      fd = ListenAt<Descriptor>(kService, port);
    }
  }
  if (!fd.ok()) return fd.status();
  const int raw = fd->get();
  auto listener = std::make_shared<PortListener>();
  listener->socket = *std::move(fd);
  {
    MutexLock holder(&listeners_mutex_);
    listeners_[port] = listener;
  }
  absl::Cleanup forget = [&] {  // also if memory runs out
    MutexLock holder(&listeners_mutex_);
    listeners_.erase(port);
  };
  absl::Status watched = loop_.Watch(raw, 0, [this, port](uint32_t) { OnAcceptable(port); });
  if (!watched.ok()) return watched;
  std::move(forget).Cancel();
  return port;
}

void Host::StartListening(uint16_t port, const Address& address, ListenerSink* sink) {
  MutexLock holder(&listeners_mutex_);
  PortListener& listener = *listeners_.at(port);
  listener.address = address;
  listener.sink = sink;
  loop_.SetEvents(listener.socket.get(), EPOLLIN);
}

void Host::StopListening(uint16_t port) {
  std::shared_ptr<PortListener> listener;
  {
    MutexLock holder(&listeners_mutex_);
    const auto found = listeners_.find(port);
    if (found == listeners_.end()) return;
    listener = std::move(found->second);
    listeners_.erase(found);
  }
  loop_.Unwatch(listener->socket.get());
  if (listener->sink != nullptr) loop_.Drain();  // waits for a sink call in progress
}

ListenerSink* Host::FindListener(uint16_t port, const Address* to) {
  MutexLock holder(&listeners_mutex_);
  const auto found = listeners_.find(port);
  if (found == listeners_.end()) return nullptr;
  return to == nullptr || IsAt(found->second->address, *to) ? found->second->sink : nullptr;
}

void Host::OnAcceptable(uint16_t port) {
  std::shared_ptr<PortListener> listener;
  {
    MutexLock holder(&listeners_mutex_);
    const auto found = listeners_.find(port);
    if (found == listeners_.end()) return;
    listener = found->second;
  }
  for (int i = 0; i < kAcceptsPerTurn; i++) {
    auto socket = AcceptAt<Descriptor>(listener->socket.get());
    if (!socket.valid()) {
      if (IsNobody(errno)) return;
      loop_.SetEvents(listener->socket.get(), 0);
      loop_.RunAt(loop_.Now() + kAcceptPause, [this, weak = std::weak_ptr(listener)] {
        const auto paused = weak.lock();
        if (paused != nullptr) loop_.SetEvents(paused->socket.get(), EPOLLIN);
      });
      return;
    }
    const std::optional<pid_t> pid = TrustedPeer(socket.get());
    if (pid.has_value() && handshakes_.size() < kMaxHandshakes) {
      StartHandshake(std::move(socket), *pid, port);
    }
  }
}

void Host::StartHandshake(Descriptor socket, pid_t pid, uint16_t port) {
  const int raw = socket.get();
  if (!loop_.Watch(raw, EPOLLIN | EPOLLRDHUP, [this, raw](uint32_t) { OnHello(raw); }).ok()) return;
  Handshake& handshake = handshakes_[raw];
  handshake.socket = std::move(socket);
  handshake.pid = pid;
  handshake.port = port;
  handshake.timer = loop_.RunAt(loop_.Now() + kHelloTimeout, [this, raw] {
    loop_.Unwatch(raw);
    handshakes_.erase(raw);
  });
}

void Host::OnHello(int raw) {
  Message hello;
  const SocketResult received = ReceiveMessage(raw, &hello);
  if (received == SocketResult::kAgain) return;
  // A requester that already has a pair with us only wanted to know who listens, and hangs up.
  loop_.Unwatch(raw);
  auto found = handshakes_.find(raw);
  if (found == handshakes_.end()) return;
  Handshake handshake = std::move(found->second);
  handshakes_.erase(found);
  loop_.Cancel(handshake.timer);
  if (received == SocketResult::kDone && hello.type == MessageType::kAsk) {
    return AnswerAsk(handshake, hello);
  }
  const auto body = hello.body<HelloBody>();
  if (received != SocketResult::kDone || hello.type != MessageType::kHello || !body.has_value() ||
      hello.fds.size() != 1) {
    return;
  }
  if (!HasUsers()) return;  // the last has gone meanwhile, and nobody would drop the new peer
  if (CountPeers(handshake.pid, 1) >= kMostPairs) {
    Log(LogLevel::kWarn, "process ", handshake.pid, " opens too much shared memory");
    return;
  }
  std::shared_ptr<Arena> arena;
  if (handshake.pid == getpid()) {
    // This process is its own peer: one mapping serves both ends.
    for (const std::shared_ptr<Peer>& peer : peers_.load()->peers) {
      if (peer->token() == body->token && peer->side() == 0) arena = peer->shared_arena();
    }
  } else {
    arena = Arena::Open(std::move(hello.fds[0]));
  }
  if (arena == nullptr) {
    Log(LogLevel::kWarn, "a local process offered no usable shared memory");
    return;
  }
  auto peer = std::make_shared<Peer>(*this, loop_, 1, std::move(handshake.socket), handshake.pid,
                                     std::move(arena));
  Adopt(peer);
  if (!peer->StartAsAcceptor(*body)) peer->Die();
}

void Host::AnswerAsk(const Handshake& handshake, const Message& ask) {
  if (!ask.body<RedirectBody>().has_value()) return;
  const absl::Span<const uint8_t> note = ask.tail<RedirectBody>();
  ListenerSink* sink = FindListener(handshake.port);
  const bool taken = note.size() <= kMaxNoteBytes && sink != nullptr && sink->TakesHandOff(note);
  // The socket is fresh: there is room.
  (void)SendMessage(handshake.socket.get(),
                    BuildMessage(taken ? MessageType::kYes : MessageType::kNotHere, 0, {}, {}), {});
}

void Host::InForkChild() {
  g_descriptors.CloseInForkChild();
  parents_ = peers_.exchange(&nobody_);
}

}  // namespace viaduct::verbs::shm
