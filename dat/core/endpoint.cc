#include "dat/core/endpoint.h"

#include "dat/core/connect_attempt.h"
#include "dat/core/connection_manager.h"
#include "dat/core/connection_request.h"
#include "dat/core/discard_queue.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/peer_listening.h"
#include "dat/core/receive_watch.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {

using verbs::MutexLock;

// ------------------------------------------------------------------------------- life

Error Endpoint::Create(InterfaceAdapter& adapter, const Parts& parts,
                       const EndpointAttributes& attributes, Ref<Endpoint>* out) {
  auto endpoint = Ref<Endpoint>::Adopt(
      new Endpoint(adapter, attributes, static_cast<bool>(parts.shared_receives)));
  {
    Replaced nothing;
    MutexLock lock(&endpoint->lock_);
    if (Error error = endpoint->AdoptParts(parts, &nothing); !error.ok()) return error;
  }
  if (Error error = adapter.AddChild(endpoint.get()); !error.ok()) return error;
  endpoint->owner_.handle = parts.subject != nullptr ? parts.subject : endpoint->handle();
  *out = std::move(endpoint);
  return Ok();
}

Error Endpoint::CreateTentative(InterfaceAdapter& adapter, Ref<Endpoint>* out) {
  if (Error error = Create(adapter, Parts(), EndpointAttributes(), out); !error.ok()) return error;
  (*out)->state_.store(EndpointState::kTentativePending, std::memory_order_release);
  return Ok();
}

Endpoint::Endpoint(InterfaceAdapter& adapter, const EndpointAttributes& attributes,
                   bool shared_receives)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      has_shared_receives_(shared_receives),
      max_message_bytes_(attributes.max_message_bytes),
      attributes_(attributes) {}

Endpoint::~Endpoint() {
  Replaced last;
  MutexLock lock(&lock_);
  last.parts = std::exchange(parts_, Parts());
  last.modes = modes_;
  last.pair = std::move(pair_);
}

Endpoint::Replaced::~Replaced() {
  if (pair != nullptr) {
    verbs::EpochSynchronize();  // posts under way still hold it
    pair.reset();
  }
  Uncount(parts, modes);
}

// Counts itself with what it uses; the end of `replaced` stops counting with what it used.
Error Endpoint::AdoptParts(const Parts& parts, Replaced* replaced) {
  Parts old = std::exchange(parts_, parts);
  bool same_queues =
      parts.receive.get() == old.receive.get() && parts.request.get() == old.request.get();
  const bool refits = parts_.zone && pair_ != nullptr && same_queues;
  const Error error = refits ? RefitPair() : ReplacePair(&replaced->pair);
  if (!error.ok()) {
    parts_ = std::move(old);
    return error;
  }
  owner_.observer.store(parts_.completions, std::memory_order_release);
  owner_.binds = &binds_;
  if (watch_ != nullptr) StartWatch();
  for (EventDispatcher* d : {parts_.receive.get(), parts_.request.get(), parts_.connect.get()}) {
    if (d != nullptr) d->AddFeeder();
  }
  if (parts_.zone) parts_.zone->AddUser();
  if (parts_.shared_receives) parts_.shared_receives->AddUser();
  replaced->parts = std::move(old);
  replaced->modes = std::exchange(modes_, {attributes_.receive_mode, attributes_.request_mode});
  if (parts_.receive) parts_.receive->AddStream(modes_.receive);
  if (parts_.request) parts_.request->AddStream(modes_.request);
  owner_.solicited_only.store(modes_.receive == CompletionMode::kSolicited,
                              std::memory_order_relaxed);
  return Ok();
}

void Endpoint::Uncount(const Parts& parts, const Modes& modes) {
  if (parts.receive) parts.receive->DropStream(modes.receive);
  if (parts.request) parts.request->DropStream(modes.request);
  for (EventDispatcher* d : {parts.receive.get(), parts.request.get(), parts.connect.get()}) {
    if (d != nullptr) d->DropFeeder();
  }
  if (parts.zone) parts.zone->DropUser();
  if (parts.shared_receives) parts.shared_receives->DropUser();
}

void Endpoint::ReleaseParts() { Uncount(std::exchange(parts_, Parts()), modes_); }

verbs::QueuePairOptions Endpoint::PairOptions() {
  verbs::QueuePairOptions options;
  options.domain = &parts_.zone->domain();
  options.send_queue = parts_.request ? &parts_.request->device_queue() : discard_->queue();
  options.receive_queue = parts_.receive ? &parts_.receive->device_queue() : discard_->queue();
  options.shared_receives =
      parts_.shared_receives ? parts_.shared_receives->device_queue() : nullptr;
  options.sink = this;
  options.context = &owner_;
  options.max_sends = attributes_.max_sends;
  options.max_receives = attributes_.max_receives;
  options.max_send_segments = attributes_.max_send_segments;
  options.max_receive_segments = attributes_.max_receive_segments;
  options.max_reads_in = attributes_.max_reads_in;
  options.max_reads_out = attributes_.max_reads_out;
  options.no_receive = attributes_.no_receive;
  options.remote_access = attributes_.remote_access;
  return options;
}

