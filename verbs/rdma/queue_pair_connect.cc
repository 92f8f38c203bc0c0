// Connecting a queue pair: what the program asks for, and what the control thread is notified of.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/queue_pair.h"
#include "verbs/rdma/registration.h"

namespace viaduct::verbs::rdma {
namespace {

constexpr uint32_t kMaxReads = 255;  // of rdma_conn_param

uint8_t ReadLimit(uint32_t wanted, int device) {
  const uint32_t most = std::min(static_cast<uint32_t>(std::max(device, 0)), kMaxReads);
  return static_cast<uint8_t>(wanted == 0 ? most : std::min(wanted, most));
}

}  // namespace

absl::Status RdmaQueuePair::Connect(const ConnectOptions& options) {
  MutexLock lock(&mutex_);
  if (state_ != State::kIdle) return absl::FailedPreconditionError("not idle");
  question_.assign(options.private_data.begin(), options.private_data.end());
  absl::Status status;
  Connection* const connection = Connection::ForDial(device_, this, &status);
  if (connection == nullptr) return status;
  heard_ = false;
  ended_ = false;
  may_frame_ = options.may_frame && device_.iwarp() && shared_ == nullptr;
  peer_ = options.address;
  peer_port_ = options.port;
  dialled_ = true;
  dials_left_ = kStaleTries;
  Dial(*connection);
  return absl::OkStatus();
}

void RdmaQueuePair::Dial(Connection& connection) {
  state_ = State::kConnecting;
  connection_ = &connection;
  --dials_left_;
  tries_left_ = kResolveTries;
  if (!Resolve(connection)) {
    // No route, or the network is down: known at once, but reported as if it came from the network.
    connection.FailLater(RDMA_CM_EVENT_ADDR_ERROR, errno);
  }
  local_port_ = ntohs(rdma_get_src_port(connection.id()));
}

bool RdmaQueuePair::DialAgain(Connection& connection) {
  MutexLock lock(&mutex_);
  if (connection_ != &connection || state_ != State::kConnecting || dials_left_ == 0) return false;
  absl::Status status;
  Connection* const next = Connection::ForDial(device_, this, &status);
  if (next == nullptr) return false;
  DropConnection(State::kIdle);
  Dial(*next);
  return true;
}

bool RdmaQueuePair::Resolve(Connection& connection) {
  sockaddr_storage from, to;
  address_.ToSockaddr(0, &from);
  // The loopback interface has no RDMA device: this host is reached at the device's own address.
  (peer_.IsLoopback() ? address_ : peer_).ToSockaddr(peer_port_, &to);
  --tries_left_;
  return rdma_resolve_addr(connection.id(), reinterpret_cast<sockaddr*>(&from),
                           reinterpret_cast<sockaddr*>(&to), kResolveMs) == 0;
}

bool RdmaQueuePair::ResolveAgain(Connection& connection) {
  MutexLock lock(&mutex_);
  return connection_ == &connection && state_ == State::kConnecting && tries_left_ > 0 &&
         Resolve(connection);
}

void RdmaQueuePair::EnableImmediate(ImmediateForm form) {
  SpinLockHolder guard(&send_lock_);
  immediate_form_ = form;
  SetPlainOpcodes();
}

// siw (Linux 6.1) answers an empty read that had to wait behind a send of its own with the bytes of
// that send, which another siw regards as an error. So peers of siw read a word instead.
std::optional<ConfirmationWord> RdmaQueuePair::confirmation_word() {
  if (device_.manager() != Manager::kSiw) return std::nullopt;
  const ibv_mr* const memory = domain_->confirmation().Registration();
  if (memory == nullptr) return std::nullopt;
  return ConfirmationWord{reinterpret_cast<uint64_t>(memory->addr), memory->rkey};
}

void RdmaQueuePair::ConfirmBy(const std::optional<ConfirmationWord>& word) {
  ConfirmationWord by;
  ibv_sge to = {};
  if (word.has_value() && device_.iwarp()) {
    if (const ibv_mr* const memory = domain_->confirmation().Registration(); memory != nullptr) {
      by = *word;
      to = {reinterpret_cast<uint64_t>(memory->addr), ConfirmationWord::kBytes, memory->lkey};
    }
  }
  SpinLockHolder guard(&send_lock_);
  confirm_by_ = by;
  confirm_to_ = to;
}

ImmediateForm RdmaQueuePair::immediate_form() {
  SpinLockHolder guard(&send_lock_);
  return immediate_form_;
}

rdma_conn_param RdmaQueuePair::Parameters() const {
  rdma_conn_param parameters = {};
  parameters.responder_resources =
      ReadLimit(options_.max_reads_in, device_.limits().max_qp_rd_atom);
  parameters.initiator_depth =
      ReadLimit(options_.max_reads_out, device_.limits().max_qp_init_rd_atom);
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = ReceiverNotReadyRetries(options_.no_receive);
  return parameters;
}

absl::Status RdmaQueuePair::Prepare(Connection& connection, bool may_frame) try {
  DevicePair pair = std::move(next_pair_);
  if (pair.handle() == nullptr) {
    absl::StatusOr<DevicePair> made = DevicePair::Make(device_, pair_options_);
    if (!made.ok()) return made.status();
    pair = *std::move(made);
  }
  ConnectionPlace place;
  place.queues[kSends] = &sends_;
  place.queues[kReceives] = &receives_;
  place.memory = &memory_;
  place.ended = &ended_;
  place.may_frame = may_frame;
  place.peer_access = options_.remote_access;
  const absl::Status status = connection.TakePair(std::move(pair), place);
  if (!status.ok()) return status;
  SpinLockHolder guard(&receive_lock_);
  {
    PassLockHolder queue_guard(&core(kReceives).lock);
    receives_.Gate();
  }
  if (drops()) {
    if (!connection.ReceiveIntoBounces(kDropBounces, kMaxDropBytes)) {
      return absl::ResourceExhaustedError("no memory for messages");
    }
  } else if (shared_ == nullptr) {
    std::vector<uint32_t> waiting;
    {
      PassLockHolder queue_guard(&core(kReceives).lock);
      for (uint32_t i = receives_.head(), end = receives_.tail(); i != end; ++i) {
        if (receives_.At(i).done) continue;
        receives_.At(i).parts = 1;
        waiting.push_back(i);
      }
    }
    for (uint32_t i : waiting) {
      WorkRecord& record = receives_.At(i);
      const Segment* const segments = receives_.SegmentsOf(record);
      if (!TakeBounce(connection, record, segments)) {
        return absl::ResourceExhaustedError("no memory for a receive");
      }
      if (!PostReceiveToDevice(connection, record, segments)) {
        connection.Unposted(kReceives, 1);
        return absl::ResourceExhaustedError("the device refuses a receive");
      }
    }
  }
  receiving_ = &connection;
  PreparePlainReceive(connection);
  return absl::OkStatus();
} catch (const std::bad_alloc&) {
  return absl::Status(absl::StatusCode::kResourceExhausted, "");  // a text would need memory
}

absl::Status RdmaQueuePair::Accept(Connection& connection, uint8_t responder_resources,
                                   uint8_t initiator_depth,
                                   absl::Span<const uint8_t> private_data) {
  MutexLock lock(&mutex_);
  if (state_ != State::kIdle) return absl::FailedPreconditionError("not idle");
  ended_ = false;
  rdma_conn_param parameters = Parameters();
  // rdma_get_cm_event(3): in a request both numbers are as this end sees them: how many reads it
  // must answer, and how many it may ask for. siw shows 0 and 0 if the request has not told them
  // (MPA revision 1) and then gives a pair what it is asked for, without which no read, and so no
  // confirmation, would pass. The soft device, too, takes such a peer to answer one at a time.
  const bool told =
      responder_resources != 0 || initiator_depth != 0 || device_.manager() != Manager::kSiw;
  if (told) {
    parameters.responder_resources = std::min(parameters.responder_resources, responder_resources);
  }
  parameters.initiator_depth =
      std::min(parameters.initiator_depth, told ? initiator_depth : uint8_t{1});
  const bool framed = immediate_form() == ImmediateForm::kFramed;
  const absl::Status status = Prepare(connection, framed);
  connection_ = &connection;
  if (!status.ok() && !absl::IsAborted(status)) {
    connection.Refuse();
    DropConnection(State::kIdle);
    return status;
  }
  connection.SetOwner(this);
  int error = ECONNRESET;
  if (status.ok()) {
    parameters.private_data = private_data.data();
    parameters.private_data_len = static_cast<uint8_t>(private_data.size());
    error = connection.Accept(parameters);
    if (error != 0) {
      // Destroying the id would also answer the peer, but as if a program had rejected the request.
      // The kernel has answered so already if rdma_accept failed there.
      connection.Refuse();
      if (OutcomeOfErrno(error) == ConnectOutcome::kNoResources) {
        LogErrno(error, "accept of a connection");
        DropConnection(State::kIdle);
        return absl::Status(absl::StatusCode::kResourceExhausted, "");
      }
    }
  }
  dialled_ = false;
  dials_left_ = 0;
  heard_ = true;
  state_ = State::kConnecting;
  local_port_ = ntohs(rdma_get_src_port(connection.id()));
  if (error != 0) {
    Log(LogLevel::kDebug, device_.name(), ": accept: ", std::strerror(error));
    connection.FailLater(RDMA_CM_EVENT_CONNECT_ERROR, error);
  }
  return absl::OkStatus();
}

// ------------------------------------------------------------------------------ control thread

void RdmaQueuePair::OnConnectionEvent(Connection& connection, const CmEvent& event) {
  if (HeardWith(event.type, event.status, device_.manager())) SetHeard(connection, true);
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      EndResolution(connection);
      connection.ResolveRoute(kRouteMs);
      break;
    case RDMA_CM_EVENT_ADDR_ERROR:
      if (event.status == -ETIMEDOUT && ResolveAgain(connection)) break;
      FailBy(connection, event);
      break;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      Route(connection);
      break;
    case RDMA_CM_EVENT_ESTABLISHED:
      Established(connection, event);
      break;
    case RDMA_CM_EVENT_DISCONNECTED:
      Disconnected(connection, event);
      break;
    case RDMA_CM_EVENT_REJECTED:
      Rejected(connection, event);
      break;
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      Log(LogLevel::kWarn, device_.name(), ": the device is being removed");
      connection.set_failed();
      FailBy(connection, event);
      break;
    default:
      FailBy(connection, event);
      break;
  }
}

