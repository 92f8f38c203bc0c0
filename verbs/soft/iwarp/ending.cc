#include "verbs/soft/iwarp/ending.h"

#include "verbs/base/at_fork.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit Ending* oldest = nullptr;
constinit Ending* youngest = nullptr;
constinit size_t entered = 0;

// The entries that a forked child inherits are the parent's, and the child never runs them.
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