Error Endpoint::ReplacePair(std::unique_ptr<verbs::QueuePair>* old) {
  if (pair_ != nullptr && !(pair_->ReceiveIdle() && pair_->SendIdle())) {
    return Error(Code::kInvalidState, static_cast<uint8_t>(state()));
  }
  std::unique_ptr<verbs::QueuePair> made;
  if (parts_.zone) {
    if ((!parts_.request || !parts_.receive) && discard_ == nullptr) {
      discard_ = DiscardQueue::Make(adapter_->context());
      if (discard_ == nullptr) return OutOf(Resource::kDevice);
    }
    auto pair = adapter_->context().CreateQueuePair(PairOptions());
    if (!pair.ok()) return OutOf(Resource::kEndpoint);
    made = *std::move(pair);
  }
  *old = std::exchange(pair_, std::move(made));
  post_pair_.store(pair_.get(), std::memory_order_release);
  return Ok();
}

Error Endpoint::RefitPair() {
  return pair_->Modify(PairOptions()).ok() ? Ok() : Error(Code::kInvalidState, uint8_t(state()));
}

Error Endpoint::Free() {
  {
    MutexLock lock(&lock_);
    if (Next(state(), EndpointInput::kFree).verdict == Verdict::kInvalid) {
      return Error(Code::kInvalidState, static_cast<uint8_t>(state()));
    }
  }
  Destroy();
  return Ok();
}

void Endpoint::Destroy() {
  if (!HandleTable::Erase(handle(), kType)) return;
  adapter_->RemoveChild(this);
  std::unique_ptr<verbs::QueuePair> pair;
  std::unique_ptr<ConnectAttempt> attempt;
  {
    MutexLock lock(&lock_);
    attempt = std::move(attempt_);
    if (pair_ != nullptr) pair_->Disconnect(verbs::DisconnectMode::kAbrupt);
    post_pair_.store(nullptr, std::memory_order_release);
    pair = std::move(pair_);
    state_.store(EndpointState::kUnconfiguredUnconnected, std::memory_order_release);
  }
  verbs::EpochSynchronize();
  attempt.reset();
  pair.reset();  // waits for a sink call in progress, which may want lock_
  {
    MutexLock lock(&lock_);
    ReleaseParts();
  }
  DropReference();
}

Error Endpoint::Modify(const Parts* parts, const EndpointAttributes* attributes) {
  Replaced replaced;
  MutexLock lock(&lock_);
  bool zone = parts != nullptr && parts->zone.get() != parts_.zone.get();
  EndpointInput input = zone ? EndpointInput::kModifyZone : EndpointInput::kModifyAttributes;
  if (Next(state(), input).verdict == Verdict::kInvalid) {
    return Error(Code::kInvalidState, static_cast<uint8_t>(state()));
  }
  EndpointAttributes old = attributes_;
  if (attributes != nullptr) attributes_ = *attributes;
  Error error = AdoptParts(parts != nullptr ? *parts : Parts(parts_), &replaced);
  if (!error.ok()) attributes_ = old;
  max_message_bytes_.store(attributes_.max_message_bytes, std::memory_order_relaxed);
  return error;
}

// ------------------------------------------------------------------------ what it shows

Endpoint::Parts Endpoint::parts() const {
  MutexLock lock(&lock_);
  return parts_;
}

EndpointAttributes Endpoint::attributes() const {
  MutexLock lock(&lock_);
  return attributes_;
}

bool Endpoint::Ended() const {
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  return pair != nullptr && pair->Ended();
}

EndpointState Endpoint::SettledState() const {
  MutexLock lock(&lock_);
  return state();
}

bool Endpoint::SendIdle() const {
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  return pair == nullptr || pair->SendIdle();
}

bool Endpoint::ReceiveIdle() const {
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  return pair == nullptr || pair->ReceiveIdle();
}

verbs::Address Endpoint::remote_address() const {
  MutexLock lock(&lock_);
  return target_.address;
}

const sockaddr* Endpoint::remote_sockaddr() const {
  MutexLock lock(&lock_);
  return target_.address.IsUnspecified() ? nullptr : target_.address.data();
}

uint64_t Endpoint::remote_qualifier() const {
  MutexLock lock(&lock_);
  return target_.name.qualifier().value_or(0);
}

uint16_t Endpoint::local_port() const {
  MutexLock lock(&lock_);
  return pair_ == nullptr ? 0 : pair_->local_port();
}

EndpointProfile Endpoint::peer_profile() const {
  MutexLock lock(&lock_);
  return peer_profile_;
}

PeerMismatch Endpoint::peer_mismatch() const {
  MutexLock lock(&lock_);
  return peer_mismatch_;
}

void Endpoint::set_profile(const EndpointProfile& profile) {
  MutexLock lock(&lock_);
  profile_ = profile;
}

EndpointProfile Endpoint::profile() const {
  MutexLock lock(&lock_);
  return profile_;
}

}  // namespace viaduct::core
