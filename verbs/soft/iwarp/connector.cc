#include "verbs/soft/iwarp/connector.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/soft/iwarp/fpdu_writer.h"
#include "verbs/soft/iwarp/startup_io.h"
#include "verbs/soft/iwarp/tcp.h"
#include "verbs/soft/iwarp/terminate.h"
#include "verbs/soft/iwarp/wire_error.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr Nanos kRedialPause = 100'000'000;

// A loopback source reaches this host only; toward other hosts the kernel chooses the source.
bool BindsSource(const Address& from, const Address& to) {
  return from.family() == to.family() && !from.IsUnspecified() &&
         (!from.IsLoopback() || to.IsLoopback());
}

// Whether the socket is connected to itself, which can happen in TCP if the source port is chosen
// from the range that listeners use.
bool IsItself(int fd, const SocketName& peer) {
  const SocketName local = LocalEnd(fd);
  return local.port == peer.port && local.address == peer.address;
}

int SocketError(int fd) {
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void SendTerminate(int fd, const WireError& error, bool crc) {
  std::array<uint8_t, kMaxTerminateSize> payload;
  const size_t size = EncodeTerminate(error, {}, payload);
  FpduFrame frame;
  FrameFpdu(UntaggedHeader(RdmapOpcode::kTerminate, kFirstSequence, 0, /*last=*/true),
            std::span<const uint8_t>(payload).first(size), {}, crc, &frame);
  iovec parts[] = {{frame.head.data(), frame.head_size}, {frame.tail.data(), frame.tail_size}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = std::size(parts);
  sendmsg(fd, &message,
          MSG_NOSIGNAL | MSG_DONTWAIT);  // best effort: the connection ends here
}

}  // namespace

Connector::Connector(EventLoop& loop, Socket socket, ConnectorOptions options, Handler handler)
    : loop_(loop),
      options_(std::move(options)),
      to_(options_.to),
      handler_(std::move(handler)),
      socket_(std::move(socket)) {}

std::shared_ptr<Connector> Connector::Start(EventLoop& loop, Socket socket,
                                            ConnectorOptions options, Handler handler) {
  std::shared_ptr<Connector> connector(
      new Connector(loop, std::move(socket), std::move(options), std::move(handler)));
  loop.Post([connector] { connector->Dial(); });
  return connector;
}

void Connector::Cancel() {
  CloseSocket();
  handler_ = nullptr;
}

void Connector::CloseSocket() {
  if (timer_ != 0) loop_.Cancel(timer_);
  timer_ = 0;
  if (!socket_.valid()) return;
  loop_.Unwatch(socket_.get());
  socket_.Reset();
}

void Connector::Finish(Answer answer) {
  const auto self = shared_from_this();
  if (timer_ != 0) loop_.Cancel(timer_);
  timer_ = 0;
  answer.heard = heard_;
  if (answer.outcome == Outcome::kConnected) {
    loop_.Unwatch(socket_.get());
    answer.socket = std::move(socket_);
  } else {
    CloseSocket();
  }
  const Handler handler = std::exchange(handler_, nullptr);
  if (handler) handler(std::move(answer));
}

void Connector::Redial() {
  if (!handler_) return;
  connected_ = false;
  socket_ = NewTcpSocket(to_.family());
  if (!socket_.valid()) return OnSocketError(errno);
  Dial();
}

void Connector::Dial() {
  if (!handler_) return;
  if (!socket_.valid()) return Redial();
  const int fd = socket_.get();
  SetConnectionOptions(fd, options_.silence);
  sockaddr_storage storage;
  socklen_t length;
  if (BindsSource(options_.from, to_)) {
    const int on = 1;
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    length = options_.from.ToSockaddr(0, &storage);
    // Where a process may bind nothing (Landlock, systemd's SocketBindDeny), the kernel chooses.
    if (bind(fd, reinterpret_cast<const sockaddr*>(&storage), length) != 0 && errno != EACCES &&
        errno != EPERM) {
      return OnSocketError(errno);
    }
  }
  length = to_.ToSockaddr(options_.port, &storage);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&storage), length) != 0 &&
      errno != EINPROGRESS) {
    // The adapter's address was there a moment ago: what is not available is a source port.
    if (errno == EADDRNOTAVAIL) return Finish({.outcome = Outcome::kNoResources});
    return OnSocketError(errno);
  }
  local_port_ = LocalEnd(fd).port;
  Report();
  const auto self = shared_from_this();
  const absl::Status status =
      loop_.Watch(fd, EPOLLOUT, [self](uint32_t events) { self->OnEvent(events); });
  if (!status.ok()) OnSocketError(ENOMEM);
}

void Connector::Report() {
  if (handler_ && options_.on_progress) options_.on_progress(local_port_, heard_);
}

