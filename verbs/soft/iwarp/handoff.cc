#include "verbs/soft/iwarp/handoff.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <unordered_map>
#include <utility>

#include "verbs/base/accept.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/soft/fd_datagram.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/rendezvous.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr char kService[] = "viaduct-iwarp";
constexpr std::array<uint8_t, 4> kMagic = {'V', 'U', 'H', '1'};
constexpr size_t kMaxNote = 64;
constexpr uint8_t kTaken = 1;
constexpr uint8_t kNotTaken = 0;
constexpr Nanos kVisitTime = 5'000'000'000;
constexpr size_t kMaxVisitors = 64;
constexpr size_t kMaxBytes = kMpaMaxFrameSize;

// The name of the other end of a connected TCP socket; port 0: it is none, or none any more.
SocketName PeerOfTcp(int fd) {
  const auto option = [fd](int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &length) == 0 ? value : -1;
  };
  const int domain = option(SO_DOMAIN);
  const bool tcp = (domain == AF_INET || domain == AF_INET6) && option(SO_TYPE) == SOCK_STREAM &&
                   option(SO_PROTOCOL) == IPPROTO_TCP && option(SO_ACCEPTCONN) == 0;
  return tcp ? PeerEnd(fd) : SocketName();
}

}  // namespace

// Lives on the loop; the handlers of its sockets keep it alive until Stop.
class HandOffListener::Core : public std::enable_shared_from_this<HandOffListener::Core> {
 public:
  Core(EventLoop& loop, Socket socket, Nanos silence, Ask ask, Take take)
      : loop_(loop),
        silence_(silence),
        socket_(std::move(socket)),
        ask_(std::move(ask)),
        take_(std::move(take)) {}

  absl::Status Watch() {
    return loop_.Watch(socket_.get(), 0, [self = shared_from_this()](uint32_t) { self->Accept(); });
  }

  // Any thread.
  void Start() { loop_.SetEvents(socket_.get(), EPOLLIN); }

  // On the loop, or anywhere if Start was never called.
  void Stop() {
    stopped_ = true;
    loop_.Unwatch(socket_.get());
    socket_.Reset();
    if (pause_ != 0) loop_.Cancel(pause_);
    while (!visitors_.empty()) Drop(visitors_.begin()->first);
    ask_ = nullptr;
    take_ = nullptr;
  }

  EventLoop& loop() { return loop_; }

 private:
  struct Visitor {
    Socket socket;
    std::optional<std::vector<uint8_t>> note;  // of a request that will be taken
    Socket spare;                              // reserves a descriptor for the request's socket
    EventLoop::TimerId timer = 0;
  };

  // One per call: the epoll is level-triggered and calls again.
  void Accept() {
    auto socket = AcceptAt<Socket>(socket_.get());
    if (!socket.valid()) {
      if (!IsNobody(errno)) Pause();
      return;
    }
    if (!TrustedPeer(socket.get()).has_value() || visitors_.size() >= kMaxVisitors) return;
    const int fd = socket.get();
    const auto self = shared_from_this();
    if (!loop_.Watch(fd, EPOLLIN | EPOLLRDHUP, [self, fd](uint32_t) { self->Read(fd); }).ok()) {
      return;
    }
    Visitor& visitor = visitors_[fd];
    visitor.socket = std::move(socket);
    visitor.timer = loop_.RunAt(loop_.Now() + kVisitTime, [self, fd] { self->Drop(fd); });
  }

  // The listening socket stays readable: try again later.
  void Pause() {
    if (pause_ != 0) return;
    loop_.SetEvents(socket_.get(), 0);
    pause_ = loop_.RunAt(loop_.Now() + kAcceptPause, [self = shared_from_this()] {
      self->pause_ = 0;
      self->loop_.SetEvents(self->socket_.get(), EPOLLIN);
    });
  }

  void Read(int fd) {
    const auto self = shared_from_this();
    const auto found = visitors_.find(fd);
    if (found == visitors_.end()) return;
    found->second.spare.Reset();
    std::optional<Datagram> datagram = ReceiveDatagram(fd, kMaxBytes);
    if (!datagram.has_value() && errno == EAGAIN) return;
    if (!datagram.has_value() || datagram->bytes.empty()) return Drop(fd);
    if (!found->second.note.has_value()) {
      if (!Asked(found->second, *datagram)) Drop(fd);
      return;
    }
    std::vector<uint8_t> note = *std::move(found->second.note);
    Drop(fd);
    Given(*std::move(datagram), std::move(note));
  }

