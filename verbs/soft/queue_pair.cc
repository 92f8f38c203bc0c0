// Creation, states, connecting and ending. Posting is in queue_pair_post.cc; what wires and
// completion queues call is in queue_pair_inbound.cc and queue_pair_serve.cc.
#include "verbs/soft/queue_pair.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "verbs/soft/context.h"
#include "verbs/soft/shared_receive_queue.h"

namespace viaduct::verbs {
namespace {

// The most receives that a pair may take out of a shared receive queue before their completions are
// reaped. A smaller queue may grow later.
constexpr uint32_t kMaxTaken = 256;

// How long messages that find no receive delay the end of their connection while none is taken.
constexpr Nanos kTakeTime = kNanosPerSecond;

SoftCompletionQueue& AsSoft(CompletionQueue* queue) {
  return *static_cast<SoftCompletionQueue*>(queue);
}
SoftSharedReceiveQueue* AsSoft(SharedReceiveQueue* queue) {
  return static_cast<SoftSharedReceiveQueue*>(queue);
}

}  // namespace

// ---------------------------------------------------------------------------------- creation

absl::StatusOr<std::unique_ptr<SoftQueuePair>> SoftQueuePair::Create(
    SoftContext& context, const QueuePairOptions& options) {
  if (options.domain == nullptr || options.send_queue == nullptr ||
      options.receive_queue == nullptr || options.sink == nullptr) {
    return absl::InvalidArgumentError("a queue pair needs a domain, two queues and a sink");
  }
  if (options.shared_receives != nullptr &&
      AsSoft(options.shared_receives)->domain() !=
          static_cast<const SoftDomain*>(options.domain)->id()) {
    return absl::InvalidArgumentError("the shared receive queue is in another domain");
  }
  std::unique_ptr<SoftQueuePair> pair(new SoftQueuePair(context, options));
  // Not in the constructor: if memory runs out here, the destructor undoes what has been done.
  pair->regions_.AddUser(&pair->send_lock_);
  if (pair->shared_ != nullptr) pair->shared_->AddPair(*pair);
  absl::Status applied = pair->Apply(options);
  if (!applied.ok()) return applied;
  pair->anchor_->Begin(pair.get());
  return pair;
}

SoftQueuePair::SoftQueuePair(SoftContext& context, const QueuePairOptions& options)
    : context_(context),
      regions_(context.regions()),
      anchor_(std::make_shared<decltype(anchor_)::element_type>()),
      sink_(options.sink),
      user_context_(options.context),
      own_domain_(context.NewDomain()),
      home_(AsSoft(options.receive_queue)),
      send_home_(AsSoft(options.send_queue)),
      max_message_(context.attributes().max_message_bytes),
      shared_(AsSoft(options.shared_receives)) {
  attachments_[0].pair = attachments_[1].pair = this;
  attachments_[0].queue = &home_;
  attachments_[0].home = true;
  if (&home_ == &send_home_) {
    attachments_[0].sends = true;
  } else {
    attachment_count_ = 2;
    attachments_[1].queue = &send_home_;
    attachments_[1].sends = true;
  }
}

SoftQueuePair::~SoftQueuePair() {
  Disconnect(DisconnectMode::kAbrupt);
  if (shared_ != nullptr) shared_->RemovePair(*this);
  // The executor does not know a pair that Create failed to make.
  if (anchor_->End()) context_.executor().Drain();
  for (int i = 0; i < attachment_count_; i++) {
    PassLockHolder holder(&attachments_[i].queue->lock());
    attachments_[i].queue->Forget(attachments_[i]);
  }
  regions_.RemoveUser(&send_lock_);
}

absl::Status SoftQueuePair::Apply(const QueuePairOptions& options) {
  const DeviceAttributes& limits = context_.attributes();
  if (options.max_sends > limits.max_requests_per_queue ||
      options.max_receives > limits.max_requests_per_queue ||
      options.max_send_segments > limits.max_segments ||
      options.max_receive_segments > limits.max_segments ||
      options.max_reads_in > limits.max_reads_in || options.max_reads_out > limits.max_reads_out) {
    return absl::InvalidArgumentError("above the device's limits");
  }
  uint32_t receives = options.max_receives;
  uint32_t receive_segments = options.max_receive_segments;
  if (shared_ != nullptr) {
    receives = kMaxTaken;
    receive_segments = shared_->max_segments();
  }
  if (!sends_.Allow(options.max_sends, options.max_send_segments) ||
      !receives_.Allow(receives, receive_segments) ||
      (shared_ != nullptr && !receives_.MakeAllRoom())) {
    return absl::ResourceExhaustedError("no memory for the work queues");
  }
  domain_ = static_cast<const SoftDomain*>(options.domain)->id();
  no_receive_ = options.no_receive;
  remote_access_ = options.remote_access;
  max_reads_in_ = options.max_reads_in == 0 ? limits.max_reads_in : options.max_reads_in;
  max_reads_out_ = options.max_reads_out == 0 ? limits.max_reads_out : options.max_reads_out;
  reads_out_limit_ = max_reads_out_;
  return absl::OkStatus();
}

absl::Status SoftQueuePair::Modify(const QueuePairOptions& options) {
  MutexLock control(&control_);
  if (state_.load() != State::kIdle) return absl::FailedPreconditionError("not idle");
  LockAll();
  absl::Status applied = Apply(options);
  UnlockAll();
  return applied;
}

// -------------------------------------------------------------------------------- connecting

void SoftQueuePair::Begin(State state) {
  connection_++;
  {
    SpinLockHolder holder(&fail_lock_);
    fail_cause_ = DisconnectCause::kLocal;
    fail_verdict_ = Status::kFlushed;
    peer_verdict_ = Status::kSuccess;
  }
  failing_.store(false);
  heard_.store(false);
  no_resources_.store(false);
  backlog_full_.store(false);
  reads_out_limit_ = max_reads_out_;
  for (std::atomic<uint32_t>& report : reports_) report.store(0);
  may_report_.store(true);
  state_.store(state);
}

void SoftQueuePair::ConfirmBy(const std::optional<ConfirmationWord>& word) {
  const ConfirmationWord by = word.value_or(ConfirmationWord());
  confirm_address_.store(by.address, std::memory_order_relaxed);
  confirm_key_.store(by.key, std::memory_order_relaxed);
}

std::optional<ConfirmationWord> SoftQueuePair::confirm_by() const {
  const Key key = confirm_key_.load(std::memory_order_relaxed);
  if (key == 0) return std::nullopt;
  return ConfirmationWord{confirm_address_.load(std::memory_order_relaxed), key};
}

void SoftQueuePair::ForgetTerms() {
  immediate_form_.store(ImmediateForm::kNone);
  confirm_key_.store(0);
}

absl::Status SoftQueuePair::Connect(const ConnectOptions& options) {
  MutexLock control(&control_);
  if (state_.load() != State::kIdle) return absl::FailedPreconditionError("not idle");
  attempt_data_.assign(options.private_data.begin(), options.private_data.end());
  Begin(State::kConnecting);
  ForgetTerms();
  local_port_.store(0);
  attempt_ = options;
  attempt_.private_data = attempt_data_;
  attempt_wire_ = 0;
  may_start_again_ = false;
  absl::Cleanup forget = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {  // if a wire lacks memory
    may_report_.store(false);
    EndAttempt();
  };
  const bool started = StartAttempt();
  std::move(forget).Cancel();
  if (!started) {
    if (no_resources_.load()) {
      state_.store(State::kIdle);
      return absl::ResourceExhaustedError("no memory or descriptors to connect");
    }
    const auto& wires = context_.wires();
    const bool reachable = std::any_of(wires.begin(), wires.end(), [&](const auto& wire) {
      return wire->Reaches(options.address);
    });
    untaken_ = reachable ? OutcomeIfNobody() : ConnectOutcome::kUnreachable;
    TellLater();
  }
  return absl::OkStatus();
}

bool SoftQueuePair::StartAttempt() {
  const auto& wires = context_.wires();
  while (attempt_wire_ < wires.size()) {
    Wire& wire = *wires[attempt_wire_++];
    if (!wire.Reaches(attempt_.address)) continue;
    Link* link = wire.Connect(*this, attempt_);
    link_.store(link);
    if (link != nullptr) return true;
    may_start_again_ = true;
  }
  return false;
}

bool SoftQueuePair::IsServedNearer() {
  MutexLock control(&control_);
  if (state_.load() != State::kConnecting || !may_start_again_) return false;
  for (size_t w = 0; w + 1 < attempt_wire_; w++) {
    const Wire& wire = *context_.wires()[w];
    if (wire.Reaches(attempt_.address) && wire.IsServed(attempt_.port)) return true;
  }
  return false;
}

bool SoftQueuePair::TryWires(const Link& from, bool again) {
  {
    MutexLock control(&control_);
    if (!IsAttemptOf(from)) return false;
    link_.store(nullptr);
    if (again) attempt_wire_ = 0;
    const bool started = StartAttempt();
    may_start_again_ = false;
    if (started) return true;
    untaken_ = OutcomeIfNobody();
  }
  TellUntaken();
  return true;
}

bool SoftQueuePair::ConnectFailed(const Link& from, ConnectOutcome outcome,
                                  absl::Span<const uint8_t> private_data) {
  uint64_t connection;
  {
    MutexLock control(&control_);
    if (!IsAttemptOf(from)) return false;
    connection = connection_;
    if (outcome == ConnectOutcome::kNobody) outcome = OutcomeIfNobody();
    EndAttempt();
  }
  if (TakeReport(connection)) sink_->OnConnectFailed(*this, outcome, private_data);
  return true;
}

void SoftQueuePair::EndAttempt() {
  link_.store(nullptr);
  ForgetTerms();
  state_.store(State::kIdle);
}

void SoftQueuePair::TellUntaken() {
  uint64_t connection;
  ConnectOutcome outcome;
  {
    MutexLock control(&control_);
    if (state_.load() != State::kConnecting || link_.load() != nullptr) return;
    connection = connection_;
    EndAttempt();
    outcome = untaken_;
  }
  if (TakeReport(connection)) sink_->OnConnectFailed(*this, outcome, {});
}

absl::Status SoftQueuePair::Attach(Link& link) {
  MutexLock control(&control_);
  if (state_.load() != State::kIdle) return absl::FailedPreconditionError("not idle");
  Begin(State::kConnecting);
  link_.store(&link);
  return absl::OkStatus();
}

bool SoftQueuePair::Established(const Link& from, absl::Span<const uint8_t> private_data) {
  const auto anchor = anchor_;
  uint64_t connection;
  {
    MutexLock control(&control_);
    if (!IsAttemptOf(from)) return false;
    connection = connection_;
    state_.store(State::kConnected);
  }
  // A Disconnect(kAbrupt) may have come in between; then the sink is not called.
  if (MayReport(connection)) sink_->OnConnected(*this, private_data);
  if (anchor->Get() == nullptr) return false;
  {
    MutexLock control(&control_);
    if (state_.load() != State::kConnected || connection_ != connection) return false;
    LockAll();
    link_.load()->Start();
    receiving_.store(true);
    UnlockAll();
  }
  MarkArrived();  // for what arrived before Start
  return true;
}

// ----------------------------------------------------------------------------------- the end

void SoftQueuePair::LockAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  SoftCompletionQueue* first = std::min(&home_, &send_home_);
  SoftCompletionQueue* second = std::max(&home_, &send_home_);
  first->lock().Lock();
  if (second != first) second->lock().Lock();
  send_lock_.Lock();
  receive_lock_.Lock();
}

