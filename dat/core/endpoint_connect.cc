// An endpoint's connections: what the consumer asks for, what the device reports, and how both move
// the state.
#include <new>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/core/connect_attempt.h"
#include "dat/core/connection_manager.h"
#include "dat/core/connection_request.h"
#include "dat/core/endpoint.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/peer_listening.h"
#include "dat/core/probes.h"
#include "dat/core/receive_watch.h"

namespace viaduct::core {

using verbs::MutexLock;

namespace {

bool IsFailedAttempt(EndpointInput input) {
  switch (input) {
    case EndpointInput::kPeerRejected:
    case EndpointInput::kNonPeerRejected:
    case EndpointInput::kUnreachable:
    case EndpointInput::kTimedOut:
    case EndpointInput::kNoResources:
    case EndpointInput::kAcceptFailed:
      return true;
    default:
      return false;
  }
}

EventType TypeOf(EndpointEvent event) {
  switch (event) {
    case EndpointEvent::kEstablished:
      return EventType::kEstablished;
    case EndpointEvent::kPeerRejected:
      return EventType::kPeerRejected;
    case EndpointEvent::kNonPeerRejected:
      return EventType::kNonPeerRejected;
    case EndpointEvent::kAcceptCompletionError:
      return EventType::kAcceptCompletionError;
    case EndpointEvent::kDisconnected:
      return EventType::kDisconnected;
    case EndpointEvent::kTimedOut:
      return EventType::kTimedOut;
    case EndpointEvent::kUnreachable:
      return EventType::kUnreachable;
    case EndpointEvent::kNoResources:
      return EventType::kNoResources;
    case EndpointEvent::kNone:
    case EndpointEvent::kBroken:
      break;
  }
  return EventType::kBroken;
}

}  // namespace

// ------------------------------------------------------------------------ state moves

Error Endpoint::Apply(EndpointInput input) {
  const EndpointState before = state();
  Transition move = Next(before, input);
  if (move.verdict == Verdict::kInvalid) return InvalidState(before);
  if (move.verdict == Verdict::kNoEffect) return Ok();
  if (IsFailedAttempt(input) && attributes_.keep_receives_on_failure &&
      !(input == EndpointInput::kUnreachable && attributes_.flush_on_unreachable)) {
    move.next = EndpointState::kUnconnected;
    move.flush = false;
  }
  const bool was_connected =
      before == EndpointState::kConnected || before == EndpointState::kDisconnectPending;
  const uint32_t expected = EventsToCome(before), to_come = EventsToCome(move.next);
  // If this throws, nothing has changed.
  if (to_come > expected && parts_.connect) parts_.connect->KeepRoom(to_come - expected);
  ProbeState(owner_.handle, before, move.next, input);
  state_.store(move.next, std::memory_order_release);
  if (move.next == EndpointState::kDisconnected) ++ends_;
  Count(input);
  if (move.flush && pair_ != nullptr) pair_->Flush();
  if (has_shared_receives_ && was_connected && move.next == EndpointState::kDisconnected) {
    // No flushed receive shows that the endpoint takes no more receives from the shared queue, so
    // this event does (InfiniBand: "last WQE reached", for which programs wait before they free
    // what is shared).
    adapter_->PostAsync(EventType::kAsyncEndpointBroken, owner_.handle);
  }
  if (move.event != EndpointEvent::kNone) PostEvent(move.event, expected - to_come);
  return Ok();
}

void Endpoint::Abandon(EndpointState next) {
  const EndpointState before = state();
  state_.store(next, std::memory_order_release);
  if (parts_.connect) parts_.connect->GiveUpRoom(EventsToCome(before) - EventsToCome(next));
}

void Endpoint::Count(EndpointInput input) {
  switch (input) {
    case EndpointInput::kConnect:
      owner_.counts.Add(EndpointCount::kConnects);
      return adapter_->CountConnection(AdapterCount::kRequestsSent);
    case EndpointInput::kDisconnectAbrupt:
    case EndpointInput::kDisconnectGraceful:
      owner_.counts.Add(EndpointCount::kDisconnects);
      return adapter_->CountConnection(AdapterCount::kDisconnected);
    case EndpointInput::kPeerAccepted:
      return adapter_->CountConnection(AdapterCount::kActiveEstablished);
    case EndpointInput::kConfirmed:
      return adapter_->CountConnection(AdapterCount::kPassiveEstablished);
    case EndpointInput::kPeerRejected:
      return adapter_->CountConnection(AdapterCount::kRejectedByPeer);
    case EndpointInput::kPeerDisconnected:
      return adapter_->CountConnection(AdapterCount::kDisconnectedByPeer);
    case EndpointInput::kNonPeerRejected:
      return adapter_->CountConnection(AdapterCount::kNonPeerRejected);
    case EndpointInput::kBroken:
      return adapter_->CountConnection(AdapterCount::kBroken);
    case EndpointInput::kTimedOut:
      return adapter_->CountConnection(AdapterCount::kTimedOut);
    case EndpointInput::kUnreachable:
    case EndpointInput::kNoResources:
    case EndpointInput::kAcceptFailed:
      return adapter_->CountConnection(AdapterCount::kConnectionErrors);
    default:
      return;
  }
}

Error Endpoint::Move(EndpointInput input) {
  MutexLock lock(&lock_);
  return Apply(input);
}

void Endpoint::TakeRequest(const ConnectionRequest& request) {
  MutexLock lock(&lock_);
  if (state() == EndpointState::kReserved) (void)Apply(EndpointInput::kRequestArrived);
  target_.address = request.remote_address();
  target_.name = ServiceName::FromQualifier(request.remote_port());
  asked_port_ = request.name().direct_port().value_or(0);
}

void Endpoint::DropRequest() {
  MutexLock lock(&lock_);
  ForgetRequest();
}

void Endpoint::ReturnRequest() {
  MutexLock lock(&lock_);
  ForgetRequest();
  (void)Apply(EndpointInput::kReserve);
}

void Endpoint::ForgetRequest() {
  if (!Apply(EndpointInput::kRejectImplicit).ok()) return;
  target_ = ConnectTarget();
  asked_port_ = 0;
}

void Endpoint::PostEvent(EndpointEvent event, uint32_t kept) {
  // Completions of other streams that are there already come first if they share the dispatcher:
  // Post sees to that.
  Event posted;
  posted.type = TypeOf(event);
  posted.subject = owner_.handle;
  if (!parts_.connect) {
    // A broken connection is an error that ought to be reported. With shared receives Apply has
    // reported it already.
    if (event == EndpointEvent::kBroken && !has_shared_receives_) {
      adapter_->PostAsync(EventType::kAsyncEndpointBroken, owner_.handle);
    }
    return;
  }
  if (event == EndpointEvent::kEstablished || event == EndpointEvent::kPeerRejected) {
    posted.private_data_size = static_cast<uint32_t>(private_data_.size());
    posted.private_data = private_data_.empty() ? nullptr : private_data_.data();
  }
  (void)parts_.connect->Post(posted, kept);  // there is room
}

Error Endpoint::Connect(const ConnectParameters& parameters) {
  std::unique_ptr<PeerListening> listening;
  if (parameters.peer != nullptr) {
    Error error =
        PeerListening::Start(adapter_->connections(), *this, *parameters.peer, &listening);
    if (!error.ok()) return error;
  }
  MutexLock lock(&lock_);
  return StartAttempt(parameters, &listening);
}

Error Endpoint::DuplicateConnect(Endpoint& other, verbs::Deadline deadline,
                                 absl::Span<const uint8_t> private_data, verbs::Nanos grace) {
  ConnectParameters parameters;
  {
    MutexLock lock(&other.lock_);
    if (Error error = other.Check(EndpointInput::kDuplicate); !error.ok()) return error;
    parameters.target = other.target_;
  }
  parameters.deadline = deadline;
  parameters.grace = grace;
  parameters.private_data = private_data;
  MutexLock lock(&lock_);
  return StartAttempt(parameters);
}

Error Endpoint::StartAttempt(const ConnectParameters& parameters,
                             std::unique_ptr<PeerListening>* listening) {
  if (Error error = Check(EndpointInput::kConnect); !error.ok()) return error;
  if (pair_ == nullptr) return InvalidState(StateDetail::kEndpointZone);
  if (parameters.private_data.size() > adapter_->max_private_data()) return InvalidParameter(5);
  uint64_t serial = ++serial_;
  auto attempt = std::make_unique<ConnectAttempt>(
      serial, *pair_, immediate_ability(), adapter_->executor(), parameters,
      parameters.peer != nullptr ? adapter_->connections().PeerPortsOf(parameters.target.name)
                                 : adapter_->connections().PortsOf(parameters.target.name),
      [self = Ref<Endpoint>::Share(this), serial](AttemptTimer due) {
        self->OnAttemptTimer(serial, due);
      });
  if (attempt->request_bytes() > adapter_->context().attributes().max_private_data) {
    return InvalidParameter(5);
  }
  // First what may fail here: an attempt that has begun at the device may be reported at any
  // moment.
  if (Error error = Apply(EndpointInput::kConnect); !error.ok()) return error;
  absl::Cleanup give_up = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    pair_->Disconnect(verbs::DisconnectMode::kAbrupt);
    Abandon(EndpointState::kUnconnected);
  };
  absl::Status started = attempt->Start();
  if (absl::IsResourceExhausted(started)) return OutOf(Resource::kDevice);
  if (!started.ok()) return Code::kInvalidAddress;
  std::move(give_up).Cancel();
  if (parameters.peer != nullptr) attempt->Listen(std::move(*listening));
  attempt_ = std::move(attempt);
  target_ = parameters.target;
  peer_profile_ = EndpointProfile();
  peer_mismatch_ = PeerMismatch::kNone;
  return Ok();
}

