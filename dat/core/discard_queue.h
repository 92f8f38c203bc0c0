// Where the completions of a stream without a dispatcher go.
#ifndef VIADUCT_DAT_CORE_DISCARD_QUEUE_H_
#define VIADUCT_DAT_CORE_DISCARD_QUEUE_H_

#include <memory>
#include <utility>

#include "verbs/device.h"

namespace viaduct::core {

// Completions that no consumer is interested in ("EVD handle NULL") still have to leave the
// device's queues.
class DiscardQueue final : private verbs::CompletionSink {
 public:
  static std::unique_ptr<DiscardQueue> Make(verbs::Context& context) {
    auto discard = std::make_unique<DiscardQueue>();
    auto queue = context.CreateCompletionQueue(discard.get());
    if (!queue.ok()) return nullptr;
    discard->queue_ = *std::move(queue);
    return discard;
  }
  verbs::CompletionQueue* queue() { return queue_.get(); }
  void Empty() {
    verbs::Completion batch[16];
    while (queue_->Poll(batch, 16) != 0) {
    }
  }

 private:
  void OnCompletions(verbs::CompletionQueue&) override { Empty(); }
  std::unique_ptr<verbs::CompletionQueue> queue_;
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_DISCARD_QUEUE_H_