void SoftQueuePair::UnlockAll() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  receive_lock_.Unlock();
  send_lock_.Unlock();
  home_.lock().Unlock();
  if (&send_home_ != &home_) send_home_.lock().Unlock();
}

void SoftQueuePair::FailWith(DisconnectCause cause, Status verdict, Status verdict_for_peer) {
  {
    SpinLockHolder holder(&fail_lock_);
    if (failing_.load(std::memory_order_relaxed)) return;
    fail_cause_ = cause;
    fail_verdict_ = verdict;
    peer_verdict_ = verdict_for_peer;
    failing_.store(true, std::memory_order_release);
  }
  TellLater();
}

Inbound SoftQueuePair::Break(Status verdict_for_peer) {
  FailWith(DisconnectCause::kBroken, Status::kFlushed, verdict_for_peer);
  return Inbound::kBroken;
}

void SoftQueuePair::FailSend(uint64_t position, Status status) {
  breaking_send_.store(position, std::memory_order_relaxed);
  FailWith(DisconnectCause::kBroken, Status::kFlushed, Status::kTransport);
  SetStatus(sends_.at(position), status);
}

bool SoftQueuePair::MayReport(uint64_t connection) {
  MutexLock control(&control_);
  return connection_ == connection && may_report_.load();
}

bool SoftQueuePair::TakeReport(uint64_t connection) {
  MutexLock control(&control_);
  return connection_ == connection && may_report_.exchange(false);
}