void RdmaQueuePair::FailBy(Connection& connection, const CmEvent& event) {
  if (IsStale(event.type, event.status, device_.manager()) && DialAgain(connection)) return;
  const ConnectOutcome outcome =
      OutcomeOf(event.type, event.status, device_.manager(), !event.private_data.empty());
  // A neighbour that has answered was only the next hop.
  if (outcome == ConnectOutcome::kUnreachable) SetHeard(connection, false);
  Fail(connection, outcome, event.private_data);
}

// A time-out that comes after this is one of the connection.
void RdmaQueuePair::EndResolution(const Connection& connection) {
  MutexLock lock(&mutex_);
  if (connection_ == &connection) tries_left_ = 0;
}

void RdmaQueuePair::SetHeard(const Connection& connection, bool heard) {
  MutexLock lock(&mutex_);
  if (connection_ == &connection) heard_.store(heard, std::memory_order_relaxed);
}

void RdmaQueuePair::Route(Connection& connection) {
  bool prepared;
  {
    MutexLock lock(&mutex_);
    if (connection_ != &connection || state_ != State::kConnecting) return;
    local_port_ = ntohs(rdma_get_src_port(connection.id()));
    prepared = Prepare(connection, may_frame_).ok();
    if (prepared) {
      connection.Connect(Parameters(),
                         absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(question_.data()),
                                             question_.size()));
    }
  }
  if (!prepared) Fail(connection, ConnectOutcome::kNoResources, {});
}

