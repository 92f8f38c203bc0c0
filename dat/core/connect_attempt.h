// ConnectAttempt: the active side of one connection, from the call to its outcome.
//
// A round tries the name's ports, one after the other. If nobody is found on any of them, that is
// the outcome, unless there is grace: then the round is repeated with back-off as long as the next
// one begins before the end of the grace and the deadline. So a host that answers never leads to a
// time-out; the deadline ends an attempt that gets no answer. DAT's grace is for names that nobody
// serves: if somebody was there and refused (a full backlog, a failed handshake), DAT does not ask
// again.
//
// If the name has one port only, VIPL asks a second and a third time after a reject that carries no
// data, or only the zeros of padding. This does not depend on the grace, which then begins anew.
// siw reports such a reject for a connection that breaks before its answer, as happens when a
// listener ends; InfiniBand's CM sends one when a listener ends.
//
// A peer-to-peer attempt does not end before the deadline because nobody is found or the host is
// unreachable: it dials with back-off for ever, and listens meanwhile. It is in one of three
// phases: dialling, waiting for the next round, or answering the peer's dial, which
// Endpoint::OfferPeer has accepted.
//
// Owned by its endpoint; every call under the endpoint's lock. Timers call the endpoint back with
// the attempt's serial: a late one finds another serial and does nothing.
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
  // Cancels the timers. Not under the endpoint's lock, since the end of a listening half takes the
  // manager's lock. An attempt that could not be started may be destroyed under it: it has no
  // listening half yet, and Cancel does not wait.
  ~ConnectAttempt();

  uint64_t serial() const { return serial_; }
  // The size of the engine's header and the consumer's private data.
  size_t request_bytes() const { return data_.size(); }

  // Tries the current port. An error means that the device does not accept the address or lacks
  // resources; then nothing is under way.
  absl::Status Start();
  // Begins the next round.
  std::optional<EndpointInput> Retry();
  // A try has failed. Null while another one is under way or due. `answer` gets the part of `data`
  // that belongs to the peer's consumer.
  std::optional<EndpointInput> Failed(verbs::ConnectOutcome outcome, absl::Span<const uint8_t> data,
                                      absl::Span<const uint8_t>* answer);
  // The peer accepted: moves the engine's part of `data` into `profile` and `redirected`, and
  // applies its terms to the queue pair.
  void Accepted(absl::Span<const uint8_t>* data, EndpointProfile* profile,
                std::optional<ServiceName>* redirected);
  // ---- peer to peer
  // Null for an attempt of another kind.
  const PeerRequest* peer() const { return peer_.has_value() ? &*peer_ : nullptr; }
  void Listen(std::unique_ptr<PeerListening> listening) { listening_ = std::move(listening); }
  bool dialling() const { return phase_ == Phase::kDialling; }
  bool answering() const { return phase_ == Phase::kAnswering; }
  // A dial of the peer with that id, which loses against ours, is about to be refused. True if it
  // has come so often that our dial cannot have reached the peer, which would have given up its
  // own.
  bool YieldsTo(uint64_t peer_id);
  // The queue pair is idle, and is about to accept the peer's dial.
  void Answer();
  // The accept has failed: dial again.
  void AnswerFailed();
  // After Failed has returned kPeerRejected: why.
  PeerMismatch mismatch() const { return mismatch_; }

  // The deadline has passed: ends the try, and returns the outcome of the attempt.
  EndpointInput TimedOut();

 private:
  enum class Phase : uint8_t { kDialling, kWaiting, kAnswering };
  std::optional<EndpointInput> TryFrom(size_t port);
  // Failed, with the outcome kRejected.
  std::optional<EndpointInput> OnRejected(absl::Span<const uint8_t> data,
                                          absl::Span<const uint8_t>* answer);
  void BeginGrace();
  // The next round would begin before the end of the grace.
  bool InGrace() const;
  void RetryLater();
  // The outcome if the last round has found nobody.
  EndpointInput Nobody() const;

  const uint64_t serial_;
  verbs::QueuePair& pair_;
  const ImmediateAbility immediate_;
  verbs::Executor& executor_;
  const verbs::Address address_;
  const std::vector<uint16_t> ports_;
  // The request is VIPL's, not DAT's. Within the grace it is repeated even if it was refused, and
  // until the deadline if it was cut off before its answer. At the deadline it has timed out even
  // if the host was never heard.
  const bool is_vipl_;
  const std::optional<PeerRequest> peer_;
  const Timer timer_;
  std::vector<uint8_t> data_;  // header and the consumer's private data
  bool has_header_ = false;
  bool heard_ = false;         // an earlier try heard the host; the queue pair knows the last only
  bool refused_ = false;       // a try was refused by somebody
  bool found_nobody_ = false;  // the last complete round found nobody
  int empty_rejects_ = 0;      // with no data or zeros: the fabric may have sent them
  Phase phase_ = Phase::kDialling;
  PeerMismatch mismatch_ = PeerMismatch::kNone;
  uint64_t refused_peer_ = 0;
  int refusals_ = 0;  // how often that peer was refused since this dial began
  size_t port_ = 0;
  size_t round_end_;  // this round tries the ports before this index
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