void SoftQueuePair::FinishFailure() {
  uint64_t connection;
  DisconnectCause cause;
  Status verdict;
  Broken broken = {};
  Link* link;
  {
    MutexLock control(&control_);
    if (state_.load() != State::kConnected) return;
    {
      SpinLockHolder holder(&fail_lock_);
      if (!failing_.load()) return;
      cause = fail_cause_;
      verdict = fail_verdict_;
      broken.verdict_for_peer = peer_verdict_;
    }
    connection = connection_;
    link = EnterError(verdict, &broken);
  }
  link->Disconnect(broken.verdict_for_peer);
  NotifyAll();
  if (broken.damage != Damage::kNone && MayReport(connection)) {
    const auto anchor = anchor_;
    sink_->OnDamage(*this, broken.damage);
    if (anchor->Get() == nullptr) return;
  }
  if (TakeReport(connection)) sink_->OnDisconnected(*this, cause);
}

Damage SoftQueuePair::EndOpenWrite(OpenWrite open, Status verdict_for_peer) {
  // A write that was refused here has not broken off, and the refusal has been reported.
  const bool refusal =
      verdict_for_peer != Status::kSuccess && verdict_for_peer != Status::kTransport;
  const uint64_t position = receives_.done.load();
  if (open == OpenWrite::kWithImmediate && !refusal && position != receives_.posted.load()) {
    CompleteReceive(position, Opcode::kReceiveWrite,
                    write_refused_ ? Status::kRemoteAccess : Status::kTransport);
    return Damage::kNone;
  }
  const bool cut = open == OpenWrite::kPlain && !write_refused_;
  if (corrupt_) return cut ? Damage::kWriteCorrupt : Damage::kCorrupt;
  return cut ? Damage::kWriteCutOff : Damage::kNone;
}