void RdmaQueuePair::Established(Connection& connection, const CmEvent& event) {
  bool answer;
  uint32_t cuts;
  {
    MutexLock lock(&mutex_);
    if (connection_ != &connection || state_ != State::kConnecting) return;
    state_ = State::kConnected;
    cuts = cuts_;
    {
      PassLockHolder guard(&core(kReceives).lock);
      connection.set_established();
    }
    if (connection.failed()) connection.Signal(kFailed);
    answer = dialled_;
    if (answer) connection.LimitPeer();
    SpinLockHolder guard(&send_lock_);
    sending_ = &connection;
    stopped_ = false;
    PreparePlain(connection);
  }
  if (!MayTell(cuts)) return;
  sink_->OnConnected(
      *this, answer ? absl::MakeConstSpan(event.private_data) : absl::Span<const uint8_t>());
  if (connection.owner() != this) return;
  MutexLock lock(&mutex_);
  if (connection_ != &connection) return;
  const bool framed = immediate_form() == ImmediateForm::kFramed;
  bool news;
  {
    PassLockHolder guard(&core(kReceives).lock);
    connection.SetFramed(framed);
    receives_.Clear(WorkQueue::kGated);
    news = receives_.HasNews();
    if (news) core(kReceives).List(kReceives, receives_);
  }
  if (news) core(kReceives).Notify();
}

