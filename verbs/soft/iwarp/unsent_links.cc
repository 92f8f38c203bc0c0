#include "verbs/soft/iwarp/unsent_links.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "verbs/base/lock.h"
#include "verbs/base/per_process.h"

namespace viaduct::verbs::iwarp {
namespace {

constinit std::atomic<bool> exits{false};

struct Links {
  Mutex lock;
  std::vector<Unsent*> all ABSL_GUARDED_BY(lock);
};

Links& TheLinks() { return PerProcess<Links>::Get(); }

}  // namespace

void RememberUnsent(Unsent& link) {
  Links& links = TheLinks();
  const MutexLock hold(&links.lock);
  try {
    links.all.push_back(&link);
  } catch (const std::bad_alloc&) {
    // Its peer sees a message that breaks off.
  }
}

void ForgetUnsent(Unsent& link) {
  Links& links = TheLinks();
  const MutexLock hold(&links.lock);
  links.all.erase(std::remove(links.all.begin(), links.all.end(), &link), links.all.end());
}

bool ProcessExits() { return exits.load(std::memory_order_relaxed); }

// The thread that exits may hold the lock; another one will let it go.
bool FlushUnsent() {
  exits.store(true, std::memory_order_relaxed);
  Links& links = TheLinks();
  if (!links.lock.TryLock()) return true;
  bool any = false;
  for (Unsent* const link : links.all) any = link->Flush() || any;
  links.lock.Unlock();
  return any;
}

}  // namespace viaduct::verbs::iwarp