Link* SoftQueuePair::EnterError(Status verdict, Broken* broken) {
  if (leave_timer_ != 0) context_.executor().Cancel(std::exchange(leave_timer_, 0));
  LockAll();
  state_.store(State::kError);
  receiving_.store(false);
  attention_.store(0);
  held_.store(false);
  if (shared_ != nullptr) shared_->StopWaiting(*this);
  if (hot_.load()) {
    hot_.store(false);
    for (int i = 0; i < attachment_count_; i++) attachments_[i].queue->RemoveHot(attachments_[i]);
  }
  Link* link = link_.exchange(nullptr);
  if (link != nullptr) link->TakeConfirmed();
  if (link != nullptr && broken != nullptr) {
    broken->damage = EndOpenWrite(link->open_write(), broken->verdict_for_peer);
  }
  FlushQueues(verdict);
  UnlockAll();
  return link;
}

void SoftQueuePair::FlushQueues(Status oldest) {
  const uint64_t emitted = sends_.done.load();
  const uint64_t end = sends_.posted.load();
  for (uint64_t n = sends_.reaped.load(); n != end; n++) {
    SendEntry& entry = sends_.at(n);
    const uint8_t status = StatusToReap(n);
    if (status != kPending) {
      SetStatus(entry, static_cast<Status>(status));
      continue;
    }
    const bool first = n < breaking_send_.load();
    if (first) breaking_send_.store(n);
    // A partly emitted request counts as emitted.
    const bool earned = first && (n < emitted || entry.offset != 0);
    SetStatus(entry, earned ? oldest : Status::kFlushed);
  }
  breaking_send_.store(kNoSend);
  sends_.done.store(end);
  incomplete_.store(0);
  reads_out_.store(0);
  read_cursor_ = end;

  const uint64_t last = receives_.posted.load();
  for (uint64_t n = receives_.done.load(); n != last; n++) {
    SetFlushed(receives_.at(n));
  }
  receives_.done.store(last);
  message_ = Message::kNone;
  opening_ = Message::kOpen;
  write_refused_ = corrupt_ = false;
}

