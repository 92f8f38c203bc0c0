#include "verbs/sim/connection.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace viaduct::verbs {

// -------------------------------------------------------------------------------------- SimEnd

SimEnd& SimEnd::peer() { return active_ ? connection_.passive_ : connection_.active_; }

void SimEnd::Pump() {
  while (open_ && on_the_way_ < connection_.network_.options().window) {
    SendEntry* entry = pair_->NextToEmit();
    if (entry == nullptr) return;
    Message message;
    message.opcode = entry->opcode;
    message.flags = entry->flags;
    message.immediate = entry->immediate;
    message.length = entry->length;
    message.remote_address = entry->remote_address;
    message.remote_key = entry->remote_key;
    message.position = pair_->emit_position();
    const bool fetch = IsFetch(entry->opcode);
    if (fetch && entry->opcode != Opcode::kRead) {
      message.operands = pair_->operands();
    } else if (!fetch) {
      message.bytes.resize(entry->length);
      const auto copy = [&](const unsigned char* from, uint64_t at, uint32_t bytes) {
        std::memcpy(message.bytes.data() + at, from, bytes);
      };
      if (!pair_->Gather(*entry, 0, entry->length, copy)) return;
    }
    const bool later = fetch || (entry->flags & kConfirm) != 0;
    pair_->Emitted(later ? SoftQueuePair::Completes::kLater : SoftQueuePair::Completes::kNow);
    ++on_the_way_;
    const char* what = message.opcode == Opcode::kWrite  ? "write"
                       : message.opcode == Opcode::kRead ? "read"
                       : fetch                           ? "atomic"
                                                         : "send";
    const uint32_t length = message.length;
    SimEnd& to = peer();
    connection_.Send(*this, what, length, [&to, message = std::move(message)]() mutable {
      to.messages_.push_back(std::move(message));
      if (to.started_) to.pair_->Attend();
    });
  }
}

bool SimEnd::Arrived() const {
  return started_ && (!answers_.empty() || (!messages_.empty() && !held_));
}

void SimEnd::Start() {
  started_ = true;
  if (!Arrived()) return;
  connection_.network_.executor().Post([self = connection_.shared_from_this(), this] {
    if (started_) pair_->Attend();
  });
}

bool SimEnd::Poll(int budget) {
  bool consumed = false;
  while (!answers_.empty()) {
    if (!TakeAnswer(answers_.front())) return true;
    answers_.pop_front();
    consumed = true;
  }
  held_ = false;
  for (; !messages_.empty() && budget > 0; --budget) {
    const Inbound result = Take(messages_.front());
    if (result == Inbound::kBroken) return true;
    if (result == Inbound::kHeld) {
      held_ = true;
      break;
    }
    messages_.pop_front();
    Consumed();
    consumed = true;
  }
  return consumed;
}

bool SimEnd::TakeAnswer(const Answer& answer) {
  if (!answer.read) {
    pair_->Complete(answer.position, answer.status);
    return true;
  }
  SendEntry* entry = pair_->OldestRead();
  const auto copy = [&](unsigned char* to, uint64_t at, uint32_t bytes) {
    std::memcpy(to, answer.bytes.data() + at, bytes);
  };
  const uint32_t length = static_cast<uint32_t>(answer.bytes.size());
  if (pair_->PlaceRead(*entry, 0, length, copy) == Inbound::kBroken) return false;
  pair_->FinishRead();
  return true;
}

Inbound SimEnd::Take(Message& message) {
  switch (message.opcode) {
    case Opcode::kWrite:
      return TakeWrite(message);
    case Opcode::kRead:
      return ServeRead(message);
    case Opcode::kCompareAndSwap:
    case Opcode::kFetchAndAdd:
      return ServeAtomic(message);
    default:
      return TakeSend(message);
  }
}

namespace {

Trailer TrailerOf(uint16_t flags, uint32_t immediate) {
  Trailer trailer;
  trailer.has_immediate = (flags & kImmediate) != 0;
  trailer.immediate = trailer.has_immediate ? immediate : 0;
  trailer.solicited = (flags & kSolicited) != 0;
  return trailer;
}

}  // namespace