void Connector::OnEvent(uint32_t events) {
  if (connected_) return OnReply();
  const int error = SocketError(socket_.get());
  if (error != 0) return OnSocketError(error);
  const SocketName peer = PeerEnd(socket_.get());
  if (peer.port != 0) return OnConnected(peer);
  // Neither connected nor failed: before Linux 6.10 an IPv4 ICMP error wakes up the waiter a moment
  // before the socket has the error (ip_icmp_error in tcp_v4_err), and the next event brings it.
  // But a hangup is final.
  if (events & EPOLLHUP) OnSocketError(ECONNABORTED);
}

void Connector::OnConnected(const SocketName& peer) {
  Log(LogLevel::kDebug, "iwarp: connecting to ", to_.ToString(), " port ", options_.port,
      ": heard");
  if (timer_ != 0) loop_.Cancel(std::exchange(timer_, 0));
  connected_ = true;
  heard_ = true;
  Report();
  if (IsItself(socket_.get(), peer)) return Finish({.outcome = Outcome::kNobody});
  if (options_.served_nearer && options_.served_nearer()) {
    return Finish({.outcome = Outcome::kServedNearer});
  }
  request_ = MakeRequest(options_.wish, enhanced_);
  request_.private_data = options_.private_data;
  reply_ = std::make_unique<MpaParser>(MpaKind::kReply);
  if (!SendFrame(socket_.get(), request_)) return OnSocketError(errno);
  loop_.SetEvents(socket_.get(), EPOLLIN | EPOLLRDHUP);
}

void Connector::OnReply() {
  const bool begun = reply_->begun();
  switch (ReceiveFrame(socket_.get(), reply_.get())) {
    case FrameProgress::kWaiting:
      if (!begun && reply_->begun()) {
        const auto self = shared_from_this();
        timer_ = loop_.RunAt(loop_.Now() + options_.reply_time, [self] {
          self->timer_ = 0;
          self->Finish({});
        });
      }
      return;
    case FrameProgress::kReset:
      return OnSocketError(errno);
    case FrameProgress::kClosed:
    case FrameProgress::kFailed:
      return Finish({});
    case FrameProgress::kComplete:
      break;
  }
  const MpaOutcome outcome = EvaluateReply(request_, reply_->frame(), options_.wish);
  Answer answer;
  switch (outcome.kind) {
    case MpaOutcome::Kind::kAccepted:
      answer.outcome = Outcome::kConnected;
      answer.agreement = outcome.agreement;
      answer.reply = std::move(reply_);
      break;
    case MpaOutcome::Kind::kRejected:
      answer.outcome = Outcome::kRejected;
      answer.reply = std::move(reply_);
      break;
    case MpaOutcome::Kind::kBroken:
      // Logged once: a peer is dialled again until the attempt's time is over.
      LogOnce(LogLevel::kWarn, absl::StrCat("iwarp: reply of ", to_.ToString(), " port ",
                                            options_.port, ": ", Describe(outcome.error)));
      // An invalid reply is not answered (RFC 5044 8); a reply that asks too much is.
      if (outcome.error != kBadStartup) {
        SendTerminate(socket_.get(), outcome.error, request_.crc || reply_->frame().crc);
      }
      break;
  }
  Finish(std::move(answer));
}

void Connector::OnSocketError(int error) {
  Log(LogLevel::kDebug, "iwarp: connecting to ", to_.ToString(), " port ", options_.port,
      connected_ ? " after" : " before", " it was heard: ", std::strerror(error));
  if (connected_ && error == ECONNRESET && enhanced_ && reply_ && !reply_->begun()) {
    // The peer may know revision 1 only: RFC 6581 has such a peer reset the connection.
    enhanced_ = false;
    CloseSocket();
    const auto self = shared_from_this();
    timer_ = loop_.RunAt(loop_.Now() + options_.silence, [self] {
      self->timer_ = 0;
      self->Finish({.outcome = Outcome::kUnreachable});
    });
    return Redial();
  }
  if (error == ETIMEDOUT && !connected_ && enhanced_) {
    CloseSocket();
    const auto self = shared_from_this();
    timer_ = loop_.RunAt(loop_.Now() + kRedialPause, [self] {
      self->timer_ = 0;
      self->Redial();
    });
    return;
  }
  if (error == ECONNREFUSED && !connected_ && to_.IsLoopback() && to_ != LoopbackOf(to_)) {
    // Another address of the loopback network, like that of the host's own name in Debian's hosts
    // file (127.0.1.1): usually nobody listens there, and everybody listens at 127.0.0.1.
    to_ = LoopbackOf(to_);
    CloseSocket();
    return Redial();
  }
  Answer answer;
  if (IsShortage(error)) {
    answer.outcome = Outcome::kNoResources;
  } else if (IsUnreachable(error) || error == ETIMEDOUT) {
    answer.outcome = Outcome::kUnreachable;
  } else if (error == ECONNREFUSED || error == ECONNRESET) {
    if (error == ECONNREFUSED && !connected_) answer.outcome = Outcome::kNobody;
    heard_ = true;
    Report();
  }
  Finish(std::move(answer));
}

}  // namespace viaduct::verbs::iwarp