void SoftQueuePair::Disconnect(DisconnectMode mode) {
  Link* link = nullptr;
  bool flushed = false;
  {
    MutexLock control(&control_);
    const State state = state_.load();
    if (state == State::kConnected && mode == DisconnectMode::kGraceful) {
      PassLockHolder holder(&send_lock_);  // what is posted from now on is flushed
      attention_.fetch_or(kDraining);
      CheckDrained();
      return;
    }
    // Reports of this connection that are still due are no longer made.
    if (mode == DisconnectMode::kAbrupt) may_report_.store(false);
    if (state == State::kConnecting) {
      link = link_.exchange(nullptr);
      ForgetTerms();
      state_.store(State::kIdle);
    } else if (state == State::kConnected) {
      link = EnterError(Status::kFlushed);
      flushed = true;
    }
  }
  if (link != nullptr) link->Disconnect(Status::kSuccess);
  if (flushed) NotifyAll();
}

void SoftQueuePair::CheckDrained() {
  if (draining() && !failing_.load(std::memory_order_relaxed) && SendIdle()) {
    FailWith(DisconnectCause::kLocal, Status::kFlushed, Status::kSuccess);
  }
}

void SoftQueuePair::PeerLeft(const Link& from) {
  uint64_t connection;
  {
    MutexLock control(&control_);
    PassLockHolder holder(&home_.lock());
    if (link_.load() != &from || failing_.load()) return;
    if ((attention_.fetch_or(kPeerLeft) & kPeerLeft) != 0) return;
    connection = connection_;
  }
  Attend();  // mostly this already ends the connection
  AwaitTaken(connection);
}

void SoftQueuePair::AwaitTaken(uint64_t connection) {
  MutexLock control(&control_);
  if (connection_ != connection || state_.load() != State::kConnected || failing_.load()) return;
  const uint64_t taken = receives_.done.load();
  Executor& executor = context_.executor();
  const Nanos due = executor.Now() + kTakeTime;
  leave_timer_ = executor.RunAt(due, [=, &executor, anchor = anchor_] {
    SoftQueuePair* const pair = anchor->Get();
    if (pair == nullptr) return;
    // If the timer is this late, the process stood still, and the program has had no time.
    if (executor.Now() - due > kTakeTime / 4) {
      pair->AwaitTaken(connection);
    } else {
      pair->EndUnlessTaken(connection, taken);
    }
  });
}

