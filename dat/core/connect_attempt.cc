#include "dat/core/connect_attempt.h"

#include <algorithm>

#include "dat/core/peer_listening.h"

namespace viaduct::core {
namespace {

constexpr verbs::Nanos kFirstBackOff = verbs::kNanosPerMilli;
constexpr verbs::Nanos kLongestBackOff = 20 * verbs::kNanosPerMilli;
// Peer to peer this may be longer: a peer that comes later dials at once.
constexpr verbs::Nanos kLongestPeerBackOff = 100 * verbs::kNanosPerMilli;
// Crossing dials are resolved after one refusal, or two if the first port is not the peer's.
constexpr int kMostRefusals = 3;
constexpr int kFullRound = 4;  // every fourth round tries all ports
constexpr int kMostEmptyRejects = 3;

// True for empty data, too. Fabrics that do not carry a length pad with zeros.
bool IsAllZeros(absl::Span<const uint8_t> data) {
  return std::all_of(data.begin(), data.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

ConnectAttempt::ConnectAttempt(uint64_t serial, verbs::QueuePair& pair, ImmediateAbility immediate,
                               verbs::Executor& executor, const ConnectParameters& parameters,
                               std::vector<uint16_t> ports, Timer timer)
    : serial_(serial),
      pair_(pair),
      immediate_(immediate),
      executor_(executor),
      address_(parameters.target.address),
      ports_(std::move(ports)),
      is_vipl_(parameters.header != nullptr || parameters.peer != nullptr),
      peer_(parameters.peer != nullptr ? std::optional<PeerRequest>(*parameters.peer)
                                       : std::nullopt),
      timer_(std::move(timer)),
      round_end_(ports_.size()),
      grace_(parameters.grace),
      deadline_(parameters.deadline),
      back_off_(kFirstBackOff) {
  BeginGrace();
  std::optional<ConnectionHeader> header;
  if (peer_.has_value()) {
    header.emplace();
    header->kind = HeaderKind::kViplPeerRequest;
    header->remote = peer_->wanted_name;
    header->local = peer_->name;
    header->profile = peer_->profile;
    header->peer_id = peer_->id;
  } else if (parameters.header != nullptr) {
    header = *parameters.header;
  } else if (!parameters.target.name.direct_port().has_value()) {
    header.emplace();
    header->kind = HeaderKind::kDatRequest;
    header->remote = parameters.target.name;
  }
  has_header_ = header.has_value();
  if (has_header_) {
    header->immediate = immediate_;
    header->confirmation = pair_.confirmation_word();
    data_ = EncodeHeader(*header);
  }
  data_.insert(data_.end(), parameters.private_data.begin(), parameters.private_data.end());
  if (!parameters.deadline.infinite()) {
    deadline_timer_ =
        executor.RunAt(parameters.deadline.at(), [t = timer_] { t(AttemptTimer::kDeadline); });
  }
}

ConnectAttempt::~ConnectAttempt() {
  if (deadline_timer_ != 0) executor_.Cancel(deadline_timer_);
  if (retry_timer_ != 0) executor_.Cancel(retry_timer_);
}

absl::Status ConnectAttempt::Start() {
  verbs::ConnectOptions options;
  options.address = address_;
  options.port = ports_[port_];
  options.private_data = data_;
  options.may_frame = has_header_ && immediate_ == ImmediateAbility::kFrames;
  refusals_ = 0;
  return pair_.Connect(options);
}

std::optional<EndpointInput> ConnectAttempt::Retry() {
  retry_timer_ = 0;
  phase_ = Phase::kDialling;
  round_end_ = ++round_ % kFullRound == 0 ? ports_.size() : 1;
  return TryFrom(0);
}

std::optional<EndpointInput> ConnectAttempt::TryFrom(size_t port) {
  for (port_ = port; port_ < round_end_; ++port_) {
    const absl::Status started = Start();
    if (started.ok()) return std::nullopt;
    if (absl::IsResourceExhausted(started)) return EndpointInput::kNoResources;
  }
  if (!peer_.has_value() && (!InGrace() || (refused_ && !is_vipl_))) return Nobody();
  found_nobody_ = !peer_.has_value();
  RetryLater();
  return std::nullopt;
}

// An empty reject counts, whatever answers later tries got.
EndpointInput ConnectAttempt::Nobody() const {
  return empty_rejects_ != 0 ? EndpointInput::kPeerRejected : EndpointInput::kNonPeerRejected;
}

void ConnectAttempt::BeginGrace() {
  grace_end_ = std::min(verbs::Deadline::After(executor_, grace_).at(), deadline_.at());
}

bool ConnectAttempt::InGrace() const { return executor_.Now() + back_off_ < grace_end_; }

void ConnectAttempt::RetryLater() {
  phase_ = Phase::kWaiting;
  retry_timer_ =
      executor_.RunAt(executor_.Now() + back_off_, [t = timer_] { t(AttemptTimer::kNextRound); });
  back_off_ = std::min(2 * back_off_, peer_.has_value() ? kLongestPeerBackOff : kLongestBackOff);
}

bool ConnectAttempt::YieldsTo(uint64_t peer_id) {
  if (refused_peer_ != peer_id) refusals_ = 0;
  refused_peer_ = peer_id;
  return ++refusals_ > kMostRefusals;
}

void ConnectAttempt::Answer() {
  if (retry_timer_ != 0) executor_.Cancel(retry_timer_);
  retry_timer_ = 0;
  phase_ = Phase::kAnswering;
}

void ConnectAttempt::AnswerFailed() {
  back_off_ = kFirstBackOff;
  RetryLater();
}

std::optional<EndpointInput> ConnectAttempt::Failed(verbs::ConnectOutcome outcome,
                                                    absl::Span<const uint8_t> data,
                                                    absl::Span<const uint8_t>* answer) {
  *answer = {};
  if (phase_ == Phase::kAnswering) {
    AnswerFailed();
    return std::nullopt;
  }
  heard_ = heard_ || pair_.Heard();
  switch (outcome) {
    case verbs::ConnectOutcome::kUnreachable:
      // Peer to peer the host may still come up.
      if (!pair_.Heard() && !peer_.has_value()) return EndpointInput::kUnreachable;
      // The host has the request, and was cut off before it answered.
      if (!is_vipl_) return EndpointInput::kTimedOut;
      // VIPL tries again until its time-out; the next try may report that there is no way.
      found_nobody_ = false;
      RetryLater();
      return std::nullopt;
    case verbs::ConnectOutcome::kNoResources:
      return EndpointInput::kNoResources;
    case verbs::ConnectOutcome::kRejected:
      return OnRejected(data, answer);
    case verbs::ConnectOutcome::kRefused:
    case verbs::ConnectOutcome::kGone:
      refused_ = true;
      break;
    case verbs::ConnectOutcome::kNobody:
      break;
  }
  return TryFrom(port_ + 1);
}

std::optional<EndpointInput> ConnectAttempt::OnRejected(absl::Span<const uint8_t> data,
                                                        absl::Span<const uint8_t>* answer) {
  size_t size = 0;
  std::optional<ConnectionHeader> header;
  if (has_header_) header = ParseHeader(data, &size);
  if (header.has_value()) {
    // A name of DAT is served only once: nobody serves it at the other ports.
    if (header->kind == HeaderKind::kBusy && !is_vipl_) return EndpointInput::kNonPeerRejected;
    if (header->kind == HeaderKind::kMismatch && peer_.has_value()) {
      mismatch_ = MismatchOf(header->mismatch);
      return EndpointInput::kPeerRejected;
    }
    if (header->kind != HeaderKind::kReject) return TryFrom(port_ + 1);
  } else if (has_header_) {
    // This library rejects with a header. So a stranger has rejected, or the fabric in place of a
    // listener that has just gone and comes back. At a port that the name spells, the stranger may
    // be the intended server, but is asked again.
    refused_ = true;
    if (ports_.size() > 1) return TryFrom(port_ + 1);
    if (IsAllZeros(data) && ++empty_rejects_ < kMostEmptyRejects) {
      BeginGrace();
      RetryLater();
      return std::nullopt;
    }
  }
  *answer = data.subspan(size);
  return EndpointInput::kPeerRejected;
}

void ConnectAttempt::Accepted(absl::Span<const uint8_t>* data, EndpointProfile* profile,
                              std::optional<ServiceName>* redirected) {
  size_t size = 0;
  if (has_header_) {
    std::optional<ConnectionHeader> header = ParseHeader(*data, &size);
    if (header.has_value() && header->kind == HeaderKind::kAccept) {
      *profile = header->profile;
      data->remove_prefix(size);
      ApplyTerms(pair_, immediate_, *header);
    }
  }
  // A trailer is followed by nothing but the zeros with which fabrics without a length pad.
  for (absl::Span<const uint8_t> left = *data; left.size() >= kTrailerBytes;
       left.remove_suffix(1)) {
    *redirected = ParseTrailer(left.last(kTrailerBytes));
    if (redirected->has_value()) *data = left.first(left.size() - kTrailerBytes);
    if (redirected->has_value() || left.back() != 0) break;
  }
}

EndpointInput ConnectAttempt::TimedOut() {
  const bool answered = phase_ == Phase::kDialling && pair_.Heard();
  const bool heard = is_vipl_ || heard_ || pair_.Heard();
  pair_.Disconnect(verbs::DisconnectMode::kAbrupt);
  // The current round has heard nothing, so the result of the round before counts.
  if (found_nobody_ && !answered) return Nobody();
  return heard ? EndpointInput::kTimedOut : EndpointInput::kUnreachable;
}

}  // namespace viaduct::core
