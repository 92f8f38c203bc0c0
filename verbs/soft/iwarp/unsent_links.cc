#include "verbs/soft/iwarp/unsent_links.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "verbs/base/at_fork.h"
#include "verbs/base/lock.h"
#include "verbs/base/per_process.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit std::atomic<bool> exits{false};

const AtFork at_fork(nullptr, nullptr, [] { exits.store(false, std::memory_order_relaxed); });

struct Links {
  Mutex lock;
  std::vector<Unsent*> all ABSL_GUARDED_BY(lock);
};

using TheLinks = PerProcess<Links>;

}  // namespace

void RememberUnsent(Unsent& link) {
  try {
    Links& links = TheLinks::Get();
    const MutexLock hold(&links.lock);
    links.all.push_back(&link);
  } catch (const std::bad_alloc&) {
    // At exit, the link's peer may see a message that is cut off.
  }
}

void ForgetUnsent(Unsent& link) {
  Links* const links = TheLinks::Find();
  if (links == nullptr) return;
  const MutexLock hold(&links->lock);
  links->all.erase(std::remove(links->all.begin(), links->all.end(), &link), links->all.end());
}

bool ProcessExits() { return exits.load(std::memory_order_relaxed); }

// Only tries the lock: the thread that exits may hold it. Any other thread will release it.
bool FlushUnsent() {
  exits.store(true, std::memory_order_relaxed);
  Links* const links = TheLinks::Find();
  if (links == nullptr) return false;
  if (!links->lock.TryLock()) return true;
  bool any = false;
  for (Unsent* const link : links->all) any = link->Flush() || any;
  links->lock.Unlock();
  return any;
}

}  // namespace viaduct::verbs::iwarp
