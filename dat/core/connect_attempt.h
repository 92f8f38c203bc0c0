// ConnectAttempt: the active side of one connection, from the call to its outcome.
//
// A name is looked for on its ports, one after the other. "Nobody there" on all of them is the
// answer, unless there is grace: then the round is repeated with back-off as long as the next one
// begins before the end of the grace and the deadline; so a host that answers never leads to a
// time-out. The deadline ends what is silent. DAT's grace is for names that nobody serves: whoever
// was there and refused (a full backlog, a handshake that failed) is not asked again.
//
// VIPL asks a second and a third time where the answer is a "no" without a word, which may be
// padded, whatever the grace, which then begins anew: siw gives it for a connection that breaks
// before its answer, as one does that meets the end of a listener, and there InfiniBand's CM does.
//
// Peer to peer there is no such answer before the deadline, and no "unreachable" either: the
// attempt dials with back-off for ever, and listens meanwhile. It is in one of three phases:
// dialling, waiting for the next round, or answering the other side's dial, which
// Endpoint::OfferPeer has accepted.
//
// Owned by its endpoint; every call under the endpoint's lock. Timers call the endpoint back
// with the attempt's serial, so that one that comes late finds another serial and does nothing.
#ifndef VIADUCT_DAT_CORE_CONNECT_ATTEMPT_H_
#define VIADUCT_DAT_CORE_CONNECT_ATTEMPT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "dat/core/connection_header.h"
#include "dat/core/endpoint.h"
#include "dat/core/endpoint_state.h"
#include "dat/core/peer_match.h"
#include "verbs/device.h"

namespace viaduct::core {

class PeerListening;

enum class AttemptTimer : uint8_t { kDeadline, kNextRound };

class ConnectAttempt {
 public:
  using Timer = std::function<void(AttemptTimer due)>;

  // `timer` runs on the executor.
  ConnectAttempt(uint64_t serial, verbs::QueuePair& pair, ImmediateAbility immediate,
                 verbs::Executor& executor, const ConnectParameters& parameters,
                 std::vector<uint16_t> ports, Timer timer);
  // Cancels the timers. Not under the endpoint's lock, since a listening half takes the manager's
  // at its end. One that could not be started may go there: it has none yet, and Cancel does not
  // wait.
  ~ConnectAttempt();

  uint64_t serial() const { return serial_; }
  // What the request carries, the engine's header and the consumer's private data.
  size_t request_bytes() const { return data_.size(); }

  // The first try. An error is the device's word on the address; nothing is under way then.
  absl::Status Start();
  // The next round.
  std::optional<EndpointInput> Retry();
  // A try has failed. Null while another one is under way or due. `answer` gets the part of
  // `data` that is the peer's consumer's.
  std::optional<EndpointInput> Failed(verbs::ConnectOutcome outcome, absl::Span<const uint8_t> data,
                                      absl::Span<const uint8_t>* answer);
  // The peer accepted: takes the engine's part off `data` into `profile` and `redirected`, and
  // applies to the pair what it says.
  void Accepted(absl::Span<const uint8_t>* data, EndpointProfile* profile,
                std::optional<ServiceName>* redirected);
  // ---- peer to peer
  // Null: an attempt of another kind.
  const PeerRequest* peer() const { return peer_.has_value() ? &*peer_ : nullptr; }
  void Listen(std::unique_ptr<PeerListening> listening) { listening_ = std::move(listening); }
  bool dialling() const { return phase_ == Phase::kDialling; }
  bool answering() const { return phase_ == Phase::kAnswering; }
  // A dial of the peer with that id, which loses against ours, is about to be refused. True when it
  // has come so often that ours cannot have reached the peer, which would have given its own up.
  bool YieldsTo(uint64_t peer_id);
  // The pair is idle, and accepts the other side's dial.
  void Answer();
  // Nothing has come of that: dial again.
  void AnswerFailed();
  // Of a Failed that came to kPeerRejected.
  PeerMismatch mismatch() const { return mismatch_; }

  // The deadline has passed: what that means.
  EndpointInput TimedOut();

 private:
  enum class Phase : uint8_t { kDialling, kWaiting, kAnswering };
  std::optional<EndpointInput> TryFrom(size_t port);
  // Failed, as kRejected.
  std::optional<EndpointInput> OnRejected(absl::Span<const uint8_t> data,
                                          absl::Span<const uint8_t>* answer);
  void BeginGrace();
  // The next round would begin before the end of the grace.
  bool InGrace() const;
  void RetryLater();
  // What a round comes to that has found nobody.
  EndpointInput Nobody() const;

  const uint64_t serial_;
  verbs::QueuePair& pair_;
  const ImmediateAbility immediate_;
  verbs::Executor& executor_;
  const verbs::Address address_;
  const std::vector<uint16_t> ports_;
  // A request of VIPL, not of DAT: one that was refused is repeated within the grace too, one that
  // was cut off before its answer until the deadline, and a host that was never heard has timed
  // out then, as any other.
  const bool is_vipl_;
  const std::optional<PeerRequest> peer_;
  const Timer timer_;
  std::vector<uint8_t> data_;  // header and the consumer's private data
  bool has_header_ = false;
  bool heard_ = false;         // by an earlier try; the queue pair knows of the last one only
  bool refused_ = false;       // a try met somebody
  bool found_nobody_ = false;  // the last round that is over
  int empty_rejects_ = 0;      // with no data or zeros: they may be the fabric's
  Phase phase_ = Phase::kDialling;
  PeerMismatch mismatch_ = PeerMismatch::kNone;
  uint64_t refused_peer_ = 0;
  int refusals_ = 0;  // of that peer, since this dial began
  size_t port_ = 0;
  size_t round_end_;  // of the ports that this round tries
  int round_ = 0;
  const verbs::Nanos grace_;
  const verbs::Deadline deadline_;
  verbs::Nanos grace_end_ = 0;
  verbs::Nanos back_off_;
  verbs::Executor::TimerId deadline_timer_ = 0;
  verbs::Executor::TimerId retry_timer_ = 0;
  std::unique_ptr<PeerListening> listening_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECT_ATTEMPT_H_
