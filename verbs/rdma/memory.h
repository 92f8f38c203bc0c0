// Protection domains, regions and windows.
//
// A key of verbs/device.h is the device's own key: the remote key if the region has remote rights,
// else the local key. While the key is outside 1..0x7fffffff, the memory is registered again (siw
// draws keys at random, so about every second one is outside).
//
// A window is a window of the device if the device has such windows and they can express the bind,
// else a registration of its range. For each bind the poster makes a new one.
//
// If either of two domains is a wildcard, a queue pair of one may use a region of the other. The
// region is then registered in the pair's domain on the first use, for local use only, because no
// device knows one remote key in two domains. That registration ends with the region or with the
// domain. The sink of a read is registered once more in the same way, if the device wants it open
// to the peer and the region is not.
#ifndef VIADUCT_VERBS_RDMA_MEMORY_H_
#define VIADUCT_VERBS_RDMA_MEMORY_H_

#include <infiniband/verbs.h>

#include <list>
#include <memory>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"
#include "verbs/rdma/bounce_pool.h"
#include "verbs/rdma/confirmation_memory.h"
#include "verbs/rdma/device.h"
#include "verbs/rdma/region_map.h"

namespace viaduct::verbs::rdma {

class Memory;
class Region;
class Window;

// What a registration not shown to the peer is for. A sink is open to it (Device::opens_sinks).
enum class LocalUse { kAny, kSink };

// A local key that no memory of the device has.
constexpr uint32_t kNoLocalKey = 0xffffff00;

// The device's protection domain, which lives as long as anything in it.
class DomainCore : public std::enable_shared_from_this<DomainCore> {
 public:
  DomainCore(ibv_pd* handle, bool wildcard, const Device& device)
      : handle(handle),
        wildcard(wildcard),
        windows(device.windows()),
        opens_sinks(device.opens_sinks()),
        takes_offsets(device.takes_offsets()),
        bounces_(std::make_unique<BouncePool>(handle)),
        confirmation_(std::make_unique<ConfirmationMemory>(handle)) {}
  ~DomainCore();
  BouncePool& bounces() { return *bounces_; }
  ConfirmationMemory& confirmation() { return *confirmation_; }
  // The regions of one domain are open to pairs of the other.
  bool Matches(const DomainCore& other) const;
  DomainCore(const DomainCore&) = delete;
  DomainCore& operator=(const DomainCore&) = delete;

  ibv_pd* const handle;
  const bool wildcard;
  const DeviceWindows windows;
  const bool opens_sinks;
  const bool takes_offsets;

 private:
  friend class Memory;
  bool has_guests_ = false;  // regions of other domains are registered here; under Memory's lock
  std::unique_ptr<BouncePool> bounces_;
  std::unique_ptr<ConfirmationMemory> confirmation_;
};

class Domain final : public ProtectionDomain {
 public:
  Domain(Memory& memory, std::shared_ptr<DomainCore> core)
      : memory_(memory), core_(std::move(core)) {}
  ~Domain() override;
  const std::shared_ptr<DomainCore>& core() const { return core_; }