void RdmaQueuePair::Disconnected(Connection& connection, const CmEvent& event) {
  bool confirms;
  {
    MutexLock lock(&mutex_);
    confirms = !device_.iwarp() && connection.accepted();
  }
  if (confirms) {
    Established(connection, event);
    connection.TellSignals();  // signals that waited for it come before the end
    if (connection.owner() != this) return;
  }
  End(connection, CauseOf(connection));
}

void RdmaQueuePair::Rejected(Connection& connection, const CmEvent& event) {
  bool begun;
  {
    MutexLock lock(&mutex_);
    begun = connection_ == &connection && state_ != State::kConnecting;
  }
  if (begun && IsProgramsReject(event.type, event.status, device_.manager())) {
    End(connection, CauseOf(connection));
  } else {
    FailBy(connection, event);
  }
}

void RdmaQueuePair::LogFailure(ConnectOutcome outcome) {
  Log(LogLevel::kInfo, device_.name(), ": no connection from ", address_.ToString(), " to ",
      dialled_ ? absl::StrCat(peer_.ToString(), " port ", peer_port_) : "its peer", ": ",
      Explanation(outcome));
}

void RdmaQueuePair::Fail(Connection& connection, ConnectOutcome outcome,
                         absl::Span<const uint8_t> data) {
  bool connected;
  uint32_t cuts;
  {
    MutexLock lock(&mutex_);
    if (connection_ != &connection) return;
    cuts = cuts_;
    connected = state_ != State::kConnecting;
    if (!connected) {
      if (!dialled_) outcome = ConnectOutcome::kGone;
      LogFailure(outcome);
      DropConnection(State::kIdle);
    }
  }
  if (connected) {
    End(connection, DisconnectCause::kBroken);
    return;
  }
  if (outcome != ConnectOutcome::kRejected) data = {};
  if (MayTell(cuts)) sink_->OnConnectFailed(*this, outcome, data);
}

DisconnectCause RdmaQueuePair::CauseOf(Connection& connection) {
  connection.HarvestAll();
  if (connection.failed()) return DisconnectCause::kBroken;
  // The responder sees an error only in the pair's state. An iWARP pair is in this state whatever
  // has happened.
  if (!device_.iwarp() && connection.PairState() == IBV_QPS_ERR) return DisconnectCause::kBroken;
  return DisconnectCause::kPeer;
}

void RdmaQueuePair::End(Connection& connection, DisconnectCause cause) {
  bool connected;
  ConnectOutcome outcome;
  uint32_t cuts;
  {
    MutexLock lock(&mutex_);
    if (connection_ != &connection) return;
    cuts = cuts_;
    connected = state_ == State::kConnected || state_ == State::kClosing;
    outcome = dialled_ ? ConnectOutcome::kRefused : ConnectOutcome::kGone;
    if (connected && cause != DisconnectCause::kLocal) ended_ = true;
    if (!connected) LogFailure(outcome);
    DropConnection(connected ? State::kError : State::kIdle);
  }
  if (!MayTell(cuts)) return;
  if (connected) {
    sink_->OnDisconnected(*this, cause);
  } else {
    sink_->OnConnectFailed(*this, outcome, {});
  }
}

void RdmaQueuePair::OnSignals(Connection& connection, uint32_t signals) {
  uint32_t cuts;
  {
    MutexLock lock(&mutex_);
    if (connection_ != &connection) return;
    cuts = cuts_;
  }
  if ((signals & kRefusedWrite) != 0) {
    if (!MayTell(cuts)) return;
    sink_->OnRefusedWrite(*this);
    if (connection.owner() != this) return;
  }
  if ((signals & kDropped) != 0) {
    for (uint32_t left = connection.TakeDropped(); left > 0; --left) {
      if (!MayTell(cuts)) return;
      sink_->OnDropped(*this);
      if (connection.owner() != this) return;
    }
  }
  if ((signals & kFailed) != 0) {
    // During an attempt this means that the device has refused a receive, or has failed.
    Fail(connection, ConnectOutcome::kNoResources, {});
  } else if ((signals & kDrained) != 0) {
    End(connection, DisconnectCause::kLocal);
  }
}

}  // namespace viaduct::verbs::rdma
