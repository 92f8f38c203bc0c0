#include "verbs/base/epoch.h"

#include <pthread.h>

#include <mutex>

#include "verbs/base/at_fork.h"
#include "verbs/base/back_off.h"
#include "verbs/base/cancellation.h"
#include "verbs/base/lock.h"

namespace viaduct::verbs {
namespace internal {

thread_local constinit EpochRecord* epoch_record = nullptr;

namespace {

// Records are only ever added.
std::atomic<EpochRecord*> g_records{nullptr};
pthread_key_t g_key;
bool g_has_key;  // if false, the records of threads that end stay taken

// If a thread uses a guard after the destructor of its key ran, it takes a new record and sets the
// key again, and pthreads calls the destructor again.
void ReturnRecord(void* record) {
  epoch_record = nullptr;
  static_cast<EpochRecord*>(record)->taken.store(false, std::memory_order_release);
}

// The child has only the thread that forked; the guards of the others would stay for ever.
void ReturnRecordsOfOthers() {
  for (EpochRecord* r = g_records.load(std::memory_order_acquire); r != nullptr; r = r->next) {
    if (r == epoch_record) continue;
    r->entries.store(0, std::memory_order_relaxed);
    r->taken.store(false, std::memory_order_relaxed);
  }
}

const AtFork at_fork(nullptr, nullptr, ReturnRecordsOfOthers);

EpochRecord* TakeFreeRecord() {
  for (EpochRecord* r = g_records.load(std::memory_order_acquire); r != nullptr; r = r->next) {
    if (!r->taken.load(std::memory_order_relaxed) &&
        !r->taken.exchange(true, std::memory_order_acquire)) {
      return r;
    }
  }
  return nullptr;
}

EpochRecord* AddRecord() {
  EpochRecord* record = new EpochRecord;
  record->next = g_records.load(std::memory_order_relaxed);
  while (!g_records.compare_exchange_weak(record->next, record, std::memory_order_acq_rel)) {
  }
  return record;
}

}  // namespace

EpochRecord* NewEpochRecord() {
  static std::once_flag once;
  std::call_once(once, [] {
    PrepareFences();
    g_has_key = pthread_key_create(&g_key, ReturnRecord) == 0;
  });
  EpochRecord* record = TakeFreeRecord();
  if (record == nullptr) record = AddRecord();
  if (g_has_key) pthread_setspecific(g_key, record);
  epoch_record = record;
  return record;
}

}  // namespace internal

void EpochSynchronize() {
  CancellationDisabled no_cancellation;
  // A thread that entered before this fence is seen inside below; one that enters after it sees
  // that the caller has unlinked the object.
  HeavyFence();
  for (internal::EpochRecord* r = internal::g_records.load(std::memory_order_acquire); r != nullptr;
       r = r->next) {
    if (r == internal::epoch_record) continue;
    const uint64_t seen = r->entries.load(std::memory_order_acquire);
    if (seen % 2 == 0) continue;
    BackOff back_off;
    while (r->entries.load(std::memory_order_acquire) == seen) back_off.Pause();
  }
}

}  // namespace viaduct::verbs