 private:
  Memory& memory_;
  const std::shared_ptr<DomainCore> core_;
};

// A bind in the send queue of a pair. It keeps the device's window even if its Window is destroyed
// or bound again, because a device that meets a bind of a window that no longer exists ends the
// connection.
struct QueuedBind {
  const ibv_qp* pair = nullptr;
  const Region* region = nullptr;
  std::shared_ptr<ibv_mw> window;
};

// All memory of one context.
class Memory {
 public:
  absl::StatusOr<std::unique_ptr<Region>> Register(std::shared_ptr<DomainCore> domain,
                                                   void* address, size_t length, uint32_t access,
                                                   AddressBase base);
  // Finds the device's key for `length` bytes at `address`, for a request of a queue pair of
  // `domain`. False: the bytes do not have these `rights`. Lock-free unless a wildcard is involved,
  // or this is the first use of a region as a sink that the device wants open.
  bool Translate(DomainCore& domain, Key key, uint64_t address, uint64_t length, uint32_t rights,
                 LocalUse use, RegionCache& cache, uint32_t* local_key) {
    const RegionEntry* const entry = map_.Find(key, cache);
    if (entry == nullptr || !entry->Holds(address, length, rights)) return false;
    if (!domain.opens_sinks) use = LocalUse::kAny;
    const bool sink = use == LocalUse::kSink;
    *local_key = sink ? entry->sink_key : entry->local_key;
    return (entry->domain == &domain && (!sink || *local_key != 0)) ||
           RegisterAgain(domain, key, use, local_key);
  }
  // The usual case: translates a segment to the device's form if its region is in `domain` itself
  // and counts addresses as in memory. False: that is not so, or the rights are missing.
  bool TranslateOwn(const DomainCore& domain, const Segment& segment, uint32_t rights,
                    RegionCache& cache, ibv_sge* to) {
    const RegionEntry* const entry = map_.Find(segment.key, cache);
    if (entry == nullptr || entry->domain != &domain || entry->address != entry->memory ||
        !entry->Holds(segment.address, segment.length, rights)) {
      return false;
    }
    *to = {segment.address, segment.length, entry->local_key};
    return true;
  }
  // Translates a receive's segments, except empty ones, to the device's form; `to` has room for
  // all. A segment that may not be written gets a key that no memory has, so the device refuses it
  // when a message comes; so it does by itself if a message reaches past the end of the region.
  // They end behind `most` bytes, those of the longest message: InfiniBand allows a receive 2 GiB,
  // and rxe and siw (Linux 6.1) count in 32 bits. Returns their number, which is at least one:
  // libsiw takes no receive without a segment, and libirdma and libbnxt_re (rdma-core 44) leave the
  // memory of an older receive in its place.
  uint32_t TranslateReceive(DomainCore& domain, absl::Span<const Segment> segments, uint32_t most,
                            RegionCache& cache, ibv_sge* to);
  // Where the processor finds the bytes; null: they do not have these rights. The result is valid
  // as long as the EpochGuard around the call: a region that ends or changes waits for guards.
  unsigned char* Resolve(DomainCore& domain, Key key, uint64_t address, uint64_t length,
                         uint32_t rights);

  // Does the part of a bind that a poster must not wait for under its lock. kDone: the bind is
  // done, with the window's new key (0: unbound). kDevice: BindOnDevice must follow. The key before
  // it has ended, except with kNoKey.
  enum class BindStep { kDone, kDevice, kRefused, kNoKey };
  BindStep Bind(const DomainCore& domain, const BindRequest& request, Key* key);
  // Calls `post` to bind the device's window for `pair`, unless the window or its region has ended
  // meanwhile (false). `post` returns the key, or 0: the device has refused it.
  bool BindOnDevice(const DomainCore& domain, const ibv_qp* pair, const BindRequest& request,
                    absl::FunctionRef<Key(ibv_mw* window, const ibv_mw_bind_info& range)> post,
                    Key* key);
  // The oldest bind of a device's window that was posted on `pair` is done. The caller holds the
  // lock of the pair's send completions.
  void BindDone(const ibv_qp* pair);
  // Ends what Bind has bound, unless the window has been bound again since.
  void Unbind(MemoryWindow& window, Key* key);
  // Ends the registrations of other domains' regions in this one, where nothing uses them any more.
  void EndGuestsOf(DomainCore& domain);
  // Ends the windows of scope kQueuePair bound on this pair, which does no binds any more.
  void EndWindowsOf(const ibv_qp* pair);

 private:
  friend class Region;
  friend class Window;