void Endpoint::OnAttemptTimer(uint64_t serial, AttemptTimer due) {
  std::unique_ptr<ConnectAttempt> ended;
  MutexLock lock(&lock_);
  if (attempt_ == nullptr || attempt_->serial() != serial) return;
  std::optional<EndpointInput> input =
      due == AttemptTimer::kDeadline ? attempt_->TimedOut() : attempt_->Retry();
  if (!input.has_value()) return;
  ended = std::move(attempt_);
  (void)Apply(*input);
}

Error Endpoint::Disconnect(verbs::DisconnectMode mode) {
  EndpointInput input = mode == verbs::DisconnectMode::kAbrupt ? EndpointInput::kDisconnectAbrupt
                                                               : EndpointInput::kDisconnectGraceful;
  std::unique_ptr<ConnectAttempt> attempt;
  MutexLock lock(&lock_);
  const Transition move = Next(state(), input);
  if (move.verdict == Verdict::kInvalid) return InvalidState(state());
  if (move.verdict == Verdict::kNoEffect) return Ok();
  attempt = std::move(attempt_);
  bool drains = move.next == EndpointState::kDisconnectPending;
  if (!drains) pair_->Disconnect(verbs::DisconnectMode::kAbrupt);
  Error error = Apply(input);
  if (drains) pair_->Disconnect(verbs::DisconnectMode::kGraceful);
  return error;
}

