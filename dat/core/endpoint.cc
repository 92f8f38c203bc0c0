#include "dat/core/endpoint.h"

#include <algorithm>

#include "absl/status/status.h"
#include "dat/core/connect_attempt.h"
#include "dat/core/connection_request.h"
#include "dat/core/discard_queue.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/peer_listening.h"
#include "dat/core/receive_watch.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {
namespace {

using verbs::MutexLock;

bool HasPosted(const verbs::QueuePair& pair) {
  return pair.open_receives() != 0 || !pair.SendIdle();
}

}  // namespace

// ------------------------------------------------------------------------------- life

Error Endpoint::Create(InterfaceAdapter& adapter, const Parts& parts,
                       const EndpointAttributes& attributes, Ref<Endpoint>* out) {
  auto endpoint = Ref<Endpoint>::Adopt(
      new Endpoint(adapter, attributes, static_cast<bool>(parts.shared_receives)));
  {
    Replaced nothing;
    MutexLock lock(&endpoint->lock_);
    if (Error error = endpoint->AdoptParts(parts, attributes, &nothing); !error.ok()) return error;
  }
  if (Error error = adapter.AddChild(endpoint.get()); !error.ok()) return error;
  endpoint->owner_.handle = parts.subject != nullptr ? parts.subject : endpoint->handle();
  *out = std::move(endpoint);
  return Ok();
}

Error Endpoint::CreateTentative(InterfaceAdapter& adapter, Ref<Endpoint>* out) {
  const auto attributes = EndpointAttributes::DefaultOn(adapter.context().attributes());
  if (Error error = Create(adapter, Parts(), attributes, out); !error.ok()) return error;
  (*out)->state_.store(EndpointState::kTentativePending, std::memory_order_release);
  return Ok();
}

Endpoint::Endpoint(InterfaceAdapter& adapter, const EndpointAttributes& attributes,
                   bool shared_receives)
    : Object(kType),
      adapter_(Ref<InterfaceAdapter>::Share(&adapter)),
      has_shared_receives_(shared_receives),
      attributes_(attributes) {
  owner_.binds = &binds_;
}

Endpoint::~Endpoint() {
  Replaced last;
  MutexLock lock(&lock_);
  GiveUpParts(&last);
}

Endpoint::Replaced::~Replaced() {
  if (pair != nullptr) {
    verbs::EpochSynchronize();  // posts under way still hold it
    pair.reset();
  }
  if (parts.receive) parts.receive->DropStream(modes.receive);
  if (parts.request) parts.request->DropStream(modes.request);
}

Error Endpoint::PartsInUse::Begin(const Parts& parts) {
  completions = parts.completions;
  observer = parts.observer;
  observers_owner = parts.observers_owner;
  subject = parts.subject;
  Error error = zone.Begin(parts.zone.get());
  if (error.ok()) error = receive.Begin(parts.receive.get());
  if (error.ok()) error = request.Begin(parts.request.get());
  if (error.ok()) error = connect.Begin(parts.connect.get());
  if (error.ok()) error = shared_receives.Begin(parts.shared_receives.get());
  return error;
}

Endpoint::Parts Endpoint::PartsInUse::Shown() const {
  return {zone.ref(),  receive.ref(), request.ref(),   connect.ref(), shared_receives.ref(),
          completions, observer,      observers_owner, subject};
}

void Endpoint::Replaced::FlushPosted() {
  if (pair == nullptr) return;
  verbs::EpochSynchronize();  // posts under way still hold it
  if (HasPosted(*pair)) pair->Flush();
  for (EventDispatcher* d : {parts.receive.get(), parts.request.get()}) {
    if (d != nullptr) d->Harvest();
  }
}

void Endpoint::GiveUpParts(Replaced* last) {
  post_pair_.store(nullptr, std::memory_order_release);
  last->pair = std::move(pair_);
  last->parts = std::exchange(parts_, PartsInUse());
  last->modes = modes_;
}

// The old parts go to `replaced`, whose destructor ends their use.
Error Endpoint::AdoptParts(const Parts& parts, const EndpointAttributes& attributes,
                           Replaced* replaced) {
  const bool same_queues =
      parts.receive.get() == parts_.receive.get() && parts.request.get() == parts_.request.get();
  const bool refits = parts.zone && pair_ != nullptr && same_queues;
  PartsInUse in_use;
  if (Error error = in_use.Begin(parts); !error.ok()) return error;
  // This may throw. Of what follows only starting the watch may, which therefore comes last.
  const Error error =
      refits ? RefitPair(parts, attributes) : ReplacePair(parts, attributes, &replaced->pair);
  if (!error.ok()) return error;
  replaced->parts = std::exchange(parts_, std::move(in_use));
  replaced->modes = std::exchange(modes_, {attributes.receive_mode, attributes.request_mode});
  attributes_ = attributes;
  most_sends_.store(std::max(most_sends_.load(std::memory_order_relaxed), attributes.max_sends),
                    std::memory_order_relaxed);
  max_message_bytes_.store(attributes.max_message_bytes != 0
                               ? attributes.max_message_bytes
                               : adapter_->context().attributes().max_message_bytes,
                           std::memory_order_relaxed);
  owner_.observer.store(parts_.completions, std::memory_order_release);
  if (parts_.receive) parts_.receive->AddStream(modes_.receive);
  if (parts_.request) parts_.request->AddStream(modes_.request);
  owner_.solicited_only.store(modes_.receive == CompletionMode::kSolicited,
                              std::memory_order_relaxed);
  if (watch_ != nullptr) StartWatch();
  return Ok();
}