Inbound SimEnd::TakeSend(const Message& message) {
  const auto copy = [&](unsigned char* to, uint64_t at, uint32_t bytes) {
    std::memcpy(to, message.bytes.data() + at, bytes);
  };
  Inbound result = pair_->StartReceive();
  if (result == Inbound::kHeld || result == Inbound::kBroken) return result;
  result = pair_->PlaceReceive(0, message.length, copy);
  if (result == Inbound::kBroken) return result;
  if (message.opcode == Opcode::kSendInvalidate && result == Inbound::kOk) {
    result = pair_->Invalidate(message.remote_key);
    if (result == Inbound::kBroken) return result;
  }
  result = pair_->FinishReceive(message.length, TrailerOf(message.flags, message.immediate));
  if (result == Inbound::kBroken) return result;
  Confirm(message, Status::kSuccess);
  return Inbound::kOk;
}

Inbound SimEnd::TakeWrite(Message& message) {
  const bool has_immediate = (message.flags & kImmediate) != 0;
  const auto copy = [&](unsigned char* to, uint64_t at, uint32_t bytes) {
    std::memcpy(to, message.bytes.data() + at, bytes);
  };
  if (!message.placed) {
    const Inbound result = pair_->PlaceWrite(message.remote_key, message.remote_address,
                                             message.length, has_immediate, copy);
    if (result == Inbound::kBroken) return result;
    message.refused = result == Inbound::kDropped;
    message.placed = true;
  }
  const Inbound result =
      pair_->FinishWrite(message.length, TrailerOf(message.flags, message.immediate));
  if (result == Inbound::kHeld || result == Inbound::kBroken) return result;
  Confirm(message, message.refused ? Status::kRemoteAccess : Status::kSuccess);
  return Inbound::kOk;
}

Inbound SimEnd::ServeRead(const Message& message) {
  const unsigned char* from;
  const Inbound result =
      pair_->CheckRead(message.remote_key, message.remote_address, message.length, &from);
  if (result == Inbound::kBroken) return result;
  SendAnswer(message.length != 0 ? SimBytes(from, from + message.length) : SimBytes());
  return Inbound::kOk;
}

Inbound SimEnd::ServeAtomic(const Message& message) {
  const Operands& operands = message.operands;
  const bool swap = message.opcode == Opcode::kCompareAndSwap;
  uint64_t original = 0;
  const Status result = pair_->UpdateAtomic(
      message.remote_key, message.remote_address, &original, [&](uint64_t old) -> uint64_t {
        if (!swap) return old + operands.compare_add;
        return old == operands.compare_add ? operands.swap : old;
      });
  if (result != Status::kSuccess) return Inbound::kBroken;
  SimBytes bytes(sizeof original);
  std::memcpy(bytes.data(), &original, sizeof original);
  SendAnswer(std::move(bytes));
  return Inbound::kOk;
}

void SimEnd::SendAnswer(SimBytes bytes) {
  Answer answer;
  answer.read = true;
  answer.bytes = std::move(bytes);
  const size_t length = answer.bytes.size();
  SimEnd& to = peer();
  connection_.Send(*this, "answer", length, [&to, answer = std::move(answer)]() mutable {
    to.answers_.push_back(std::move(answer));
    if (to.started_) to.pair_->Attend();
  });
}

void SimEnd::Confirm(const Message& message, Status status) {
  if ((message.flags & kConfirm) == 0) return;
  Answer answer;
  answer.position = message.position;
  answer.status = status;
  SimEnd& to = peer();
  connection_.Send(*this, "confirmation", 0, [&to, answer = std::move(answer)]() mutable {
    to.answers_.push_back(std::move(answer));
    if (to.started_) to.pair_->Attend();
  });
}

// The peer's window opens by one.
void SimEnd::Consumed() {
  SimEnd& to = peer();
  connection_.Send(*this, "credit", 0, [&to] {
    const bool was_full = to.on_the_way_-- == to.connection_.network_.options().window;
    if (was_full && to.started_) to.pair_->Attend();
  });
}

