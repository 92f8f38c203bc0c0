#include "verbs/soft/iwarp/acceptor.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "verbs/base/accept.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/soft/iwarp/linger.h"
#include "verbs/soft/iwarp/mpa_negotiation.h"
#include "verbs/soft/iwarp/startup_io.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr int kFreePortAttempts = 16;

// One socket per address, all on one port. Addresses after the first are skipped if they are not of
// this host.
absl::StatusOr<std::vector<Socket>> BindAll(absl::Span<const Address> addresses, uint16_t port) {
  std::vector<Socket> sockets;
  for (const Address& address : addresses) {
    absl::StatusOr<Socket> socket = ListenOn(address, port);
    if (absl::IsInvalidArgument(socket.status()) && !sockets.empty()) continue;
    if (!socket.ok()) return socket.status();
    if (port == 0) port = LocalEnd(socket->get()).port;
    sockets.push_back(*std::move(socket));
  }
  return sockets;
}

absl::StatusOr<std::vector<Socket>> BindAllRetrying(absl::Span<const Address> addresses,
                                                    uint16_t port) {
  absl::StatusOr<std::vector<Socket>> sockets = BindAll(addresses, port);
  // A free port of the first address may be taken on the next.
  for (int i = 1; port == 0 && absl::IsAlreadyExists(sockets.status()) && i < kFreePortAttempts;
       ++i) {
    sockets = BindAll(addresses, port);
  }
  return sockets;
}

}  // namespace

// Lives on the loop; the handlers of its sockets keep it alive until Stop. From its first event on
// it is in a list of the process, since all acceptors share the limit of half-open connections.
class Acceptor::Core : public std::enable_shared_from_this<Acceptor::Core> {
 public:
  Core(EventLoop& loop, std::vector<Socket> sockets, const AcceptorOptions& options,
       Handler handler)
      : loop_(loop),
        options_(options),
        sockets_(std::move(sockets)),
        handler_(std::move(handler)) {}

  // Any thread, before anything else knows this object.
  absl::Status Watch() {
    for (const Socket& socket : sockets_) {
      auto self = shared_from_this();
      const int fd = socket.get();
      absl::Status status = loop_.Watch(fd, 0, [self, fd](uint32_t) { self->Accept(fd); });
      if (!status.ok()) {
        for (const Socket& watched : sockets_) loop_.Unwatch(watched.get());
        return status;
      }
    }
    return absl::OkStatus();
  }

  // Any thread.
  void Start() {
    for (const Socket& socket : sockets_) loop_.SetEvents(socket.get(), EPOLLIN);
  }

  // On the loop, or anywhere if Start was never called.
  void Stop() {
    stopped_ = true;
    for (const Socket& socket : sockets_) {
      loop_.Unwatch(socket.get());
      // A forked child that has not called exec yet has a copy, which would go on listening.
      shutdown(socket.get(), SHUT_RDWR);
    }
    sockets_.clear();
    if (pause_ != 0) loop_.Cancel(pause_);
    if (timer_ != 0) loop_.Cancel(timer_);
    while (!half_open_.empty()) Drop(half_open_.begin());
    Leave();
    handler_ = nullptr;
  }

  EventLoop& loop() { return loop_; }

 private:
  struct HalfOpen {
    Socket socket;
    Nanos deadline;
    std::unique_ptr<MpaParser> parser;
  };
  using Place = std::list<HalfOpen>::iterator;

  void Enter() {
    if (entered_) return;
    entered_ = true;
    next_ = everyone_;
    if (next_ != nullptr) next_->previous_ = this;
    everyone_ = this;
  }

  void Leave() {
    if (!entered_) return;
    entered_ = false;
    (previous_ == nullptr ? everyone_ : previous_->next_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
    previous_ = next_ = nullptr;
  }

  bool HasPlace() const {
    return half_open_count_ < options_.max_half_open || half_open_.size() < options_.own_places;
  }

  Nanos oldest_since() const { return half_open_.front().deadline - options_.silence; }

  // The acceptor whose oldest half-open connection is the oldest of the process. There is one.
  static Core& Slowest() {
    Core* slowest = nullptr;
    for (Core* core = everyone_; core != nullptr; core = core->next_) {
      if (core->half_open_.empty()) continue;
      if (slowest == nullptr || core->oldest_since() < slowest->oldest_since()) slowest = core;
    }
    return *slowest;
  }

  void Accept(int listening) {
    Enter();
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      if (MustWait()) return;
      Socket socket = OpenHighAs<Socket>([listening] {
        return accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      });
      if (!socket.valid()) {
        if (!IsNobody(errno)) Pause();
        return;  // nobody else, or somebody who is gone again: then the loop calls again
      }
      Admit(std::move(socket));
    }
  }

  // True: no place is free. Accepting goes on when one is, or when the oldest has had its time.
  bool MustWait() {
    if (HasPlace()) return false;
    const Nanos due = Slowest().oldest_since() + options_.patience;
    if (due <= loop_.Now()) return false;
    full_ = true;
    PauseUntil(due);
    return true;
  }

  void Admit(Socket socket) {
    if (!HasPlace()) {
      Core& slowest = Slowest();
      slowest.Drop(slowest.half_open_.begin());
    }
    SetConnectionOptions(socket.get(), options_.silence);
    const int fd = socket.get();
    const Place place = half_open_.insert(
        half_open_.end(), HalfOpen{std::move(socket), loop_.Now() + options_.silence,
                                   std::make_unique<MpaParser>(MpaKind::kRequest)});
    ++half_open_count_;
    auto self = shared_from_this();
    if (!loop_.Watch(fd, EPOLLIN | EPOLLRDHUP, [self, place](uint32_t) { self->Read(place); })
             .ok()) {
      Erase(place);
      return;
    }
    if (timer_ == 0) ArmTimer();
  }

