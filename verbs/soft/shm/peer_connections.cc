// The life of the connections of a pair of processes. All on the executor.
//
//   requester   kConnecting -- Accept --> kConnected
//   listener    kRequested -- Accept() --> kAccepting -- Established --> kConnected
//
// A requester that stays silent in kAccepting for Host::silence() is given up: its accept fails,
// and we close. The phase stays, since an Established may still come, followed by a Close.
//
// The end: when its queue pair has let go, each side sends kClose once, with the ring positions
// where it stopped. After both, the side that does not own the number sends kReleased, and the
// owner clears the block and may give the number out again.

#include <algorithm>
#include <cstring>
#include <vector>

#include "verbs/base/log.h"
#include "verbs/soft/shm/host.h"
#include "verbs/soft/shm/incoming.h"
#include "verbs/soft/shm/peer.h"

namespace viaduct::verbs::shm {
namespace {

using Phase = ShmLink::Phase;

}  // namespace

std::shared_ptr<ShmLink> Peer::Find(uint32_t id) const {
  const auto found = links_.find(id);
  return found == links_.end() ? nullptr : found->second;
}

void Peer::Enter(const std::shared_ptr<ShmLink>& link, uint32_t id) {
  link->Bind(shared_from_this(), id);
  links_[id] = link;
  SpinLockHolder holder(&marks_lock_);
  marked_links_[id] = link.get();
}

void Peer::RemoveLink(uint32_t id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second->phase = Phase::kClosed;
  StopWaiting(*found->second);
  ForgetMarks(id);
  links_.erase(found);
  if (idle()) host_.LeaveIdlePeers();
}

void Peer::ForgetMarks(uint32_t id) {
  SpinLockHolder holder(&marks_lock_);
  marked_links_[id] = nullptr;
}

bool Peer::TakeId(uint32_t* id) {
  if (!free_ids_.empty()) {
    *id = free_ids_.back();
    free_ids_.pop_back();
    return true;
  }
  if (next_id_ == id_end_ || !arena_->PayConnection(next_id_)) return false;
  *id = next_id_++;
  return true;
}

void Peer::FreeId(uint32_t id) {
  // A fresh ring is all zeros. The peer does not touch this one any more.
  std::memset(static_cast<void*>(&arena_->connection(id)), 0, sizeof(ConnectionBlock));
  free_ids_.push_back(id);
}

// -------------------------------------------------------------------------------- connecting

bool Peer::Request(const std::shared_ptr<ShmLink>& link, absl::Span<const uint8_t> note) {
  uint32_t id;
  if (dead_ || !TakeId(&id)) return false;
  Enter(link, id);
  link->phase = Phase::kConnecting;
  RequestBody body = link->wanted->body;
  body.note = static_cast<uint32_t>(note.size());
  std::vector<uint8_t> tail(note.begin(), note.end());
  const std::vector<uint8_t>& data = link->wanted->private_data;
  tail.insert(tail.end(), data.begin(), data.end());
  Send(BuildMessage(MessageType::kRequest, id, body, tail));
  return true;
}

void Peer::OnRequest(Message& message) {
  const uint32_t id = message.connection;
  const auto body = message.body<RequestBody>();
  if (Owns(id) || links_.contains(id) || !body.has_value() || !greeted_) return Die();
  const auto from = FromWire(body->from);
  const auto to = FromWire(body->to);
  const absl::Span<const uint8_t> tail = message.tail<RequestBody>();
  if (!from.has_value() || !to.has_value() || body->note > kMaxNoteBytes ||
      body->note > tail.size() || tail.size() - body->note > kMaxPrivateData) {
    return Die();
  }
  const absl::Span<const uint8_t> note = tail.first(body->note);
  const absl::Span<const uint8_t> data = tail.subspan(body->note);

  // A request with a note was handed off: the listener was asked before, and has said yes.
  ListenerSink* sink = host_.FindListener(body->port, note.empty() ? &*to : nullptr);
  if (sink == nullptr) return Send(BuildMessage(MessageType::kNotHere, id, {}, {}));
  auto link = ShmLink::Make(loop_);
  Enter(link, id);
  link->phase = Phase::kRequested;
  sink->OnRequest(std::make_unique<ShmIncoming>(loop_, link, *from, *body,
                                                std::vector<uint8_t>(note.begin(), note.end()),
                                                std::vector<uint8_t>(data.begin(), data.end())));
}

void Peer::Accept(const std::shared_ptr<ShmLink>& link, const AcceptBody& body,
                  absl::Span<const uint8_t> private_data) {
  if (dead_ || link->cancelled) {
    link->FailAttempt(ConnectOutcome::kGone);
    return;
  }
  link->phase = Phase::kAccepting;
  link->silence_timer =
      loop_.RunAt(loop_.Now() + host_.silence(), [self = shared_from_this(), link] {
        link->silence_timer = 0;
        self->OnSilence(link);
      });
  Send(BuildMessage(MessageType::kAccept, link->id, body, private_data));
}

void Peer::StopWaiting(ShmLink& link) {
  if (link.silence_timer != 0) loop_.Cancel(link.silence_timer);
  link.silence_timer = 0;
}

// The requester does not run, or does not read: it may be stopped for hours.
void Peer::OnSilence(const std::shared_ptr<ShmLink>& link) {
  if (link->phase != Phase::kAccepting) return;
  // First: the sink may destroy the queue pair, which a mark of the peer would still find.
  ForgetMarks(link->id);
  if (link->FailAttempt(ConnectOutcome::kGone)) CloseLink(link, Status::kSuccess);
}

void Peer::TurnDown(const std::shared_ptr<ShmLink>& link, MessageType type,
                    absl::Span<const uint8_t> private_data) {
  if (dead_ || link->cancelled) return;
  Send(BuildMessage(type, link->id, {}, private_data));
  RemoveLink(link->id);
}

void Peer::Redirect(const std::shared_ptr<ShmLink>& link, uint16_t port,
                    absl::Span<const uint8_t> note) {
  if (dead_ || link->cancelled) return;
  const RedirectBody body = {port, 0};
  Send(BuildMessage(MessageType::kRedirect, link->id, body, note));
  RemoveLink(link->id);
}

void Peer::OnRedirect(Message& message) {
  const std::shared_ptr<ShmLink> link = Find(message.connection);
  const auto body = message.body<RedirectBody>();
  if (link == nullptr || link->phase != Phase::kConnecting || !body.has_value()) return Die();
  const absl::Span<const uint8_t> note = message.tail<RedirectBody>();
  if (note.size() > kMaxNoteBytes) return Die();
  RemoveLink(link->id);
  FreeId(link->id);
  if (SoftQueuePair* pair = link->pair()) {
    pair->NotePeerHeard();
    // Later: to follow may be to hear the rest of what this peer has said, redirections included.
    loop_.Post(
        [&host = host_, link, port = body->port,
         copy = std::vector<uint8_t>(note.begin(), note.end())] { host.Follow(link, port, copy); });
  }
}

void Peer::OnAccept(Message& message) {
  const std::shared_ptr<ShmLink> link = Find(message.connection);
  const auto body = message.body<AcceptBody>();
  if (link == nullptr || link->phase != Phase::kConnecting || !body.has_value()) return Die();
  const absl::Span<const uint8_t> private_data = message.tail<AcceptBody>();
  if (private_data.size() > kMaxPrivateData) return Die();
  link->phase = Phase::kConnected;
  link->wanted.reset();
  SoftQueuePair* pair = link->pair();
  if (pair == nullptr || pair->state() != SoftQueuePair::State::kConnecting) return;
  pair->NotePeerHeard();
  pair->SetReadsOut(std::min(pair->max_reads_out(), body->reads_in));
  link->SetReadsIn(pair->max_reads_in());
  // First, so that a pair that disconnects inside OnConnected was connected for the peer too.
  Send(BuildMessage(MessageType::kEstablished, link->id, {}, {}));
  pair->Established(*link, private_data);
}

void Peer::OnRefusal(Message& message) {
  const std::shared_ptr<ShmLink> link = Find(message.connection);
  if (link == nullptr || link->phase != Phase::kConnecting ||
      message.bytes.size() > kMaxPrivateData) {
    return Die();
  }
  RemoveLink(link->id);
  FreeId(link->id);
  SoftQueuePair* pair = link->pair();
  if (pair == nullptr) return;
  pair->NotePeerHeard();
  switch (message.type) {
    case MessageType::kReject:
      link->FailAttempt(ConnectOutcome::kRejected, message.bytes);
      break;
    case MessageType::kNotHere:
      link->NotHere();
      break;
    default:
      link->FailAttempt(ConnectOutcome::kRefused);
  }
}

void Peer::OnEstablished(Message& message) {
  const std::shared_ptr<ShmLink> link = Find(message.connection);
  if (link == nullptr || link->phase != Phase::kAccepting) return Die();
  link->phase = Phase::kConnected;
  StopWaiting(*link);
  if (SoftQueuePair* pair = link->pair()) {
    pair->NotePeerHeard();
    pair->Established(*link, {});
  }
}

// ----------------------------------------------------------------------------------- the end

void Peer::SendClose(ShmLink& link, Status verdict) {
  link.local_closed = true;
  const CloseBody body = {link.data_end(), link.reply_end(), static_cast<uint32_t>(verdict), 0};
  Send(BuildMessage(MessageType::kClose, link.id, body));
}

void Peer::CloseLink(const std::shared_ptr<ShmLink>& link, Status verdict) {
  if (link->phase == Phase::kClosed) return;
  if (dead_) return RemoveLink(link->id);
  if (link->local_closed) return;
  if (link->phase == Phase::kRequested) {
    // Its Accept is still on the way to the executor, and no longer counts.
    TurnDown(link, MessageType::kRefuse, {});
    link->cancelled = true;
    return;
  }
  SendClose(*link, verdict);
  if (link->peer_closed) Finish(link);
}

void Peer::OnClose(Message& message) {
  const std::shared_ptr<ShmLink> link = Find(message.connection);
  const auto body = message.body<CloseBody>();
  if (!body.has_value()) return Die();
  if (link == nullptr) return;  // we had refused the request that it cancels
  if (link->peer_closed) return Die();
  link->peer_closed = true;
  link->peer_close = *body;
  SoftQueuePair* pair = link->pair();
  if (link->local_closed) return Finish(link);
  switch (link->phase) {
    case Phase::kRequested:
      link->cancelled = true;
      SendClose(*link, Status::kSuccess);
      return Finish(link);
    case Phase::kAccepting:
      if (pair == nullptr) return;  // it is disconnecting: CloseLink will follow
      // First: the sink may destroy the queue pair, which a mark of the peer would still find.
      SendClose(*link, Status::kSuccess);
      Finish(link);
      link->FailAttempt(ConnectOutcome::kGone);
      return;
    case Phase::kConnected:
      break;
    default:
      return Die();
  }
  if (pair == nullptr) return;
  Drain(*link);
  switch (static_cast<Status>(body->verdict)) {
    case Status::kSuccess:
      link->EndAt(body->data_end);
      return pair->PeerLeft(*link);
    case Status::kReceiverNotReady:
    case Status::kRemoteOperation:
    case Status::kRemoteAccess:
      return pair->Fail(static_cast<Status>(body->verdict));
    default:
      return pair->Fail(Status::kFlushed);
  }
}

// Consumes what the peer sent before the end, unless it is held. Stops at what the rings can hold,
// whatever a hostile peer goes on writing.
void Peer::Drain(ShmLink& link) {
  for (uint32_t i = 0; i < kSlots + kReplySlots; i++) {
    SoftQueuePair* pair = link.pair();
    if (pair == nullptr || !pair->Attend()) return;
  }
}

void Peer::Finish(const std::shared_ptr<ShmLink>& link) {
  link->DiscardInbound(link->peer_close.data_end, link->peer_close.reply_end);
  const uint32_t id = link->id;
  RemoveLink(id);
  if (Owns(id)) {
    closing_ids_.insert(id);
  } else {
    Send(BuildMessage(MessageType::kReleased, id, {}, {}));
  }
}

void Peer::OnReleased(Message& message) {
  if (closing_ids_.erase(message.connection) == 0) return Die();
  FreeId(message.connection);
}

void Peer::Die() {
  if (dead_) return;
  dead_ = true;
  const bool exits = arena_->direction(1 - side_).exits.load(std::memory_order_seq_cst) != 0;
  const std::shared_ptr<Peer> self = shared_from_this();
  for (Descriptor* fd : {&socket_, &pidfd_}) {
    if (fd->valid()) loop_.Unwatch(fd->get());
  }
  host_.Forget(*this);
  std::vector<std::shared_ptr<ShmLink>> links;
  for (const auto& [id, link] : links_) links.push_back(link);
  for (const std::shared_ptr<ShmLink>& link : links) {
    SoftQueuePair* pair = link->pair();
    const Phase phase = link->phase;
    if (phase == Phase::kConnected && pair != nullptr) {
      Drain(*link);
      // RemoveLink follows when the queue pair has let go (CloseLink).
      if (link->peer_closed) continue;
      if (exits) {
        link->EndAt(UINT64_MAX);
        pair->PeerLeft(*link);
      } else {
        pair->Fail(Status::kTransport);
      }
      continue;
    }
    if (phase == Phase::kRequested) link->cancelled = true;
    RemoveLink(link->id);
    if (phase != Phase::kConnecting) {
      link->FailAttempt(ConnectOutcome::kGone);
    } else if (!greeted_) {
      link->NotHere();  // the peer takes no (more) arenas of ours; another wire needs none
    } else {
      link->FailAttempt(ConnectOutcome::kRefused);
    }
  }
  outbox_.clear();
  pidfd_.Reset();
  // Posters may be ringing: the socket is closed with the last link.
  HangUp();
}

}  // namespace viaduct::verbs::shm