Error Endpoint::Reset() {
  for (uint64_t drained = 0;;) {
    {
      MutexLock lock(&lock_);
      if (state() != EndpointState::kDisconnected) return Apply(EndpointInput::kReset);
      // Since the drain another thread may have reset, connected and disconnected the endpoint.
      if (drained == ends_) {
        if (Error error = Apply(EndpointInput::kReset); !error.ok()) return error;
        if (pair_ != nullptr) pair_->Reset();
        private_data_.clear();
        target_ = ConnectTarget();
        return Ok();
      }
      drained = ends_;
    }
    // A sink call of the ended connection may be waiting for lock_: it must not meet a new one.
    adapter_->executor().Drain();
  }
}

Error Endpoint::FlushPosted() {
  MutexLock lock(&lock_);
  if (pair_ == nullptr) return Ok();  // the endpoint may have been freed meanwhile
  if (state() != EndpointState::kUnconnected) return InvalidState(state());
  pair_->Flush();
  pair_->Reset();
  return Ok();
}

std::vector<uint8_t> Endpoint::HeaderOfAccept(const EndpointProfile& profile) const {
  ConnectionHeader header;
  header.kind = HeaderKind::kAccept;
  header.profile = profile;
  header.immediate = immediate_ability();
  header.confirmation = pair_->confirmation_word();
  return EncodeHeader(header);
}

