// What the threads of a storm of calls share, and the arguments of their calls: mostly what a
// program would pass, otherwise NULL, garbage or a handle of another object.
#ifndef VIADUCT_TESTS_CONFORMANCE_DAT_STORM_H_
#define VIADUCT_TESTS_CONFORMANCE_DAT_STORM_H_

#include <atomic>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <random>
#include <vector>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests::storm {

inline constexpr int kQualifiers = 3;
inline constexpr DAT_TIMEOUT kMaxWait = 3 * kMillisecond;
inline constexpr size_t kPiece = 256;  // the longest segment that is well formed

// ThreadSanitizer should check the library and not this program, so under it no memory is written
// twice, and memory that is sent is never written.
inline constexpr bool kEachOnce = kSeesThreadsOnly;
inline constexpr size_t kArenaBytes = kEachOnce ? 64 << 20 : 1 << 20;

enum Kind { kIa, kPz, kLmr, kRmr, kEvd, kCno, kEp, kPsp, kRsp, kCsp, kSrq, kCr, kKinds };

// Handles that were ever given out, alive or not; the oldest are forgotten.
class Pool {
 public:
  void Add(DAT_HANDLE handle) {
    const std::lock_guard<std::mutex> hold(lock_);
    if (handles_.size() < kRoom) {
      handles_.push_back(handle);
    } else {
      handles_[next_++ % kRoom] = handle;
    }
  }
  DAT_HANDLE Pick(std::mt19937& random) {
    const std::lock_guard<std::mutex> hold(lock_);
    return handles_.empty() ? DAT_HANDLE_NULL : handles_[random() % handles_.size()];
  }

 private:
  static constexpr size_t kRoom = 24;
  std::mutex lock_;
  std::vector<DAT_HANDLE> handles_;
  size_t next_ = 0;
};

// What the threads share. The side's own adapter, dispatchers, zone and memory live for ever.
struct Arena {
  Arena() {
    pools[kIa].Add(side.ia);
    pools[kPz].Add(side.pz);
    pools[kLmr].Add(memory.lmr);
    for (DAT_EVD_HANDLE evd : evds) pools[kEvd].Add(evd);
    // This endpoint and this service point keep the objects that most calls name from being freed.
    endpoint_attributes = ParametersOf(side.NewEp()).ep_attr;
    side.Listen(usual_qualifier);
  }

  Side side;
  Memory memory{side, kArenaBytes};
  const DAT_EVD_HANDLE evds[4] = {side.receive_evd, side.request_evd, side.connect_evd,
                                  side.cr_evd};
  const DAT_CONN_QUAL usual_qualifier = Port(kQualifiers + 2);
  DAT_EP_ATTR endpoint_attributes;
  Pool pools[kKinds];
  Pool linked;  // endpoints that were connected
  std::atomic<size_t> fresh{kPiece};
  std::atomic<uint32_t> rmr_context{0};
  std::atomic<int> succeeded{0}, connected{0}, transferred{0};
};

// The arguments of one thread's calls.
class Arguments {
 public:
  Arguments(Arena* arena, unsigned seed) : arena_(*arena), random_(seed) {}

 protected:
  template <typename T>
  T* Maybe(T* pointer) {
    return random_() % 16 ? pointer : nullptr;
  }
  template <typename T>
  T Mask() {
    return static_cast<T>(random_() % 4 ? ~uint32_t{0} >> random_() % 32 : random_());
  }
  DAT_COUNT Number() {
    return random_() % 16 ? static_cast<DAT_COUNT>(random_() % 20)
                          : static_cast<DAT_COUNT>(random_());
  }
  DAT_TIMEOUT Time() { return random_() % (kMaxWait + 1); }
  DAT_CLOSE_FLAGS CloseFlags() { return static_cast<DAT_CLOSE_FLAGS>(random_() % 3); }
  DAT_COMPLETION_FLAGS Flags() {
    return static_cast<DAT_COMPLETION_FLAGS>(random_() % 4 ? 0 : random_() % 32);
  }
  DAT_MEM_PRIV_FLAGS Rights() {
    return random_() % 4 ? DAT_MEM_PRIV_ALL_FLAG : static_cast<DAT_MEM_PRIV_FLAGS>(random_() % 128);
  }
  DAT_CONN_QUAL Qualifier() { return Port(static_cast<int>(random_() % kQualifiers)); }
  DAT_COUNT DataSize() { return static_cast<DAT_COUNT>(random_() % sizeof data_) - 1; }
  DAT_EP_ATTR Attributes() {
    DAT_EP_ATTR attributes = arena_.endpoint_attributes;
    if (random_() % 4 == 0) {
      DAT_COUNT* const counts[] = {&attributes.max_recv_dtos,     &attributes.max_request_dtos,
                                   &attributes.max_recv_iov,      &attributes.max_request_iov,
                                   &attributes.max_rdma_read_in,  &attributes.max_rdma_read_out,
                                   &attributes.max_rdma_read_iov, &attributes.max_rdma_write_iov};
      *counts[random_() % std::size(counts)] = Number();
    }
    return attributes;
  }

