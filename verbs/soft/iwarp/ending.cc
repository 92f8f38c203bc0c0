#include "verbs/soft/iwarp/ending.h"

#include "verbs/base/at_fork.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit Ending* oldest = nullptr;
constinit Ending* youngest = nullptr;
constinit size_t entered = 0;

// Those of a forked child are the parent's, and nothing of them happens any more.
const AtFork at_fork(nullptr, nullptr, [] {
  oldest = youngest = nullptr;
  entered = 0;
});

}  // namespace

void Ending::Enter() {
  entered_ = true;
  older_ = youngest;
  (older_ == nullptr ? oldest : older_->younger_) = this;
  youngest = this;
  if (++entered > kMostEndings) oldest->GiveWay();
}

void Ending::Leave() {
  if (!entered_) return;
  entered_ = false;
  (older_ == nullptr ? oldest : older_->younger_) = younger_;
  (younger_ == nullptr ? youngest : younger_->older_) = older_;
  older_ = younger_ = nullptr;
  --entered;
}

}  // namespace viaduct::verbs::iwarp
