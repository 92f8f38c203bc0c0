#include "verbs/rdma/bounce_pool.h"

#include <algorithm>
#include <cerrno>
#include <new>

#include "absl/numeric/bits.h"
#include "verbs/base/block.h"
#include "verbs/base/cancellation.h"
#include "verbs/rdma/errors.h"
#include "verbs/rdma/registration.h"

namespace viaduct::verbs::rdma {
namespace {

constexpr size_t kSmallest = 4096;

int ClassOf(size_t size) { return absl::bit_width(size - 1); }

}  // namespace

BouncePool::~BouncePool() {
  for (std::vector<Bounce>& bounces : free_) {
    for (Bounce& bounce : bounces) {
      ibv_dereg_mr(bounce.registration);
      FreeBlock(bounce.memory, bounce.size);
    }
  }
}

Bounce BouncePool::Take(size_t size) {
  size = absl::bit_ceil(std::max(size, kSmallest));
  if (size > size_t{1} << (kClasses - 1)) return Bounce();
  {
    MutexLock lock(&mutex_);
    std::vector<Bounce>& bounces = free_[ClassOf(size)];
    if (!bounces.empty()) {
      const Bounce bounce = bounces.back();
      bounces.pop_back();
      return bounce;
    }
    // Reserves room now, so that GiveBack needs no memory.
    try {
      bounces.reserve(made_[ClassOf(size)] + 1);
    } catch (const std::bad_alloc&) {
      return Bounce();
    }
    ++made_[ClassOf(size)];
  }
  const CancellationDisabled no_cancellation;  // ibv_reg_mr may write()
  Bounce bounce;
  bounce.size = static_cast<uint32_t>(size);
  bounce.memory = static_cast<unsigned char*>(AllocateBlock(size));
  if (bounce.memory != nullptr) {
    bounce.registration = ibv_reg_mr(domain_, bounce.memory, size, AccessFlags(kLocalWrite));
  }
  if (bounce.registration == nullptr) {
    LogErrno(bounce.memory == nullptr ? ENOMEM : errno, "memory for a message");
    FreeBlock(bounce.memory, size);
    MutexLock lock(&mutex_);
    --made_[ClassOf(size)];
    return Bounce();
  }
  return bounce;
}

void BouncePool::GiveBack(Bounce& bounce) {
  if (bounce.memory == nullptr) return;
  MutexLock lock(&mutex_);
  free_[ClassOf(bounce.size)].push_back(bounce);
  bounce = Bounce();
}

}  // namespace viaduct::verbs::rdma
