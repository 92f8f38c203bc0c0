#include "dat/core/object.h"

#include "verbs/base/epoch.h"

namespace viaduct::core {

bool Object::AddReferenceUnlessZero() {
  uint32_t count = references_.load(std::memory_order_relaxed);
  while (count != 0) {
    if (references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void Object::DropReference() {
  // Whoever drops the last reference sees what all others did to the object.
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  verbs::EpochSynchronize();
  delete this;
}

}  // namespace viaduct::core