Error Endpoint::BeginAccept(EndpointInput input, ConnectionRequest& request,
                            absl::Span<const uint8_t> answer, verbs::IncomingConnection& incoming) {
  MutexLock lock(&lock_);
  if (Error error = Check(input); !error.ok()) return error;
  if (pair_ == nullptr) return InvalidState(StateDetail::kEndpointZone);
  if (!parts_.connect) return InvalidState(StateDetail::kEndpointConnect);
  std::vector<uint8_t> data;
  if (request.header().has_value()) data = HeaderOfAccept(profile_);
  data.insert(data.end(), answer.begin(), answer.end());
  const EndpointState before = state();
  if (Error error = Apply(input); !error.ok()) return error;
  absl::Status accepted;
  try {
    if (request.header().has_value()) ApplyTerms(*pair_, immediate_ability(), *request.header());
    accepted = incoming.Accept(*pair_, data);
  } catch (const std::bad_alloc&) {
    accepted = absl::Status(absl::StatusCode::kResourceExhausted, "");  // a text needs memory
  }
  if (!accepted.ok()) {
    ClearTerms(*pair_);
    Abandon(before);
    if (absl::IsResourceExhausted(accepted)) return OutOf(Resource::kDevice);
    return Code::kTimeout;  // the pair is idle, so the request must have been decided already
  }
  private_data_.clear();
  asked_port_ = 0;
  target_.address = request.remote_address();
  target_.name = ServiceName::FromQualifier(request.remote_port());
  peer_profile_ = request.header().has_value() ? request.header()->profile : EndpointProfile();
  return Ok();
}

bool Endpoint::OfferPeer(uint64_t id, Arrival* arrival, std::unique_ptr<ConnectAttempt>* ended) {
  MutexLock lock(&lock_);
  if (attempt_ == nullptr || attempt_->peer() == nullptr || attempt_->peer()->id != id ||
      attempt_->answering()) {
    return false;
  }
  const PeerRequest& own = *attempt_->peer();
  const ConnectionHeader& theirs = *arrival->header;
  const PeerMismatch mismatch = Compare(own.profile, theirs.profile);
  if (mismatch != PeerMismatch::kNone) {
    ConnectionHeader answer;
    answer.kind = HeaderKind::kMismatch;
    answer.mismatch = static_cast<uint8_t>(mismatch);
    arrival->incoming->Reject(EncodeHeader(answer));
    pair_->Disconnect(verbs::DisconnectMode::kAbrupt);  // our dial
    *ended = std::move(attempt_);
    peer_mismatch_ = mismatch;
    private_data_.clear();
    (void)Apply(EndpointInput::kPeerRejected);
    return true;
  }
  // Our own dial is under way and wins: the peer will give up its own.
  if (attempt_->dialling() && DialWins(own, arrival->incoming->peer_address(), theirs.peer_id) &&
      !attempt_->YieldsTo(theirs.peer_id)) {
    return false;
  }
  pair_->Disconnect(verbs::DisconnectMode::kAbrupt);
  const std::vector<uint8_t> answer = HeaderOfAccept(own.profile);
  ApplyTerms(*pair_, immediate_ability(), theirs);
  attempt_->Answer();
  if (!arrival->incoming->Accept(*pair_, answer).ok()) {
    ClearTerms(*pair_);
    attempt_->AnswerFailed();
    return false;
  }
  peer_profile_ = theirs.profile;
  return true;
}

