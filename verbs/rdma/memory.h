// Protection domains, regions and windows.
//
// A key of verbs/device.h is the device's own: the remote one where the region has remote rights,
// else the local one. One that is outside 1..0x7fffffff is registered again (siw draws keys at
// random, so about every second one is).
//
// A window is the device's own where it has such windows and they can say what is asked, else a
// registration of its range; either is made afresh for each bind, by the poster.
//
// A region of one domain that a queue pair of another may use (a wildcard domain is either) is
// registered there on the first use, for local use alone: no device knows one remote key in two
// domains. That ends with either of them. So is the sink of a read, where the device wants it open
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

// Of a registration that is not shown to the peer. A sink is open to it (Device::opens_sinks).
enum class LocalUse { kAny, kSink };

// The device's key of nothing.
constexpr uint32_t kNoLocalKey = 0xffffff00;

// The device's domain: lives as long as anything that is in it.
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
  // Regions of one are open to pairs of the other.
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
  bool has_guests_ = false;  // regions of others are registered here; under Memory's lock
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

// A bind that a pair has in its queue. It keeps the device's window, also when its Window has gone
// or is bound again: a device that comes upon a bind of a window that is no more ends the
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
  // The device's key for `length` bytes at `address`, which have `rights`, in a request of a
  // queue pair of `domain`. False: they have not. Lock-free unless a wildcard is at work, or it is
  // the first sink of a region where the device wants those open.
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
  // The usual case of it: a segment of a region of that very domain whose addresses are those of
  // memory, in the device's form. False: it is not one.
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
  // A receive's segments but for the empty ones in the device's form; `to` has room for all. One
  // that may not be written gets a key that nothing has: the device refuses it when a message
  // comes. Returns how many, at least one: libsiw takes no receive without a segment, and libirdma
  // and libbnxt_re (rdma-core 44) leave the memory of an older one in its place.
  uint32_t TranslateReceive(DomainCore& domain, absl::Span<const Segment> segments,
                            RegionCache& cache, ibv_sge* to);
  // Where the processor finds them; null: they have not these rights. Good as long as the
  // EpochGuard around it: the end of a region and its change wait for guards.
  unsigned char* Resolve(DomainCore& domain, Key key, uint64_t address, uint64_t length,
                         uint32_t rights);

  // Makes what a bind needs that a poster must not wait for under its lock. Done, with the
  // window's new key (0: unbound), or BindOnDevice is to follow. But for kNoKey the key before it
  // has ended.
  enum class BindStep { kDone, kDevice, kRefused, kNoKey };
  BindStep Bind(const DomainCore& domain, const BindRequest& request, Key* key);
  // Calls `post` to bind the device's window for `pair`, unless the window or its region has ended
  // meanwhile (false). `post` returns the key, or 0: the device has refused it.
  bool BindOnDevice(const DomainCore& domain, const ibv_qp* pair, const BindRequest& request,
                    absl::FunctionRef<Key(ibv_mw* window, const ibv_mw_bind_info& range)> post,
                    Key* key);
  // The oldest bind that was posted there for one of the device's windows is done. The caller holds
  // the lock of its completions.
  void BindDone(const ibv_qp* pair);
  // What Bind has bound ends, unless it has been bound again since.
  void Unbind(MemoryWindow& window, Key* key);
  // The regions of other domains are registered in this one no longer: nothing is left in it that
  // would use them.
  void EndGuestsOf(DomainCore& domain);
  // Of the pairs' windows, those that were bound on this one end. It does no binds any more.
  void EndWindowsOf(const ibv_qp* pair);

 private:
  friend class Region;
  friend class Window;

  // The region of a bind that may be, or null.
  Region* Bindable(const DomainCore& domain, const BindRequest& request, RegionEntry* entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether the device's windows can say it.
  static bool FitsDevice(const Window& window, const Region& region, const DomainCore& domain,
                         const BindRequest& request);
  void NoteBound(Window& window, Region& region, Key key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The region, if a pair of that domain may use it; else null.
  Region* FindOpenTo(const DomainCore& domain, Key key) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A registration of a region in that domain, made on the first use, beside the region's own.
  bool RegisterAgain(DomainCore& domain, Key key, LocalUse use, uint32_t* local_key);
  void Forget(Region& region);
  void Unbind(Window& window);
  void UnbindLocked(Window& window) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWindowsOf(Region& region) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  RegionMap map_;
  Mutex mutex_;
  std::unordered_map<Key, Region*> regions_ ABSL_GUARDED_BY(mutex_);
  std::set<Window*> on_pairs_ ABSL_GUARDED_BY(mutex_);    // bound to one alone
  std::list<QueuedBind> queued_ ABSL_GUARDED_BY(mutex_);  // as they were posted
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
  // These two under the memory's lock: the registration is for that domain and with these rights.
  // False: the driver cannot change it, or has lost it as it tried.
  bool ChangeInPlace(const std::shared_ptr<DomainCore>& domain, uint32_t access);
  // The one that was there goes to `ended`, which has room for it.
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
  bool has_windows_ = false;          // it can have the device's
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
  // Under Memory's lock. Its places in Region::windows_, in Memory::on_pairs_ and, between Bind and
  // BindOnDevice, in Memory::queued_ while it is in none of them: a window that is bound needs no
  // memory to be known there.
  Place place_, pair_place_;
  std::list<QueuedBind> queue_place_;
  ibv_mr* registration_ = nullptr;                   // one of the two, while it is bound
  std::shared_ptr<const DomainCore> registered_in_;  // a wildcard's may be another than domain_
  std::shared_ptr<ibv_mw> handle_;
  const ibv_qp* pair_ = nullptr;  // where `handle_` is good, if it is a pair's
  Key key_ = 0;
  bool mapped_ = false;  // its key is in the map
  Region* region_ = nullptr;
};

}  // namespace viaduct::verbs::rdma

#endif  // VIADUCT_VERBS_RDMA_MEMORY_H_