SoftQueuePair* SimEnd::Detach() {
  started_ = false;
  open_ = false;
  return std::exchange(pair_, nullptr);
}

void SimEnd::Disconnect(Status verdict) {
  const auto keep = connection_.shared_from_this();
  Detach();
  SimEnd& to = peer();
  connection_.Send(*this, "close", 0, [&to, verdict] { to.Closed(verdict); });
  connection_.RemoveIfOver();
}

void SimEnd::Closed(Status verdict) {
  if (pair_ == nullptr) {
    if (!active_) connection_.gone_ = true;
    return;
  }
  if (!open_) {
    // Accepted here, but the requester has given up.
    Detach()->ConnectFailed(*this, ConnectOutcome::kGone, {});
    connection_.RemoveIfOver();
    return;
  }
  while (pair_ != nullptr && started_ && pair_->Attend()) {
  }
  if (pair_ == nullptr) return;
  switch (verdict) {
    case Status::kSuccess:
      peer_left_ = true;
      pair_->PeerLeft(*this);
      return;
    case Status::kReceiverNotReady:
    case Status::kRemoteOperation:
    case Status::kRemoteAccess:
      pair_->Fail(verdict);
      return;
    default:
      pair_->Fail(Status::kFlushed);
      return;
  }
}

void SimEnd::Broken() {
  if (pair_ == nullptr) {
    if (!active_) connection_.gone_ = true;
  } else if (peer_left_) {
    return;  // what breaks after that has no effect
  } else if (open_) {
    pair_->Fail(Status::kTransport);
  } else {
    Detach()->ConnectFailed(*this, active_ ? ConnectOutcome::kRefused : ConnectOutcome::kGone, {});
    connection_.RemoveIfOver();
  }
}

// ------------------------------------------------------------------------------- SimConnection

namespace {

class SimIncoming final : public IncomingConnection {
 public:
  explicit SimIncoming(std::shared_ptr<SimConnection> connection)
      : connection_(std::move(connection)) {}
  ~SimIncoming() override {
    if (!decided_) Refuse();
  }

  const Address& peer_address() const override { return connection_->from().address; }
  uint16_t peer_port() const override { return connection_->from_port(); }
  absl::Span<const uint8_t> private_data() const override { return connection_->private_data(); }

  absl::Status Accept(QueuePair& pair, absl::Span<const uint8_t> private_data) override {
    const absl::Status status =
        connection_->Accept(static_cast<SoftQueuePair&>(pair), private_data);
    decided_ = status.ok();
    return status;
  }
  void Reject(absl::Span<const uint8_t> private_data) override {
    decided_ = true;
    connection_->Decline(ConnectOutcome::kRejected, private_data);
  }
  void Refuse() override {
    decided_ = true;
    connection_->Decline(ConnectOutcome::kRefused, {});
  }
  // Each node is a host of its own, so there is no other process to hand the request to.
  absl::Status HandOff(uint16_t, absl::Span<const uint8_t>, Deadline) override {
    return absl::NotFoundError("no other process");
  }
  absl::Span<const uint8_t> note() const override { return {}; }

 private:
  const std::shared_ptr<SimConnection> connection_;
  bool decided_ = false;
};

}  // namespace

SimConnection::SimConnection(Network& network, SimNode& from, SimNode* to, uint16_t port,
                             SoftQueuePair& pair, absl::Span<const uint8_t> private_data)
    : network_(network),
      from_(from),
      to_(to),
      from_port_(++from.last_port),
      port_(port),
      private_data_(private_data.begin(), private_data.end()),
      reads_in_(pair.max_reads_in()) {
  active_.pair_ = &pair;
  active_.lane_.from = passive_.lane_.to = &from;
  active_.lane_.to = passive_.lane_.from = to;
  pair.SetLocalPort(from_port_);
}

bool SimConnection::Joins(const SimNode& a, const SimNode& b) const {
  return (&from_ == &a && to_ == &b) || (&from_ == &b && to_ == &a);
}

void SimConnection::Send(SimEnd& end, absl::string_view what, size_t bytes,
                         std::function<void()> deliver) {
  if (to_ == nullptr) return;
  network_.Send(end.lane_, what, bytes, [self = shared_from_this(), deliver = std::move(deliver)] {
    if (self->reset_) return;
    if (self->active_.pair_ != nullptr) self->active_.pair_->NotePeerHeard();
    deliver();
  });
}

