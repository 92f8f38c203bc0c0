// What the engine counts, for as long as an object lives: uDAPL 2.0's counters show it.
//
// Counting costs the data path a load and a store. So an addition may be lost where two threads add
// to one count of one object in the same instant; AddShared loses none. A count only grows: what
// begins anew is shown without what there was, so that who counts meanwhile is not disturbed.
#ifndef VIADUCT_DAT_CORE_COUNTS_H_
#define VIADUCT_DAT_CORE_COUNTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace viaduct::core {

enum class EndpointCount : uint8_t {
  kConnects,  // attempts
  kDisconnects,
  // Posts, and their bytes.
  kSends,
  kSendBytes,
  kReceivesPosted,
  kReceivesPostedBytes,
  kWrites,
  kWriteBytes,
  kImmediateWrites,
  kImmediateWriteBytes,
  kReads,
  kReadBytes,
  kCompareAndSwaps,
  kFetchAndAdds,
  // Receives that completed well, when the dispatcher has taken them from the device.
  kReceives,
  kReceiveBytes,
  kImmediates,  // by a write
  kImmediateBytes,
  kEnd,
};

enum class DispatcherCount : uint8_t {
  kWaits,
  kSleeps,  // waits that found nothing at first
  kWoken,   // of which something came
  kDequeues,
  kDequeuesFound,
  kDequeuesEmpty,
  kPolls,  // of the device, by a dequeue
  kPollsFound,
  kConnectionEvents,  // requests and connections
  kNews,              // the device told of completions by itself
  kEnd,
};

// Beside the objects that were made and freed.
enum class AdapterCount : uint8_t {
  kAnyPointsMade,  // public service points without a name of the consumer's
  // From here to kConnectionErrors: InterfaceAdapter::CountConnections.
  kRequestsSent,
  kRequestsReceived,
  kAccepted,
  kRejected,
  kActiveEstablished,
  kPassiveEstablished,
  kRejectedByPeer,
  kDisconnected,
  kDisconnectedByPeer,
  kNonPeerRejected,
  kBroken,
  kTimedOut,
  kConnectionErrors,  // unreachable, and accepts that did not come about
  kAsyncErrors,
  kAsyncEndpointErrors,
  kAsyncOverflows,
  kEnd,
};

template <typename What>
class Counts {
 public:
  // Each count at one moment.
  using Totals = std::array<uint64_t, static_cast<size_t>(What::kEnd)>;

  Counts() = default;
  ~Counts() { delete bases_.load(std::memory_order_relaxed); }
  Counts(const Counts&) = delete;
  Counts& operator=(const Counts&) = delete;

  void Add(What what, uint64_t n = 1) {
    std::atomic<uint64_t>& value = At(what);
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  // One of `what`, and its bytes, which are the next count.
  void AddWithBytes(What what, uint64_t bytes) {
    Add(what);
    Add(static_cast<What>(static_cast<int>(what) + 1), bytes);
  }
  void AddShared(What what) { At(what).fetch_add(1, std::memory_order_relaxed); }
  Totals Read() const {
    Totals totals;
    for (size_t i = 0; i < totals.size(); ++i) {
      totals[i] = values_[i].load(std::memory_order_relaxed);
    }
    return totals;
  }
  // What `totals` has since the count began anew.
  uint64_t Shown(const Totals& totals, What what) const {
    const Values* const bases = bases_.load(std::memory_order_acquire);
    const uint64_t total = totals[static_cast<size_t>(what)];
    if (bases == nullptr) return total;
    const uint64_t base = (*bases)[static_cast<size_t>(what)].load(std::memory_order_relaxed);
    return total > base ? total - base : 0;
  }
  // The count begins anew with what comes behind `totals`. The first time it takes memory, or
  // throws std::bad_alloc, and nothing has happened.
  void BeginAnew(const Totals& totals, What what) {
    Bases()[static_cast<size_t>(what)].store(totals[static_cast<size_t>(what)],
                                             std::memory_order_relaxed);
  }

 private:
  using Values = std::array<std::atomic<uint64_t>, static_cast<size_t>(What::kEnd)>;

  std::atomic<uint64_t>& At(What what) { return values_[static_cast<size_t>(what)]; }
  Values& Bases() {
    Values* bases = bases_.load(std::memory_order_acquire);
    if (bases != nullptr) return *bases;
    auto made = std::make_unique<Values>();
    if (!bases_.compare_exchange_strong(bases, made.get(), std::memory_order_acq_rel)) {
      return *bases;
    }
    return *made.release();
  }

  Values values_ = {};
  std::atomic<Values*> bases_{nullptr};  // once one has begun anew
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_COUNTS_H_
