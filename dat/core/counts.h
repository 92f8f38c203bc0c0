// The engine's counts, kept as long as their object lives and shown by uDAPL 2.0's counters.
//
// Counting costs the data path a load and a store. So an addition may be lost when two threads add
// to one count of one object at the same instant; AddShared loses none. A count only grows: to
// restart it, BeginAnew notes its value, which Shown subtracts, and so disturbs no thread that is
// counting.
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
  // Receives that succeeded, counted when the dispatcher takes them from the device.
  kReceives,
  kReceiveBytes,
  kImmediates,  // by a write
  kImmediateBytes,
  kEnd,
};

enum class DispatcherCount : uint8_t {
  kWaits,
  kSleeps,  // waits that found nothing at first
  kWoken,   // sleeps that ended because something came
  kDequeues,
  kDequeuesFound,
  kDequeuesEmpty,
  kPolls,  // of the device, by a dequeue
  kPollsFound,
  kConnectionEvents,  // requests and connections
  kNews,              // the device reported completions by itself
  kEnd,
};

// In addition to the objects made and freed: InterfaceAdapter::CountOfMade and CountOfFreed.
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
  kConnectionErrors,  // unreachable, no resources, and accepts that failed
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
  // Adds one to `what`, and `bytes` to the count that follows it.
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
  // The part of `totals` that was counted since the last BeginAnew.
  uint64_t Shown(const Totals& totals, What what) const {
    const Values* const bases = bases_.load(std::memory_order_acquire);
    const uint64_t total = totals[static_cast<size_t>(what)];
    if (bases == nullptr) return total;
    const uint64_t base = (*bases)[static_cast<size_t>(what)].load(std::memory_order_relaxed);
    return total > base ? total - base : 0;
  }
  // Restarts the count: what is in `totals` is not shown any more. The first call needs memory; if
  // it throws std::bad_alloc, nothing has changed.
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
  std::atomic<Values*> bases_{nullptr};  // null until the first BeginAnew
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_COUNTS_H_