void SimConnection::Dial() {
  if (to_ == nullptr) {
    network_.Later(
        [self = shared_from_this()] { self->FailAttempt(ConnectOutcome::kUnreachable, {}); });
    return;
  }
  // The host of a dead process answers for it.
  if (!to_->alive) {
    network_.Later([self = shared_from_this()] {
      if (self->active_.pair_ != nullptr) self->active_.pair_->NotePeerHeard();
      self->FailAttempt(ConnectOutcome::kNobody, {});
    });
    return;
  }
  network_.Send(active_.lane_, "request", private_data_.size(), [self = shared_from_this()] {
    // Stands for the host's acknowledgement: the request was delivered, whatever becomes of it.
    if (self->active_.pair_ != nullptr) self->active_.pair_->NotePeerHeard();
    const auto listener = self->to_->listeners.find(self->port_);
    if (listener == self->to_->listeners.end()) {
      self->Decline(ConnectOutcome::kNobody, {});
      return;
    }
    listener->second->OnRequest(std::make_unique<SimIncoming>(self));
  });
}

absl::Status SimConnection::Accept(SoftQueuePair& pair, absl::Span<const uint8_t> private_data) {
  if (absl::Status status = pair.Attach(passive_); !status.ok()) return status;
  passive_.pair_ = &pair;
  network_.Add(shared_from_this());  // it was removed if the requester gave up
  pair.SetLocalPort(port_);
  if (gone_ || reset_) {
    network_.executor().Post([self = shared_from_this()] {
      if (self->passive_.pair_ == nullptr) return;
      self->passive_.Detach()->ConnectFailed(self->passive_, ConnectOutcome::kGone, {});
      self->RemoveIfOver();
    });
    return absl::OkStatus();
  }
  pair.SetReadsOut(std::min(pair.max_reads_out(), reads_in_));
  Send(passive_, "accept", private_data.size(),
       [this, data = SimBytes(private_data.begin(), private_data.end()),
        reads_in = pair.max_reads_in()] { Accepted(data, reads_in); });
  return absl::OkStatus();
}

void SimConnection::Decline(ConnectOutcome outcome, absl::Span<const uint8_t> private_data) {
  Send(passive_, outcome == ConnectOutcome::kRejected ? "reject" : "refuse", private_data.size(),
       [this, outcome, data = SimBytes(private_data.begin(), private_data.end())] {
         FailAttempt(outcome, data);
       });
}

void SimConnection::FailAttempt(ConnectOutcome outcome, const SimBytes& private_data) {
  if (active_.pair_ == nullptr) return;
  active_.Detach()->ConnectFailed(active_, outcome, private_data);
  RemoveIfOver();
}

void SimConnection::Accepted(const SimBytes& private_data, uint32_t reads_in) {
  SoftQueuePair* pair = active_.pair_;
  if (pair == nullptr) return;
  pair->SetReadsOut(std::min(pair->max_reads_out(), reads_in));
  active_.open_ = true;
  // Sent before the sink can send anything.
  Send(active_, "ready", 0, [this] { Ready(); });
  pair->Established(active_, private_data);
}

void SimConnection::Ready() {
  if (passive_.pair_ == nullptr) return;
  passive_.open_ = true;
  passive_.pair_->Established(passive_, {});
}

void SimConnection::TellDeathOf(const SimNode& node) {
  for (SimEnd* end : {&active_, &passive_}) {
    if (end->lane_.from == &node) {
      Send(*end, "death", 0, [end] { end->peer().Broken(); });
    }
  }
}

void SimConnection::Reset() {
  if (std::exchange(reset_, true)) return;
  network_.Later([self = shared_from_this()] {
    self->active_.Broken();
    self->passive_.Broken();
  });
}

void SimConnection::RemoveIfOver() {
  if (active_.pair_ == nullptr && passive_.pair_ == nullptr) network_.Remove(this);
}

}  // namespace viaduct::verbs