void SoftQueuePair::EndUnlessTaken(uint64_t connection, uint64_t taken) {
  Attend();  // the program may have posted receives that nobody has taken yet
  // A message that has a receive waits until the program makes room in the pair's ring.
  const bool lacks_room = (attention_.load() & kFullRing) != 0 && shared_->available() != 0;
  if (receives_.done.load() != taken || lacks_room) return AwaitTaken(connection);
  MutexLock control(&control_);
  if (connection_ != connection || state_.load() != State::kConnected) return;
  FailWith(DisconnectCause::kPeer, Status::kFlushed, Status::kSuccess);
}

void SoftQueuePair::CheckTaken(const Attachment& attachment) ABSL_NO_THREAD_SAFETY_ANALYSIS {
  if ((attention_.load(std::memory_order_relaxed) & kPeerLeft) == 0) return;
  if (!attachment.home && !home_.lock().TryLock()) {
    home_.MarkReady(attachments_[0], SoftCompletionQueue::News::kArrival);
    return;
  }
  Link* const link = link_.load(std::memory_order_relaxed);
  if (link != nullptr && (link->AllTaken() || LeftUnanswered(*link))) {
    FailWith(DisconnectCause::kPeer, Status::kFlushed, Status::kSuccess);
  }
  if (!attachment.home) home_.lock().Unlock();
}

bool SoftQueuePair::LeftUnanswered(Link& link) {
  if (incomplete_.load(std::memory_order_acquire) == 0) return false;
  // The link may not know a request yet that is being emitted, and whose confirmation has come.
  if (!send_lock_.TryLock()) {
    LookLater();
    return false;
  }
  link.TakeConfirmed();
  send_lock_.Unlock();
  if (incomplete_.load(std::memory_order_relaxed) != 0) return true;
  NotifyAll();
  return false;
}

void SoftQueuePair::Flush() {
  {
    MutexLock control(&control_);
    const State state = state_.load();
    if (state != State::kIdle && state != State::kError) return;
    EnterError(Status::kFlushed);
  }
  NotifyAll();
}

void SoftQueuePair::Reset() {
  MutexLock control(&control_);
  if (state_.load() != State::kError) return;
  ForgetTerms();
  local_port_.store(0);
  failing_.store(false);
  state_.store(State::kIdle);
}

bool SoftQueuePair::Ended() const {
  SpinLockHolder holder(&fail_lock_);
  return failing_.load(std::memory_order_relaxed) && fail_cause_ != DisconnectCause::kLocal;
}

bool SoftQueuePair::SendIdle() const { return !SendsWait(); }

uint32_t SoftQueuePair::open_receives() const {
  const uint64_t done = receives_.done.load(std::memory_order_acquire);
  return static_cast<uint32_t>(receives_.posted.load(std::memory_order_acquire) - done);
}

void SoftQueuePair::ReportLater(Report what) {
  reports_[what].fetch_add(1);
  TellLater();
}

void SoftQueuePair::TellLater() { anchor_->Post(context_.executor()); }

// Each of its calls may destroy the pair.
void SoftQueuePair::Tell() {
  const auto anchor = anchor_;
  TellUntaken();
  if (anchor->Get() == nullptr) return;
  // If the pair fails from here on, the next Tell finishes it, after the reports made until then.
  const bool fails = failing_.load();
  TellReports();
  if (fails && anchor->Get() != nullptr) FinishFailure();
}

void SoftQueuePair::TellReports() {
  static constexpr void (ConnectionSink::*kCalls[kReports])(QueuePair&) = {
      &ConnectionSink::OnDropped, &ConnectionSink::OnRefusedWrite, &ConnectionSink::OnRefusedRead};
  const auto anchor = anchor_;  // a sink may destroy the pair
  uint64_t connection;
  {
    MutexLock control(&control_);
    connection = connection_;
  }
  for (int what = 0; what < kReports; ++what) {
    for (uint32_t left = reports_[what].exchange(0); left > 0; --left) {
      if (!MayReport(connection)) return;
      (sink_->*kCalls[what])(*this);
      if (anchor->Get() == nullptr) return;
    }
  }
}

}  // namespace viaduct::verbs