  // The region of a bind that is allowed, or null.
  Region* Bindable(const DomainCore& domain, const BindRequest& request, RegionEntry* entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the device's windows can express the bind.
  static bool FitsDevice(const Window& window, const Region& region, const DomainCore& domain,
                         const BindRequest& request);
  void NoteBound(Window& window, Region& region, Key key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The region, if a pair of that domain may use it; else null.
  Region* FindOpenTo(const DomainCore& domain, Key key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finds the region's additional registration in that domain, which is made on the first use.
  bool RegisterAgain(DomainCore& domain, Key key, LocalUse use, uint32_t* local_key);
  void Forget(Region& region);
  void Unbind(Window& window);
  void UnbindLocked(Window& window) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWindowsOf(Region& region) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RegionMap map_;
  Mutex mutex_;
  std::unordered_map<Key, Region*> regions_ ABSL_GUARDED_BY(mutex_);
  std::set<Window*> on_pairs_ ABSL_GUARDED_BY(mutex_);    // bound on one pair only
  std::list<QueuedBind> queued_ ABSL_GUARDED_BY(mutex_);  // in the order of posting
};

class Region final : public MemoryRegion {
 public:
  ~Region() override;
  Key key() const override { return key_; }
  absl::Status Modify(ProtectionDomain& domain, uint32_t access) override;

 private:
  friend class Memory;
  struct Registration {
    std::shared_ptr<DomainCore> domain;
    ibv_mr* handle;
    LocalUse use = LocalUse::kAny;
  };
  Region(Memory& memory, void* address, size_t length, AddressBase base)
      : memory_(memory), address_(address), length_(length), base_(base) {}
  RegionEntry Entry() const;
  const Registration* Other(const DomainCore& domain, LocalUse use) const;
  // These two, under Memory's lock, make the registration one of that domain with these rights.
  // False: the driver cannot change it, or has lost it as it tried.
  bool ChangeInPlace(const std::shared_ptr<DomainCore>& domain, uint32_t access);
  // The old registration goes to `ended`, which has room for it.
  absl::Status RegisterAnew(const std::shared_ptr<DomainCore>& domain, uint32_t access,
                            std::vector<Registration>* ended);

  Memory& memory_;
  void* const address_;
  const size_t length_;
  const AddressBase base_;
  Key key_ = 0;
  // The rest under Memory's lock.
  uint32_t access_ = 0;
  Registration own_;
  bool has_windows_ = false;          // the device's windows can be bound to it
  bool writable_ = false;             // it is pinned for writing, whatever its rights are now
  bool suspect_ = false;              // the driver may have lost it, and there was no other
  std::vector<Registration> others_;  // for local use
  std::set<Window*> windows_;         // bound to it
};

class Window final : public MemoryWindow {
 public:
  Window(Memory& memory, std::shared_ptr<DomainCore> domain, WindowScope scope)
      : memory_(memory),
        domain_(std::move(domain)),
        scope_(scope),
        place_(NewPlace()),
        pair_place_(NewPlace()) {}
  ~Window() override;

 private:
  friend class Memory;
  using Place = std::set<Window*>::node_type;
  Place NewPlace() {
    std::set<Window*> one = {this};
    return one.extract(one.begin());
  }

  Memory& memory_;
  const std::shared_ptr<DomainCore> domain_;
  const WindowScope scope_;
  // Under Memory's lock. The nodes for Region::windows_, Memory::on_pairs_ and, between Bind and
  // BindOnDevice, Memory::queued_, while they are not in these: to enter them needs no memory.
  Place place_, pair_place_;
  std::list<QueuedBind> queue_place_;
  ibv_mr* registration_ = nullptr;                   // this or handle_ is set while it is bound
  std::shared_ptr<const DomainCore> registered_in_;  // with a wildcard perhaps not domain_
  std::shared_ptr<ibv_mw> handle_;
  const ibv_qp* pair_ = nullptr;  // where handle_ is valid, if its scope is one pair
  Key key_ = 0;
  bool mapped_ = false;  // its key is in the map
  Region* region_ = nullptr;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_MEMORY_H_
