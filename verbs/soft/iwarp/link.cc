#include "verbs/soft/iwarp/link.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "verbs/base/fd.h"
#include "verbs/base/log.h"
#include "verbs/base/random.h"
#include "verbs/base/uncancelled.h"
#include "verbs/soft/iwarp/fpdu_writer.h"
#include "verbs/soft/iwarp/linger.h"
#include "verbs/soft/iwarp/startup_io.h"
#include "verbs/soft/iwarp/tcp.h"

namespace viaduct::verbs::iwarp {
namespace {

uint16_t Depth(uint32_t reads) {
  return static_cast<uint16_t>(std::min<uint32_t>(reads, kMpaMaxDepth));
}

MpaWish WishOf(const LinkShared& shared, const SoftQueuePair& pair) {
  return {.crc = shared.options.crc,
          .ird = Depth(pair.max_reads_in()),
          .ord = Depth(pair.max_reads_out())};
}

}  // namespace

IwarpLink::IwarpLink(std::shared_ptr<LinkShared> shared, SoftQueuePair& pair)
    : shared_(std::move(shared)), pair_(&pair) {}

IwarpLink::~IwarpLink() {
  if (remembered_) ForgetUnsent(*this);
}

// ---------------------------------------------------------------------------- getting connected

Link* IwarpLink::Dial(std::shared_ptr<LinkShared> shared, SoftQueuePair& pair, const Address& from,
                      const ConnectOptions& options) {
  // Made here and not on the loop, so that the caller learns at once if there is no descriptor.
  auto socket = std::make_shared<Socket>(NewTcpSocket(options.address.family()));
  if (!socket->valid() && IsShortage(errno)) {
    pair.NoteNoResources();
    return nullptr;
  }
  std::shared_ptr<IwarpLink> link(new IwarpLink(std::move(shared), pair));
  ConnectorOptions dial;
  dial.from = from;
  dial.to = options.address;
  dial.port = options.port;
  dial.private_data.assign(options.private_data.begin(), options.private_data.end());
  dial.wish = WishOf(*link->shared_, pair);
  dial.reply_time = link->shared_->options.silence;
  dial.silence = link->shared_->options.silence;
  dial.on_progress = [link = link.get()](uint16_t local_port, bool heard) {
    SoftQueuePair* const dialling = link->pair_.load();
    if (dialling == nullptr) return;
    dialling->SetLocalPort(local_port);
    if (heard) dialling->NotePeerHeard();
  };
  dial.served_nearer = [link = link.get()] {
    SoftQueuePair* const dialling = link->pair_.load();
    return dialling != nullptr && dialling->IsServedNearer();
  };
  link->self_ = link;
  absl::Cleanup forget = [&link = *link] { link.self_.reset(); };  // if there is no memory
  link->shared_->loop.Post([link, socket, dial = std::move(dial)]() mutable {
    if (link->pair_.load() == nullptr) return;
    link->connector_ =
        Connector::Start(link->shared_->loop, std::move(*socket), std::move(dial),
                         [link](Connector::Answer answer) { link->OnAnswer(std::move(answer)); });
  });
  std::move(forget).Cancel();
  return link.get();
}

void IwarpLink::OnAnswer(Connector::Answer answer) {
  connector_.reset();
  if (pair_.load() == nullptr) return;  // End is to come
  switch (answer.outcome) {
    case Connector::Outcome::kConnected:
      break;
    case Connector::Outcome::kRejected: {
      const std::span<const uint8_t> data = answer.reply->frame().private_data;
      return FailAttempt(ConnectOutcome::kRejected, {data.data(), data.size()});
    }
    case Connector::Outcome::kRefused:
      return FailAttempt(ConnectOutcome::kRefused, {});
    case Connector::Outcome::kNobody:
      return FailAttempt(ConnectOutcome::kNobody, {});
    case Connector::Outcome::kUnreachable: {
      // Another wire has recognised the host as this one, and found nobody; only TCP has no route,
      // for example because loopback is down.
      const SoftQueuePair* const pair = pair_.load();
      const bool here = !answer.heard && pair != nullptr && pair->Heard();
      return FailAttempt(here ? ConnectOutcome::kNobody : ConnectOutcome::kUnreachable, {});
    }
    case Connector::Outcome::kNoResources:
      return FailAttempt(ConnectOutcome::kNoResources, {});
    case Connector::Outcome::kServedNearer:
      return RestartOnNearerWire();
  }
  Open(std::move(answer.socket), answer.agreement, /*initiator=*/true);
  if (!WatchSocket()) return FailAttempt(ConnectOutcome::kNoResources, {});
  life_ = Life::kUp;
  SoftQueuePair* const pair = pair_.load();
  if (pair == nullptr) return;  // End is to come
  const std::span<const uint8_t> data = answer.reply->frame().private_data;
  pair->Established(*this, {data.data(), data.size()});
  if (shared_->options.nudge > 0) NudgeAfter(shared_->options.nudge, /*again=*/true);
}

absl::Status IwarpLink::Answer(std::shared_ptr<LinkShared> shared, SoftQueuePair& pair,
                               Socket* socket, const MpaFrame& request,
                               absl::Span<const uint8_t> private_data) {
  if (private_data.size() > MpaMaxPrivateData(MpaKind::kReply, request.depths.has_value())) {
    return absl::InvalidArgumentError("too much private data");
  }
  std::shared_ptr<IwarpLink> link(new IwarpLink(std::move(shared), pair));
  // Allocated before anything has happened: memory may run out.
  link->accepted_ = std::make_unique<Accepted>();
  link->accepted_->request = request;
  link->accepted_->request.private_data = {};
  link->accepted_->private_data.assign(private_data.begin(), private_data.end());
  link->self_ = link;
  absl::Cleanup forget = [&link = *link] { link.self_.reset(); };
  if (absl::Status attached = pair.Attach(*link); !attached.ok()) return attached;
  std::move(forget).Cancel();
  link->accepted_->socket = std::move(*socket);
  link->answer_errand_.Post(link->shared_->loop, link);
  return absl::OkStatus();
}

void IwarpLink::SendAnswer() {
  auto [socket, request, private_data] = std::move(*accepted_);
  accepted_.reset();
  SoftQueuePair* const pair = pair_.load();
  if (pair == nullptr) return;  // disconnected meanwhile: the peer sees the socket close
  pair->SetLocalPort(LocalEnd(socket.get()).port);
  pair->NotePeerHeard();
  std::optional<MpaAnswer> answer = AcceptRequest(request, WishOf(*shared_, *pair));
  char byte;
  const bool gone = recv(socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
  if (!answer.has_value() || gone) return FailAttempt(ConnectOutcome::kGone, {});
  answer->reply.private_data = private_data;
  if (!SendFrame(socket.get(), answer->reply)) return FailAttempt(ConnectOutcome::kGone, {});
  Open(std::move(socket), answer->agreement, /*initiator=*/false);
  if (!WatchSocket()) return FailAttempt(ConnectOutcome::kGone, {});
  if (answer->agreement.rtr == Rtr::kNone) {
    // Only the acknowledgements of the peer's TCP show that it has the reply.
    life_ = Life::kUp;
    NoteSent();
    if (shared_->options.first_word > 0) {
      auto self = shared_from_this();
      timer_ = shared_->loop.RunAt(shared_->loop.Now() + shared_->options.first_word,
                                   [self] { self->OnFirstFpduLate(); });
    }
    pair->Established(*this, {});
    return;
  }
  life_ = Life::kAwaitingFirst;
  auto self = shared_from_this();
  timer_ = shared_->loop.RunAt(shared_->loop.Now() + shared_->options.silence, [self] {
    self->timer_ = 0;
    if (self->life_ == Life::kAwaitingFirst) self->FailAttempt(ConnectOutcome::kGone, {});
  });
  Arm();
}

void IwarpLink::Open(Socket socket, const MpaAgreement& agreement, bool initiator) {
  socket_ = std::move(socket);
  agreement_ = agreement;
  LimitBackOff(socket_.get(), shared_->options.silence);
  ulpdu_limit_ = UlpduLimit(SegmentSize(socket_.get()));
  reader_.set_check_crc(agreement.crc);
  // Names the sinks of our reads to the peer, which echoes it; we compare it. It opens no memory.
  sink_stag_ = static_cast<uint32_t>(RandomWord()) | 1;
  SoftQueuePair* const pair = pair_.load();
  if (pair != nullptr) pair->SetReadsOut(agreement.ord);
  SpinLockHolder hold(&transmit_lock_);
  stream_.emplace(socket_.get());
  // A Viaduct accepts FPDUs directly after the reply, and may wait for ours.
  may_send_ = initiator || (pair != nullptr && ToSoftDevice(*pair));
  if (!initiator) return;
  if (agreement.rtr == Rtr::kWrite) {
    EmitEmptyWrite();
  } else if (agreement.rtr == Rtr::kRead) {
    EmitSilentRead(0, std::nullopt);
  }
}

bool IwarpLink::WatchSocket() {
  auto self = shared_from_this();
  const absl::Status status = shared_->loop.Watch(
      socket_.get(), EPOLLONESHOT, [self](uint32_t events) { self->OnEvent(events); });
  if (!status.ok()) return false;
  SpinLockHolder hold(&arm_lock_);
  armed_ = true;
  armed_events_ = 0;
  return true;
}

// The peer's first bytes after the startup frames: it has read our reply.
void IwarpLink::OnFirstBytes() {
  char byte;
  const ssize_t n = recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
    return FailAttempt(ConnectOutcome::kGone, {});
  }
  if (n < 0) return;
  CancelTimer();
  life_ = Life::kUp;
  if (SoftQueuePair* const pair = pair_.load()) pair->Established(*this, {});
}

// Before we send, the peer's first FPDU should show that it has the reply, so that it does not take
// our FPDU for a part of that. By now it has the reply in any case, and it may be waiting for us,
// which nothing in the protocol would ever resolve.
void IwarpLink::OnFirstFpduLate() {
  timer_ = 0;
  SoftQueuePair* const pair = pair_.load();
  if (life_ != Life::kUp || pair == nullptr) return;
  {
    SpinLockHolder hold(&transmit_lock_);
    may_send_ = true;
  }
  pair->Attend();
}

// What reaches siw (Linux 6.1) at the very moment when a connection begins there may lie in its
// socket until more comes.
void IwarpLink::NudgeAfter(Nanos time, bool again) {
  auto self = shared_from_this();
  timer_ = shared_->loop.RunAt(shared_->loop.Now() + time, [self, time, again] {
    self->timer_ = 0;
    SoftQueuePair* const pair = self->pair_.load();
    if (self->life_ != Life::kUp || pair == nullptr || ToSoftDevice(*pair)) return;
    self->Nudge();
    pair->Attend();  // continues what the nudge held up, and reports a failed socket
    if (again) self->NudgeAfter(9 * time, /*again=*/false);
  });
}

void IwarpLink::Nudge() {
  SpinLockHolder hold(&transmit_lock_);
  if (lost_.load() || left_.load() || ended_.load() || terminate_size_ > 0) return;
  // What is about to be sent will do as well.
  if (request_open_ || answer_open() || stream_->blocked()) return;
  EmitEmptyWrite();
}

void IwarpLink::FailAttempt(ConnectOutcome outcome, absl::Span<const uint8_t> private_data) {
  const auto self = shared_from_this();
  SoftQueuePair* const pair = pair_.load();
  // Otherwise the pair has disconnected or is about to, and End is to come.
  if (pair != nullptr && pair->ConnectFailed(*this, outcome, private_data)) Release();
}

void IwarpLink::RestartOnNearerWire() {
  const auto self = shared_from_this();
  SoftQueuePair* const pair = pair_.load();
  if (pair != nullptr && pair->StartAgain(*this)) Release();
}

void IwarpLink::Start() { Arm(); }

// -------------------------------------------------------------------------------------- events

void IwarpLink::Arm() {
  if (ended_.load()) return;
  // Every thread stores its change before it calls this, so the last caller sees all changes.
  SpinLockHolder hold(&arm_lock_);
  uint32_t wanted = 0;
  if (!hot_.load() && !stalled_.load()) wanted |= EPOLLIN | EPOLLRDHUP;
  if (want_room_.load()) wanted |= EPOLLOUT;
  if (armed_ && armed_events_ == wanted) return;
  armed_ = true;
  armed_events_ = wanted;
  shared_->loop.SetEvents(socket_.get(), wanted | EPOLLONESHOT);
}

void IwarpLink::OnEvent(uint32_t events) {
  const auto self = shared_from_this();
  {
    SpinLockHolder hold(&arm_lock_);
    armed_ = false;
  }
  switch (life_) {
    case Life::kAwaitingFirst:
      OnFirstBytes();
      break;
    case Life::kUp:
      if (SoftQueuePair* const pair = pair_.load()) {
        // A stalled link reads again: what is in the socket comes first, perhaps with a FIN.
        if ((events & (EPOLLERR | EPOLLHUP)) != 0 && stalled_.exchange(false)) {
          hung_up_.store(true);
        }
        pair->Attend();
      }
      break;
    case Life::kClosing:
      return ContinueClosing();
    case Life::kDialling:
    case Life::kEnded:
      return;
  }
  if ((life_ == Life::kUp || life_ == Life::kAwaitingFirst) && pair_.load() != nullptr) Arm();
}

void IwarpLink::Heat() {
  hot_.store(true);
  Arm();
}

bool IwarpLink::Cool() {
  hot_.store(false);
  Arm();  // the loop reports at once what has arrived before
  return false;
}

bool IwarpLink::Arrived() const {
  if (stalled_.load(std::memory_order_relaxed) || ended_.load(std::memory_order_relaxed)) {
    return false;
  }
  if (unread_.load(std::memory_order_relaxed)) return true;
  // While the link is cold, the loop notices input; while it is hot, nobody else does.
  if (!hot_.load(std::memory_order_relaxed)) return false;
  // Not recv: it would consume the error of a reset, and the end would then look like a FIN.
  pollfd look = {socket_.get(), POLLIN, 0};
  return uncancelled::Poll(&look) != 0;
}

// ------------------------------------------------------------------------------ a silent peer

void IwarpLink::NoteSent() {
  if (awaiting_acks_.load(std::memory_order_relaxed) || awaiting_acks_.exchange(true)) return;
  ack_errand_.Post(shared_->loop, shared_from_this());
}

void IwarpLink::WatchForAcks() {
  unanswered_since_ = 0;
  CheckAcks();
}

void IwarpLink::CheckAcks() {
  ack_timer_ = 0;
  if (life_ != Life::kUp || ended_.load() || !socket_.valid()) return;
  // Includes what waits for room in the socket, since NoteSent is not called when it gets there.
  const auto look = [this] {
    Unacknowledged sent = UnacknowledgedOf(socket_.get());
    SpinLockHolder hold(&transmit_lock_);
    sent.outstanding = sent.outstanding || stream_->waiting() > 0;
    return sent;
  };
  Unacknowledged sent = look();
  if (!sent.outstanding) {
    awaiting_acks_.store(false);
    // A send from now on starts the checks anew; a send just before is seen here.
    sent = look();
    if (!sent.outstanding || awaiting_acks_.exchange(true)) return;
  }
  const Nanos silence = shared_->options.silence;
  const Nanos now = shared_->loop.Now();
  if (unanswered_since_ == 0 || !sent.answer_due) unanswered_since_ = now;
  const Nanos owed_for = std::min(now - unanswered_since_, sent.silent_for);
  if (owed_for >= silence) {
    Log(LogLevel::kInfo, "iwarp: ", PeerEnd(socket_.get()).address.ToString(), " is silent");
    return Lost(pair_.load());
  }
  auto self = shared_from_this();
  // The kernel counts in milliseconds.
  const Nanos pause = std::max(std::min(silence / 4, silence - owed_for), kNanosPerMilli);
  ack_timer_ = shared_->loop.RunAt(now + pause, [self] { self->CheckAcks(); });
}

// --------------------------------------------------------------------------------------- the end

void IwarpLink::Disconnect(Status verdict) {
  auto self = shared_from_this();  // before the loop may let go of it
  end_verdict_ = verdict;
  pair_.store(nullptr);
  end_errand_.Post(shared_->loop, std::move(self));
}

// Nobody polls or pumps any more: all state belongs to the loop.
void IwarpLink::End() {
  if (life_ == Life::kEnded) return;
  // A peer that has our answer is connected, whether its first FPDU was read or not: a close with
  // that FPDU unread would be a reset.
  const bool answered = life_ == Life::kUp || life_ == Life::kAwaitingFirst;
  if (!answered || lost_.load()) return Release();
  CancelTimer();
  {
    SpinLockHolder hold(&transmit_lock_);
    const bool explain = !peer_terminated_ && !ended_.load() && may_send_;
    if (explain) {
      try {
        TakeEmptyReads();
      } catch (const std::bad_alloc&) {  // what was taken until then is answered
      }
      EmitEmptyAnswers();
    }
    if (explain && end_verdict_ != Status::kSuccess) PrepareTerminate(kRdmapLocalCatastrophic, {});
    if (explain && terminate_size_ > 0) {
      const DdpHeader header =
          UntaggedHeader(RdmapOpcode::kTerminate, kFirstSequence, 0, /*last=*/true);
      if (!SendControl(header, std::span<const uint8_t>(terminate_).first(terminate_size_))) {
        lost_.store(true);
      }
    }
  }
  ReleaseInput();
  if (lost_.load()) return Release();
  life_ = Life::kClosing;
  AwaitClosing();
  Ending::Enter();
  ContinueClosing();
}

void IwarpLink::AwaitClosing() {
  auto self = shared_from_this();
  timer_ = shared_->loop.RunAt(shared_->loop.Now() + shared_->options.silence,
                               [self, before = Untaken()] {
                                 self->timer_ = 0;
                                 self->Untaken() < before ? self->AwaitClosing() : self->Release();
                               });
}

size_t IwarpLink::Untaken() {
  SpinLockHolder hold(&transmit_lock_);
  return UnacknowledgedBytes(socket_.get()) + stream_->waiting();
}

// Repeated until everything is in the socket; TCP does the rest.
void IwarpLink::ContinueClosing() {
  bool sent;
  bool waits;
  {
    SpinLockHolder hold(&transmit_lock_);
    sent = stream_->Flush();
    waits = sent && stream_->blocked();
  }
  if (waits) {
    shared_->loop.SetEvents(socket_.get(), EPOLLOUT | EPOLLONESHOT);
    return;
  }
  if (sent) {
    shared_->loop.Unwatch(socket_.get());
    CloseLingering(shared_->loop, TakeSocket(), shared_->options.silence);
  }
  Release();
}

Socket IwarpLink::TakeSocket() {
  SpinLockHolder hold(&transmit_lock_);
  return std::move(socket_);
}

void IwarpLink::Release() {
  const auto self = shared_from_this();
  life_ = Life::kEnded;
  Ending::Leave();
  CancelTimer();
  if (ack_timer_ != 0) shared_->loop.Cancel(ack_timer_);
  ack_timer_ = 0;
  if (connector_ != nullptr) connector_->Cancel();
  connector_.reset();
  if (socket_.valid()) {
    shared_->loop.Unwatch(socket_.get());
    static_cast<void>(TakeSocket());
  }
  self_.reset();
}

void IwarpLink::CancelTimer() {
  if (timer_ != 0) shared_->loop.Cancel(timer_);
  timer_ = 0;
}

}  // namespace viaduct::verbs::iwarp