verbs::QueuePairOptions Endpoint::PairOptions(const Parts& parts,
                                              const EndpointAttributes& attributes) {
  verbs::QueuePairOptions options;
  options.domain = &parts.zone->domain();
  options.send_queue = parts.request ? &parts.request->device_queue() : discard_->queue();
  options.receive_queue = parts.receive ? &parts.receive->device_queue() : discard_->queue();
  options.shared_receives = parts.shared_receives ? parts.shared_receives->device_queue() : nullptr;
  options.sink = this;
  options.context = &owner_;
  options.max_sends = attributes.max_sends;
  options.max_receives = attributes.max_receives;
  options.max_send_segments = attributes.max_send_segments;
  options.max_receive_segments = attributes.max_receive_segments;
  options.max_reads_in = attributes.max_reads_in;
  options.max_reads_out = attributes.max_reads_out;
  options.no_receive = attributes.no_receive;
  options.remote_access = attributes.remote_access;
  return options;
}

Error Endpoint::ReplacePair(const Parts& parts, const EndpointAttributes& attributes,
                            std::unique_ptr<verbs::QueuePair>* old) {
  if (pair_ != nullptr && HasPosted(*pair_)) return InvalidState(state());
  std::unique_ptr<verbs::QueuePair> made;
  if (parts.zone) {
    if ((!parts.request || !parts.receive) && discard_ == nullptr) {
      discard_ = DiscardQueue::Make(adapter_->context());
      if (discard_ == nullptr) return OutOf(Resource::kDevice);
      post_discard_.store(discard_.get(), std::memory_order_release);
    }
    auto pair = adapter_->context().CreateQueuePair(PairOptions(parts, attributes));
    if (!pair.ok()) return OutOf(Resource::kEndpoint);
    made = *std::move(pair);
  }
  *old = std::exchange(pair_, std::move(made));
  post_pair_.store(pair_.get(), std::memory_order_release);
  return Ok();
}

Error Endpoint::RefitPair(const Parts& parts, const EndpointAttributes& attributes) {
  const absl::Status status = pair_->Modify(PairOptions(parts, attributes));
  if (absl::IsResourceExhausted(status)) return OutOf(Resource::kEndpoint);
  return status.ok() ? Ok() : InvalidState(state());
}

Error Endpoint::Free() {
  {
    MutexLock lock(&lock_);
    // Nobody reserves or connects it from here on.
    if (Error error = Check(EndpointInput::kFree); !error.ok()) return error;
    Abandon(Next(state(), EndpointInput::kFree).next);
  }
  return End();
}

void Endpoint::Destroy() { (void)End(); }

Error Endpoint::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<Endpoint>();
  adapter_->RemoveChild(this);
  {
    Replaced last;
    std::unique_ptr<ConnectAttempt> attempt;
    MutexLock lock(&lock_);
    attempt = std::move(attempt_);
    if (pair_ != nullptr) pair_->Disconnect(verbs::DisconnectMode::kAbrupt);
    Abandon(EndpointState::kUnconfiguredUnconnected);
    GiveUpParts(&last);
  }
  DropReference();
  return Ok();
}

Error Endpoint::Modify(const Parts* parts, const EndpointAttributes* attributes) {
  Replaced replaced;
  {
    MutexLock lock(&lock_);
    // A freed endpoint has given up its parts for good: it would never give up new ones.
    if (state() == EndpointState::kUnconfiguredUnconnected) return InvalidHandle<Endpoint>();
    // An endpoint that the provider made for a reserved point may get its first zone at any time.
    bool zone = parts != nullptr && parts_.zone && parts->zone.get() != parts_.zone.get();
    EndpointInput input = zone ? EndpointInput::kModifyZone : EndpointInput::kModifyAttributes;
    Error error = Check(input);
    if (!error.ok()) return error;
    error = AdoptParts(parts != nullptr ? *parts : parts_.Shown(),
                       attributes != nullptr ? *attributes : EndpointAttributes(attributes_),
                       &replaced);
    if (!error.ok()) return error;
  }
  replaced.FlushPosted();
  return Ok();
}

// ------------------------------------------------------------------------ what it shows

Endpoint::Parts Endpoint::parts() const {
  MutexLock lock(&lock_);
  return parts_.Shown();
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
  const verbs::EpochGuard guard;
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  return pair == nullptr || pair->SendIdle();
}

uint32_t Endpoint::open_receives() const {
  const verbs::EpochGuard guard;
  verbs::QueuePair* pair = post_pair_.load(std::memory_order_acquire);
  return pair == nullptr ? 0 : pair->open_receives();
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
  if (asked_port_ != 0) return asked_port_;
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
