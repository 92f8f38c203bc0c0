// The life of a connection. What the device completes is in connection_completions.cc.
#include "verbs/rdma/connection.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "verbs/base/back_off.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/log.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/farewell.h"
#include "verbs/rdma/patience.h"
#include "verbs/rdma/shared_receive_queue.h"

namespace viaduct::verbs::rdma {
namespace {

// The key of a write of no bytes, which nobody checks; but for some iWARP devices 0 is wrong.
constexpr uint32_t kNobodysKey = 1;

// If the host has an ibacm, librdmacm asks it for routes, and waits for its answer.
bool HasIbacm() {
  return access("/run/ibacm.sock", F_OK) == 0 || access("/run/ibacm.port", F_OK) == 0;
}

}  // namespace

Connection* Connection::ForDial(Device& device, ConnectionOwner* owner, absl::Status* status) {
  Connection* connection = new Connection(device, nullptr);
  connection->SetOwner(owner);
  if (rdma_create_id(device.connections(), &connection->id_, static_cast<CmHandler*>(connection),
                     RDMA_PS_TCP) != 0) {
    LogErrno(errno, "rdma_create_id");
    delete connection;
    *status = absl::ResourceExhaustedError("rdma_create_id");  // whatever the errno was
    return nullptr;
  }
  return connection;
}

Connection* Connection::ForRequest(Device& device, rdma_cm_id* id) {
  Connection* connection = new Connection(device, id);
  device.SetHandler(id, connection);
  return connection;
}

void Connection::DestroyPair() {
  if (pair() == nullptr) return;
  if (options().shared != nullptr) {
    // A thread that harvests may have looked up this connection there, and still use it.
    PassLockHolder guard(&options().queues[kReceives]->lock);
    options().shared->Leave(pair()->qp_num);
  }
  device_.RemovePair(pair());
  pair_.Destroy();
  // Shared receives that messages have taken are not counted; without a pair no more can come.
  if (options().shared != nullptr) HarvestAll();
}

void Connection::DestroyId() {
  if (id_ == nullptr) return;
  DestroyPair();
  rdma_destroy_id(id_);
  id_ = nullptr;
}

Connection::~Connection() {
  if (nudge_timer_ != 0) device_.loop().Cancel(nudge_timer_);
  DestroyId();
  for (Landing& bounce : bounces_) options().domain->bounces().GiveBack(bounce.memory);
  for (std::vector<Bounce>& left : left_) {
    for (Bounce& bounce : left) options().domain->bounces().GiveBack(bounce);
  }
  for (FrameSlots& frames : frames_) {
    if (!frames.empty()) frames.GiveBack(options().domain->bounces());
  }
}

void Connection::SetOwner(ConnectionOwner* owner) {
  MutexLock lock(&mutex_);
  owner_ = owner;
}

ConnectionOwner* Connection::owner() {
  MutexLock lock(&mutex_);
  return owner_;
}

absl::Status Connection::TakePair(DevicePair pair, const ConnectionPlace& place) {
  const absl::Status status = pair.Join(device_, id_);
  if (!status.ok()) return status;
  pair_ = std::move(pair);
  max_sends_ = pair_.max_requests(kSends) - NudgeRoom(device_);
  device_.AddPair(pair_.handle(), this);
  peer_access_ = place.peer_access;
  memory_ = place.memory;
  ended_ = place.ended;
  if (place.may_frame) {
    for (int i = 0; i < 2; ++i) {
      if (!frames_[i].Allocate(options().domain->bounces(), place.queues[i]->slots())) {
        return absl::ResourceExhaustedError("no memory for frames");
      }
    }
    early_.reserve(place.queues[kReceives]->slots());
  }
  if (options().shared != nullptr) options().shared->Join(pair_.handle()->qp_num, this);
  for (int i = 0; i < 2; ++i) {
    PassLockHolder guard(&options().queues[i]->lock);
    queues_[i] = place.queues[i];
  }
  return absl::OkStatus();
}

ibv_qp_state Connection::PairState() const {
  const CancellationDisabled no_cancellation;  // ibv_query_qp may write()
  ibv_qp_attr attributes = {};
  ibv_qp_init_attr initial = {};
  if (pair() == nullptr || ibv_query_qp(pair(), &attributes, IBV_QP_STATE, &initial) != 0) {
    return IBV_QPS_UNKNOWN;
  }
  return attributes.qp_state;
}

bool Connection::ReceiveIntoBounces(int count, uint32_t bytes) {
  std::vector<Landing> bounces(count);
  for (Landing& bounce : bounces) {
    bounce.memory = options().domain->bounces().Take(bytes);
    if (bounce.memory.memory == nullptr) {
      for (Landing& taken : bounces) options().domain->bounces().GiveBack(taken.memory);
      return false;
    }
  }
  PassLockHolder guard(&options().queues[kReceives]->lock);
  bounces_ = std::move(bounces);
  queues_[kReceives]->Set(WorkQueue::kBounced);
  for (uint32_t slot = 0; slot < bounces_.size(); ++slot) {
    if (!PostBounce(slot)) return false;
  }
  return true;
}

bool Connection::KeepRoomToLeave(Direction direction, uint32_t requests) try {
  left_[direction].reserve(requests);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool Connection::PostBounce(uint32_t slot) {
  if (stopping_) return false;
  const Bounce& bounce = bounces_[slot].memory;
  ibv_sge segments[2] = {};
  int count = 0;
  bounces_[slot].leads = may_frame();
  if (may_frame()) segments[count++] = frames_[kReceives].SegmentAt(slot);
  segments[count++] = {reinterpret_cast<uint64_t>(bounce.memory), bounce.size,
                       bounce.registration->lkey};
  ibv_recv_wr request = {};
  request.wr_id = WorkId::Of(this, kReceives);
  request.sg_list = segments;
  request.num_sge = count;
  ibv_recv_wr* bad;
  if (ibv_post_recv(pair(), &request, &bad) != 0) {
    NoteRefusal();  // otherwise the next message would be looked for in this slot
    return false;
  }
  Posted(kReceives, 1);
  return true;
}

// Gives another reason than a consumer's reject on InfiniBand; MPA has only one kind of reject.
void Connection::Refuse() {
  if (device_.iwarp()) {
    rdma_reject(id_, nullptr, 0);
  } else {
    rdma_reject_ece(id_, nullptr, 0);
  }
}

void Connection::ResolveRoute(int milliseconds) {
  const bool waits = !device_.iwarp() && HasIbacm();
  Dial(RDMA_CM_EVENT_ROUTE_ERROR, waits,
       [this, milliseconds] { return rdma_resolve_route(id_, milliseconds) == 0 ? 0 : errno; });
}

void Connection::Name(rdma_conn_param* parameters) const {
  parameters->qp_num = pair()->qp_num;
  parameters->srq = options().shared != nullptr ? 1 : 0;
}

int Connection::Accept(rdma_conn_param parameters) {
  Name(&parameters);
  if (!device_.iwarp()) {
    const PeerTerms terms = {peer_access_, parameters.responder_resources,
                             parameters.initiator_depth};
    if (const int error = pair_.Open(device_, id_, terms); error != 0) return error;
  }
  if (rdma_accept(id_, &parameters) != 0) return errno;
  accepted_ = true;
  LimitPeer();
  return 0;
}

void Connection::LimitPeer() {
  if (!device_.iwarp()) return;
  if (const int error = pair_.Limit(peer_access_); error != 0) {
    Log(LogLevel::kDebug, device_.name(),
        ": a pair's rights stay the device's: ", std::strerror(error));
  }
}

void Connection::Confirm(const CmEvent& answer) {
  const bool waits = !device_.is_infiniband(id_->port_num) && !dialing_ &&
                     device_.loop().Now() - dialled_at_ > kFreshNeighbour;
  if (!waits) return TellConfirmed(answer, OpenToAnswer());
  answer_ = answer;
  Dial(RDMA_CM_EVENT_CONNECT_ERROR, /*waits=*/true, [this] { return OpenToAnswer(); });
}

int Connection::OpenToAnswer() {
  int error = pair_.TakeAgreed(id_);
  if (error == 0) error = pair_.Open(device_, id_, {.access = peer_access_});
  if (error == 0 && rdma_establish(id_) != 0) error = errno;
  return error;
}

void Connection::TellConfirmed(CmEvent answer, int error) {
  answer.type = error == 0 ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_ERROR;
  answer.status = -error;
  OnCmEvent(answer);
}

void Connection::Connect(rdma_conn_param parameters, absl::Span<const uint8_t> private_data) {
  const std::string data(private_data.begin(), private_data.end());
  dialled_ = true;
  dialled_at_ = device_.loop().Now();
  Name(&parameters);
  // rdma_connect over siw waits for the TCP connection.
  Dial(RDMA_CM_EVENT_ADDR_ERROR, /*waits=*/device_.iwarp(), [this, parameters, data]() mutable {
    parameters.private_data = data.data();
    parameters.private_data_len = static_cast<uint8_t>(data.size());
    return rdma_connect(id_, &parameters) == 0 ? 0 : errno;
  });
}

void Connection::Dial(rdma_cm_event_type failure, bool waits, std::function<int()> call) {
  dialing_ = true;
  dial_failure_ = failure;
  dial_call_ = std::move(call);
  if (!waits) {
    MakeDial();
  } else if (!dial_aside_.Post(this)) {
    dial_error_ = ENOMEM;
    dial_errand_.Post(device_.loop(), this);
  }
}

void Connection::MakeDial() {
  dial_error_ = dial_call_();
  dial_errand_.Post(device_.loop(), this);
}

void Connection::OnDialled() {
  dialing_ = false;
  dial_call_ = nullptr;
  const bool has_route = std::exchange(has_route_, false);
  if (const std::optional<CmEvent> answer = std::exchange(answer_, std::nullopt)) {
    TellConfirmed(*answer, dial_error_);
    for (const CmEvent& event : std::exchange(behind_answer_, {})) OnCmEvent(event);
    dial_error_ = 0;
  }
  if (buried_) return TryToDestroy(0);
  if (dial_error_ != 0) return Report(dial_failure_, dial_error_);
  if (has_route) Report(RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

// ------------------------------------------------------------------------------ control thread

void Connection::Signal(uint32_t signals) {
  signals_.fetch_or(signals);
  signal_errand_.Post(device_.loop(), this);
}

void Connection::SignalOfPeer(uint32_t signals) {
  if (established_) return Signal(signals);
  signals_.fetch_or(signals);
}

void Connection::TellSignals() {
  const uint32_t signals = signals_.exchange(0);
  if (ConnectionOwner* const owner = this->owner()) owner->OnSignals(*this, signals);
}

void Connection::OnCmEvent(const CmEvent& event) {
  if (event.type == RDMA_CM_EVENT_ROUTE_RESOLVED && dialing_) {
    has_route_ = true;  // the call that asked for it is not over yet
    return;
  }
  if (answer_.has_value() && event.type != RDMA_CM_EVENT_DEVICE_REMOVAL) {
    behind_answer_.push_back(event);
    return;
  }
  if (event.type == RDMA_CM_EVENT_CONNECT_RESPONSE) {
    if (dialled_ && !stopping_) Confirm(event);  // else the peer hears of the end
    return;
  }
  // This is how qedr's driver reports that an accept has failed; it reports an end after that.
  if (event.type == RDMA_CM_EVENT_ESTABLISHED && event.status != 0) {
    CmEvent failure = event;
    failure.type = RDMA_CM_EVENT_CONNECT_ERROR;
    return OnCmEvent(failure);
  }
  // Neither changes anything for a connection or a request.
  if (event.type == RDMA_CM_EVENT_ADDR_CHANGE || event.type == RDMA_CM_EVENT_TIMEWAIT_EXIT) return;
  const bool awaited = half_open();
  if (!IsOfTheWay(event.type)) {
    heard_ = true;
    const bool connected = event.type == RDMA_CM_EVENT_ESTABLISHED;
    const bool begins = !connected_.exchange(connected) && connected;
    if (begins && dialled_ && device_.manager() == Manager::kSiw) NudgeLater();
  }
  if (ConnectionOwner* const owner = this->owner()) {
    owner->OnConnectionEvent(*this, event);
  } else if (buried_ && awaited && !half_open()) {
    TryToDestroy(0);
  }
}

// What comes to siw (Linux 6.1) in the moment in which a connection begins there may lie in its
// socket until more comes.
void Connection::NudgeLater() {
  if (nudge_timer_ != 0) return;  // the beginning was reported once more
  nudge_timer_ = device_.loop().RunAt(device_.loop().Now() + kNudges[nudges_], [this] { Nudge(); });
}

void Connection::Nudge() {
  nudge_timer_ = 0;
  if (!connected_ || buried_ || stopping_ || pair() == nullptr) return;
  {
    PassLockHolder guard(&options().queues[kSends]->lock);
    // A nudge that has not gone out yet will do as well.
    if (queues_[kSends] != nullptr && !nudge_is_open_) {
      ibv_send_wr request = {};
      request.wr_id = WorkId::OfNudge(this);
      request.opcode = IBV_WR_RDMA_WRITE;
      request.send_flags = IBV_SEND_SIGNALED;
      request.wr.rdma.rkey = kNobodysKey;
      ibv_send_wr* bad;
      nudge_is_open_ = ibv_post_send(pair(), &request, &bad) == 0;
    }
  }
  if (++nudges_ < static_cast<int>(std::size(kNudges))) NudgeLater();
}

bool Connection::OwesNudge() {
  CompletionCore* const core = options().queues[kSends].get();
  if (core == nullptr) return false;  // no pair was made
  PassLockHolder guard(&core->lock);
  return nudge_is_open_;
}

void Connection::FailLater(rdma_cm_event_type type, int error) {
  failure_ = type;
  failure_error_ = error;
  failure_errand_.Post(device_.loop(), this);
}

void Connection::TellFailure() { Report(failure_, failure_error_); }

void Connection::Report(rdma_cm_event_type type, int error) {
  CmEvent event;
  event.type = type;
  event.status = -error;
  event.id = id_;
  OnCmEvent(event);
}

void Connection::OnQpEvent(ibv_event_type type) {
  if (type == IBV_EVENT_QP_LAST_WQE_REACHED) {
    has_last_receive_ = true;
    return;
  }
  set_failed();
  const uint32_t signals = ConnectionOwner::kFailed |
                           (type == IBV_EVENT_QP_ACCESS_ERR ? ConnectionOwner::kRefusedWrite : 0u);
  type == IBV_EVENT_QP_FATAL ? Signal(signals) : SignalOfPeer(signals);
}

// ----------------------------------------------------------------------------------------- end

// A peer that has ended the connection itself waits for no answer; connected_ is false then.
bool Connection::OwesAnswers() const {
  const bool received = seen_[kReceives].load() != 0 || options().shared != nullptr;
  return device_.answers_late() && connected_ && received;
}

void Connection::Stop(bool established) {
  stopping_ = true;
  unstopped_ = half_open();
  if (unstopped_) return;
  if (OwesAnswers()) Nap(kLateAnswer);
  if (established) rdma_disconnect(id_);
  if (pair() == nullptr) return;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_ERR;
  ibv_modify_qp(pair(), &attributes, IBV_QP_STATE);
  HarvestAll();
}

void Connection::HarvestAll() {
  for (const std::shared_ptr<CompletionCore>& queue : options().queues) {
    if (queue == nullptr) continue;
    PassLockHolder guard(&queue->lock);
    for (int passes = 0; passes < kHarvests && queue->Harvest(); ++passes) {
    }
  }
}

void Connection::Release(Direction direction, Unfinished unfinished) {
  CompletionCore* const core = options().queues[direction].get();
  if (core == nullptr) return;  // no pair was made
  {
    PassLockHolder guard(&core->lock);
    WorkQueue* const queue = queues_[direction];
    queues_[direction] = nullptr;
    if (queue == nullptr) return;
    if (unfinished == Unfinished::kKeep) queue->EndGate();
    queue->ClearOfConnection();
    WorkRecord* flushed = nullptr;
    for (uint32_t i = queue->head(), end = queue->tail(); i != end; ++i) {
      WorkRecord& record = queue->At(i);
      if (record.done) continue;
      // The device may still write to it.
      if (record.bounce.memory != nullptr) {
        left_[direction].push_back(std::exchange(record.bounce, Bounce()));
      }
      record.parts = 0;
      record.rest = WorkRecord::Rest::kSome;
      if (unfinished == Unfinished::kKeep) continue;
      queue->Done(record, record.status != Status::kSuccess ? record.status : Status::kFlushed);
      if (flushed == nullptr) flushed = &record;
    }
    if (flushed != nullptr) queue->FlushDoneBehind(*flushed);
    if (queue->HasNews()) core->List(direction, *queue);
  }
  core->Notify();
}

void Connection::Bury() {
  SetOwner(nullptr);
  burial_errand_.Post(device_.loop(), this);
}

// Completions that come later refer to this object, so it must stay until all have come.
bool Connection::Dead() {
  HarvestAll();
  return posted_[kSends].load() == seen_[kSends].load() &&
         posted_[kReceives].load() == seen_[kReceives].load() && !OwesNudge() &&
         !AwaitsLastReceive();
}

// On iWARP TCP makes sure that the peer learns of the end. But destroying an id whose request has
// no answer yet waits in iw_cm for the answer, or for siw's own time-out of seconds, and a driver
// of hardware may wait in ibv_destroy_qp until TCP has ended (cxgb4, up to a minute). So both are
// done aside, unless no thread can be had. The control thread then deletes the object, after
// everything posted to it before.
void Connection::Destroy() {
  // An event that changes connected_ may have been read, but not handled.
  for (const CmEvent& event : device_.TakeEventsOf(*this)) OnCmEvent(event);
  if (connected_ && !device_.iwarp()) {
    DestroyPair();
    Farewell::Say(device_, std::exchange(id_, nullptr));
  }
  const bool unanswered = device_.iwarp() && dialled_ && !established_;
  const bool may_wait = unanswered || device_.manager() == Manager::kIwarp;
  if (!may_wait || !destruction_aside_.Post(this)) MakeDestruction();
}

void Connection::MakeDestruction() {
  DestroyId();
  deletion_errand_.Post(device_.loop(), this);
}

void Connection::Delete() {
  HarvestAll();  // its pair is destroyed, and completes nothing after this
  device_.Forget(*this);
  delete this;
}

void Connection::TryToDestroy(int tries) {
  buried_ = true;
  if (dialing_ || half_open()) return;  // whatever ends that calls this again
  if (unstopped_) Stop(true);
  // When it reads events, on this thread, librdmacm changes the state of the pair that an id has;
  // on iWARP the id has one.
  id_->qp = nullptr;
  if (Dead()) {
    Destroy();
    return;
  }
  if (tries == kBurialTries) {
    // siw flushes a pair once, and never what is posted after that.
    Log(LogLevel::kDebug, device_.name(), ": a queue pair does not give its requests back");
    Destroy();
    return;
  }
  device_.loop().RunAt(device_.loop().Now() + kBurialInterval,
                       [this, next = tries + 1] { TryToDestroy(next); });
}

}  // namespace viaduct::verbs::rdma