  // A callback uses what it is told of, as programs do.
  static void OnTrigger(DAT_PVOID, DAT_EVD_HANDLE evd) {
    DAT_EVENT event;
    dat_evd_dequeue(evd, &event);
  }
  DAT_OS_WAIT_PROXY_AGENT Agent() { return {nullptr, random_() % 2 ? &OnTrigger : nullptr}; }

  static DAT_HANDLE Number(uintptr_t number) { return reinterpret_cast<DAT_HANDLE>(number); }
  DAT_HANDLE Any() { return Handle(static_cast<Kind>(random_() % kKinds)); }
  DAT_HANDLE Handle(Kind kind) {
    switch (random_() % 32) {
      case 0:
        return DAT_HANDLE_NULL;
      case 1:
        return Number(uintptr_t{random_()} << 32 | random_());
      case 2:
        return this;
      case 3:
        return Number(reinterpret_cast<uintptr_t>(arena_.pools[kind].Pick(random_)) +
                      random_() % 17 - 8);
      case 4:
        return arena_.pools[random_() % kKinds].Pick(random_);
      default:
        return arena_.pools[kind].Pick(random_);
    }
  }
  DAT_HANDLE HandleOrNull(Kind kind) { return random_() % 2 ? DAT_HANDLE_NULL : Handle(kind); }
  // A handle to free; mostly NULL, so that objects live for a while.
  DAT_HANDLE Seldom(Kind kind) { return random_() % 4 ? DAT_HANDLE_NULL : Handle(kind); }
  // Mostly objects that belong together: otherwise little would ever connect.
  DAT_HANDLE Mostly(DAT_HANDLE usual, Kind kind) { return random_() % 8 ? usual : Handle(kind); }
  DAT_IA_HANDLE Ia() { return Mostly(arena_.side.ia, kIa); }
  DAT_PZ_HANDLE Pz() { return Mostly(arena_.side.pz, kPz); }
  DAT_LMR_HANDLE Lmr() { return Mostly(arena_.memory.lmr, kLmr); }
  DAT_EVD_HANDLE CrEvd() { return Mostly(arena_.side.cr_evd, kEvd); }
  DAT_EP_HANDLE Ep() { return Handle(kEp); }
  DAT_EP_HANDLE Linked() { return random_() % 4 ? arena_.linked.Pick(random_) : Ep(); }
  DAT_EVD_HANDLE Evd() { return Mostly(arena_.evds[random_() % std::size(arena_.evds)], kEvd); }

  // Memory to send; with kEachOnce it is never written.
  DAT_LMR_TRIPLET Source() { return Part(kEachOnce ? 0 : Somewhere(), random_() % 32); }
  // Memory to receive into, seldom too short for what comes.
  DAT_LMR_TRIPLET Sink() {
    return Part(kEachOnce ? arena_.fresh.fetch_add(kPiece) : Somewhere(),
                random_() % 16 ? kPiece : random_() % kPiece);
  }
  size_t Somewhere() { return random_() % (kArenaBytes - kPiece) & ~size_t{7}; }
  DAT_LMR_TRIPLET Part(size_t offset, size_t length) {
    if (offset + kPiece > kArenaBytes) return {};
    DAT_LMR_TRIPLET part = arena_.memory.Local(offset, length);
    if (random_() % 128 == 0) part.lmr_context = random_();
    if (random_() % 128 == 0) part.virtual_address = random_();
    return part;
  }
  DAT_RMR_TRIPLET Remote(const DAT_LMR_TRIPLET& part) {
    const DAT_RMR_CONTEXT key =
        random_() % 32 ? arena_.memory.rmr_context : arena_.rmr_context.load();
    return RemoteTriplet(part.virtual_address, part.segment_length, key);
  }
  DAT_LMR_TRIPLET* Iov() { return Maybe(&iov_[0]); }
  // Fills iov_ and returns the number of segments.
  DAT_COUNT Sources() {
    for (DAT_LMR_TRIPLET& part : iov_) part = Source();
    return Segments();
  }
  DAT_COUNT Sinks() {
    for (DAT_LMR_TRIPLET& part : iov_) part = Sink();
    return Segments();
  }
  DAT_COUNT Segments() {
    return random_() % 32 ? static_cast<DAT_COUNT>(random_() % (std::size(iov_) + 1))
                          : -static_cast<DAT_COUNT>(random_() % 1000);
  }

  Arena& arena_;
  std::mt19937 random_;
  DAT_LMR_TRIPLET iov_[4];
  uint8_t data_[40] = {};  // private data
};

}  // namespace viaduct::tests::storm

#endif  // VIADUCT_TESTS_CONFORMANCE_DAT_STORM_H_