ImmediateAbility Endpoint::immediate_ability() const {
  if (adapter_->context().attributes().immediate_data) return ImmediateAbility::kNative;
  // A shared receive may be taken by a message of any endpoint, framed or not.
  return has_shared_receives_ ? ImmediateAbility::kNone : ImmediateAbility::kFrames;
}

// --------------------------------------------------------------- what the device reports

void Endpoint::OnConnected(verbs::QueuePair& pair, absl::Span<const uint8_t> private_data) {
  std::unique_ptr<ConnectAttempt> attempt;
  MutexLock lock(&lock_);
  if (&pair != pair_.get()) return;
  attempt = std::move(attempt_);
  if (attempt == nullptr) {
    (void)Apply(EndpointInput::kConfirmed);
    return;
  }
  if (attempt->answering()) {  // a peer's dial that OfferPeer has accepted
    private_data_.clear();
    (void)Apply(EndpointInput::kPeerAccepted);
    return;
  }
  std::optional<ServiceName> redirected;
  attempt->Accepted(&private_data, &peer_profile_, &redirected);
  if (redirected.has_value()) target_.name = *redirected;
  private_data_.assign(private_data.begin(), private_data.end());
  (void)Apply(EndpointInput::kPeerAccepted);
}

void Endpoint::OnConnectFailed(verbs::QueuePair& pair, verbs::ConnectOutcome outcome,
                               absl::Span<const uint8_t> private_data) {
  std::unique_ptr<ConnectAttempt> ended;
  MutexLock lock(&lock_);
  if (&pair != pair_.get()) return;
  if (attempt_ == nullptr) {
    (void)Apply(EndpointInput::kAcceptFailed);
    return;
  }
  absl::Span<const uint8_t> answer;
  std::optional<EndpointInput> input = attempt_->Failed(outcome, private_data, &answer);
  if (!input.has_value()) return;
  ended = std::move(attempt_);
  peer_mismatch_ = ended->mismatch();
  private_data_.assign(answer.begin(), answer.end());
  (void)Apply(*input);
}

void Endpoint::OnDisconnected(verbs::QueuePair& pair, verbs::DisconnectCause cause) {
  EndpointObserver* observer = nullptr;
  {
    MutexLock lock(&lock_);
    if (&pair != pair_.get()) return;
    EndpointInput input = EndpointInput::kBroken;
    if (cause == verbs::DisconnectCause::kLocal) input = EndpointInput::kDrained;
    if (cause == verbs::DisconnectCause::kPeer) input = EndpointInput::kPeerDisconnected;
    if (!Apply(input).ok()) return;
    if (cause != verbs::DisconnectCause::kLocal) observer = parts_.observer;
  }
  if (observer != nullptr) observer->OnDisconnected(cause == verbs::DisconnectCause::kBroken);
}

void Endpoint::OnDropped(verbs::QueuePair&) {
  if (EndpointObserver* observer = parts().observer) observer->OnDropped();
}

void Endpoint::OnRefusedWrite(verbs::QueuePair&) {
  if (EndpointObserver* observer = parts().observer) observer->OnRefusedWrite();
}

void Endpoint::OnRefusedRead(verbs::QueuePair&) {
  if (EndpointObserver* observer = parts().observer) observer->OnRefusedRead();
}

void Endpoint::OnDamage(verbs::QueuePair&, verbs::Damage damage) {
  if (EndpointObserver* observer = parts().observer) observer->OnDamage(damage);
}

}  // namespace viaduct::core