  void Read(Place place) {
    switch (ReceiveFrame(place->socket.get(), place->parser.get())) {
      case FrameProgress::kWaiting:
        return;
      case FrameProgress::kComplete:
        return Complete(place);
      case FrameProgress::kFailed:
        // Whoever speaks the protocol gets an answer.
        if (place->parser->error() == MpaParser::Error::kNoDepths) return Reject(place);
        break;
      case FrameProgress::kClosed:
      case FrameProgress::kReset:
        break;
    }
    Drop(place);
  }

  void Complete(Place place) {
    if (place->parser->frame().markers) return Reject(place);
    // A client that has reset the connection behind its request has no name any more.
    const SocketName peer = PeerEnd(place->socket.get());
    if (peer.port == 0) return Drop(place);
    ReceivedRequest request{std::move(place->socket), std::move(place->parser), peer};
    loop_.Unwatch(request.socket.get());
    Erase(place);
    // The handler may destroy the acceptor.
    const auto self = shared_from_this();
    const Handler handler = handler_;
    if (!stopped_) handler(std::move(request));
  }

  void Reject(Place place) {
    const MpaFrame& request = place->parser->frame();
    const bool enhanced =
        request.depths.has_value() || place->parser->error() == MpaParser::Error::kNoDepths;
    SendFrame(place->socket.get(), MakeReject(request.revision, enhanced));
    Socket socket = std::move(place->socket);
    loop_.Unwatch(socket.get());
    Erase(place);
    CloseBehindPeer(loop_, std::move(socket), kRejectLinger, options_.max_half_open);
  }

  void Drop(Place place) {
    loop_.Unwatch(place->socket.get());
    Erase(place);
  }

  void Erase(Place place) {
    half_open_.erase(place);
    --half_open_count_;
    for (Core* core = everyone_; core != nullptr; core = core->next_) {
      if (!core->full_) continue;
      core->loop_.Cancel(core->pause_);
      core->Resume();
    }
  }

  // The oldest has the earliest deadline: one timer is enough.
  void ArmTimer() {
    if (half_open_.empty()) return;
    auto self = shared_from_this();
    timer_ = loop_.RunAt(half_open_.front().deadline, [self] {
      self->timer_ = 0;
      while (!self->half_open_.empty() && self->half_open_.front().deadline <= self->loop_.Now()) {
        self->Drop(self->half_open_.begin());
      }
      self->ArmTimer();
    });
  }

  // Without descriptors, or where a filter of system calls refuses, a listening socket stays
  // readable: try again later.
  void Pause() {
    if (pause_ != 0) return;
    LogOnce(LogLevel::kWarn, absl::StrCat("iwarp: cannot accept a connection: ", strerror(errno)));
    PauseUntil(loop_.Now() + kAcceptPause);
  }

  void PauseUntil(Nanos when) {
    if (pause_ != 0) return;
    for (const Socket& socket : sockets_) loop_.SetEvents(socket.get(), 0);
    auto self = shared_from_this();
    pause_ = loop_.RunAt(when, [self] { self->Resume(); });
  }

  void Resume() {
    pause_ = 0;
    full_ = false;
    for (const Socket& socket : sockets_) loop_.SetEvents(socket.get(), EPOLLIN);
  }

  EventLoop& loop_;
  const AcceptorOptions options_;
  std::vector<Socket> sockets_;
  Handler handler_;
  bool stopped_ = false;
  std::list<HalfOpen> half_open_;  // oldest first
  EventLoop::TimerId timer_ = 0;
  EventLoop::TimerId pause_ = 0;
  bool full_ = false;  // pause_ waits for a free place

  // Of the process.
  static constinit Core* everyone_;
  static constinit size_t half_open_count_;
  static const AtFork at_fork_;
  bool entered_ = false;  // in the list that begins with everyone_
  Core* previous_ = nullptr;
  Core* next_ = nullptr;
};

constinit Acceptor::Core* Acceptor::Core::everyone_ = nullptr;
constinit size_t Acceptor::Core::half_open_count_ = 0;

// The acceptors that a forked child inherits are the parent's, and the child never runs them.
const AtFork Acceptor::Core::at_fork_(nullptr, nullptr, [] {
  everyone_ = nullptr;
  half_open_count_ = 0;
});

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Open(EventLoop& loop,
                                                         absl::Span<const Address> addresses,
                                                         uint16_t port,
                                                         const AcceptorOptions& options,
                                                         Handler handler) {
  absl::StatusOr<std::vector<Socket>> sockets = BindAllRetrying(addresses, port);
  if (!sockets.ok()) return sockets.status();
  const uint16_t bound = port != 0 ? port : LocalEnd(sockets->front().get()).port;
  if (bound == 0) return absl::ResourceExhaustedError("iwarp: the kernel does not name a port");
  for (const Socket& socket : *sockets) {
    const std::string address = LocalEnd(socket.get()).address.ToString();
    Log(LogLevel::kInfo, "iwarp: listening on ", address, " port ", bound);
  }
  auto core = std::make_shared<Core>(loop, *std::move(sockets), options, std::move(handler));
  // Made before the core is watched: from then on the loop keeps the core until it is stopped.
  std::unique_ptr<Acceptor> acceptor(new Acceptor(core, bound));
  absl::Status status = core->Watch();
  if (!status.ok()) return status;
  return acceptor;
}

void Acceptor::Start() {
  started_ = true;
  core_->Start();
}

Acceptor::~Acceptor() {
  if (!started_) {
    core_->Stop();
  } else {
    core_->loop().RunAndWait([this] { core_->Stop(); });
  }
}

}  // namespace viaduct::verbs::iwarp