  // False: the request is not taken, and the visit is over.
  bool Asked(Visitor& visitor, const Datagram& datagram) {
    if (!datagram.fds.empty() || datagram.bytes.size() > kMagic.size() + kMaxNote ||
        datagram.bytes.size() < kMagic.size() ||
        !std::equal(kMagic.begin(), kMagic.end(), datagram.bytes.begin())) {
      return false;
    }
    std::vector<uint8_t> note(datagram.bytes.begin() + kMagic.size(), datagram.bytes.end());
    const Ask ask = ask_;  // it may destroy the listener, and the visitor with it
    bool taken = ask(note);
    if (stopped_) return false;
    // The giver lets go of its socket, and a socket that finds no descriptor here is lost.
    visitor.spare =
        OpenHighAs<Socket>([&visitor] { return fcntl(visitor.socket.get(), F_DUPFD_CLOEXEC, 0); });
    taken = taken && visitor.spare.valid();
    const uint8_t answer = taken ? kTaken : kNotTaken;
    if (!SendDatagram(visitor.socket.get(), {&answer, 1}, {})) return false;
    if (taken) visitor.note = std::move(note);
    return taken;
  }

  void Given(Datagram datagram, std::vector<uint8_t> note) {
    auto request = std::make_unique<MpaParser>(MpaKind::kRequest);
    const size_t taken = request->Feed(datagram.bytes);
    const SocketName peer = datagram.fds.empty() ? SocketName() : PeerOfTcp(datagram.fds[0].get());
    if (taken != datagram.bytes.size() || request->state() != MpaParser::State::kComplete ||
        request->frame().markers || peer.port == 0) {
      Log(LogLevel::kWarn, "iwarp: a local process handed over something that is no request");
      return;
    }
    // The giver may keep a copy and undo both settings: hence MSG_DONTWAIT wherever a socket is
    // used, and an owner that closes elsewhere.
    GivenFd& given = datagram.fds[0];
    fcntl(given.get(), F_SETFL, O_NONBLOCK);
    const linger at_once = {};
    setsockopt(given.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    Socket socket(GivenFd(MoveHigh(given.Release())));
    SetConnectionOptions(socket.get(), silence_);
    const Take take = take_;  // it may destroy the listener
    if (stopped_) return;
    take(ReceivedRequest{std::move(socket), std::move(request), peer}, std::move(note));
  }

  void Drop(int fd) {
    const auto found = visitors_.find(fd);
    if (found == visitors_.end()) return;
    loop_.Cancel(found->second.timer);
    loop_.Unwatch(fd);
    visitors_.erase(found);
  }

  EventLoop& loop_;
  const Nanos silence_;
  Socket socket_;
  Ask ask_;
  Take take_;
  bool stopped_ = false;
  EventLoop::TimerId pause_ = 0;
  std::unordered_map<int, Visitor> visitors_;
};

absl::StatusOr<std::unique_ptr<HandOffListener>> HandOffListener::Open(EventLoop& loop,
                                                                       uint16_t port, Nanos silence,
                                                                       Ask ask, Take take) {
  absl::StatusOr<Socket> listening = ListenAt<Socket>(kService, port);
  if (absl::IsAlreadyExists(listening.status())) {
    Log(LogLevel::kInfo, listening.status().message());
  }
  if (!listening.ok()) return listening.status();
  auto core =
      std::make_shared<Core>(loop, *std::move(listening), silence, std::move(ask), std::move(take));
  // Made before the core is watched: from then on the loop keeps the core until it is stopped.
  std::unique_ptr<HandOffListener> listener(new HandOffListener(core));
  absl::Status watched = core->Watch();
  if (!watched.ok()) return watched;
  return listener;
}

void HandOffListener::Start() {
  started_ = true;
  core_->Start();
}

HandOffListener::~HandOffListener() {
  if (!started_) {
    core_->Stop();
  } else {
    core_->loop().RunAndWait([this] { core_->Stop(); });
  }
}

bool HasHandOffListener(uint16_t port) { return IsServedAt(kService, port); }

absl::StatusOr<Socket> AskToTake(uint16_t port, std::span<const uint8_t> note, Deadline deadline) {
  absl::StatusOr<Socket> channel = DialToAsk<Socket>(kService, port);
  if (!channel.ok()) return channel.status();
  std::vector<uint8_t> question(kMagic.begin(), kMagic.end());
  question.insert(question.end(), note.begin(), note.end());
  std::optional<Datagram> answer;
  if (SendDatagram(channel->get(), question, {}) && AwaitInput(channel->get(), deadline)) {
    answer = ReceiveDatagram(channel->get(), kMaxBytes);
  }
  if (!answer.has_value() || answer->bytes.empty()) {
    return absl::UnavailableError("who is there does not answer");
  }
  if (answer->bytes != std::vector<uint8_t>{kTaken}) {
    return absl::NotFoundError("nobody there takes the request");
  }
  return channel;
}

absl::Status HandOver(uint16_t port, std::span<const uint8_t> note, Deadline deadline,
                      const MpaParser& request, const Socket& socket) {
  const absl::StatusOr<Socket> channel = AskToTake(port, note, deadline);
  if (!channel.ok()) return channel.status();
  if (!SendDatagram(channel->get(), request.bytes(), {socket.get()})) {
    return absl::NotFoundError("nobody there takes the request any more");
  }
  return absl::OkStatus();
}

}  // namespace viaduct::verbs::iwarp
