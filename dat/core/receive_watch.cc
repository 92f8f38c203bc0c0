#include "dat/core/receive_watch.h"

#include "dat/core/interface_adapter.h"

namespace viaduct::core {

using verbs::MutexLock;

ReceiveWatch::Verdict ReceiveWatch::Judge(uint32_t held) {
  const Verdict verdict = {held > soft_, held > hard_};
  if (verdict.soft) soft_ = kNoLimit;
  return verdict;
}

void ReceiveWatch::Ask() {
  errand_.Post(endpoint_.adapter().executor(), Ref<Endpoint>::Share(&endpoint_));
}

bool ReceiveWatch::OnCompletion(const verbs::Completion& completion) {
  if (IsReceive(completion.opcode) && completion.status == verbs::Status::kSuccess) Ask();
  return true;
}

// ------------------------------------------------------------------- the endpoint's part of it

uint32_t Endpoint::HarvestOpenReceives() {
  const Ref<EventDispatcher> receive = parts().receive;
  if (receive) receive->Harvest();
  return open_receives();
}

uint32_t Endpoint::ReceivesHeld() {
  if (!parts_.receive) return 0;
  return parts_.receive->QueuedReceives(owner_.handle, EventDispatcher::Receives::kMessages);
}

void Endpoint::MakeWatch() {
  MutexLock lock(&lock_);
  if (watch_ == nullptr) watch_ = std::make_unique<ReceiveWatch>(*this);
}

void Endpoint::SetWatermarks(uint32_t soft, std::optional<uint32_t> hard) {
  MakeWatch();
  MutexLock lock(&lock_);
  watch_->Set(soft, hard);
  StartWatch();
  watch_->Ask();  // the number may be above the limits already
}

void Endpoint::StartWatch() {
  owner_.observer.store(watch_.get(), std::memory_order_release);
  if (parts_.receive) parts_.receive->TakeAll();
}

void Endpoint::CheckWatermarks() {
  MutexLock lock(&lock_);
  const ReceiveWatch::Verdict above = watch_->Judge(ReceivesHeld());
  if (above.soft) adapter_->PostAsync(EventType::kAsyncHighWatermark, owner_.handle);
  if (!above.hard) return;
  if (Next(state(), EndpointInput::kBroken).verdict != Verdict::kGo) return;
  pair_->Disconnect(verbs::DisconnectMode::kAbrupt);
  (void)Apply(EndpointInput::kBroken);
}

}  // namespace viaduct::core
