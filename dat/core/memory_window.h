// MemoryWindow: DAT's RMR, a part of a region that the peer accesses by a context of its own.
//
// Each bind gives a fresh context. The event of its completion comes to the endpoint's request
// dispatcher and names the window: BindTable keeps what the device's completion has no room for.
#ifndef VIADUCT_DAT_CORE_MEMORY_WINDOW_H_
#define VIADUCT_DAT_CORE_MEMORY_WINDOW_H_

#include <cstdint>
#include <memory>

#include "dat/core/error.h"
#include "dat/core/memory_region.h"
#include "dat/core/object.h"
#include "dat/core/protection_zone.h"
#include "dat/core/use.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class Endpoint;

class MemoryWindow final : public Object {
 public:
  static constexpr ObjectType kType = ObjectType::kMemoryWindow;

  static Error Create(ProtectionZone& zone, verbs::WindowScope scope, Ref<MemoryWindow>* out);
  // Unbinds: after the return nothing is read or written through the window's context.
  Error Free();
  void Destroy() override;

  struct Binding {
    Ref<MemoryRegion> region;  // null: nothing is bound
    uint64_t address = 0;      // in the region's AddressBase
    uint64_t length = 0;
    uint32_t access = 0;  // kRemote...
    verbs::AddressBase base = verbs::AddressBase::kVirtual;
    verbs::Key key = 0;
  };
  // Posts a bind on `endpoint`; length 0 unbinds, and the rest of `binding` means nothing then.
  // `*key` is valid from the completion on; 0: nothing will be bound. kInvalidParameter (range),
  // kPrivilegesViolation, kProtectionViolation (zones differ), and what posting returns.
  Error Bind(Endpoint& endpoint, const Binding& binding, uint64_t cookie, uint16_t flags,
             verbs::Key* key);

  InterfaceAdapter& adapter() const { return zone_->adapter(); }
  ProtectionZone& zone() const { return *zone_; }
  verbs::WindowScope scope() const { return scope_; }
  // The binding of the last bind that was posted in a connection.
  Binding binding() const;

 private:
  MemoryWindow(Use<ProtectionZone> zone, verbs::WindowScope scope,
               std::unique_ptr<verbs::MemoryWindow> window);
  ~MemoryWindow() override;
  Error End();  // kInvalidHandle unless this call is the one that ends it
  Error Check(const Endpoint& endpoint, const Binding& binding) const;
  // Makes `binding` the current one; `region`: a use of its region.
  void Adopt(const Binding& binding, Use<MemoryRegion> region) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  const Ref<ProtectionZone> zone_;
  const verbs::WindowScope scope_;
  mutable verbs::Mutex lock_;
  Use<ProtectionZone> zone_use_ ABSL_GUARDED_BY(lock_);  // until the window ends
  std::unique_ptr<verbs::MemoryWindow> window_ ABSL_GUARDED_BY(lock_);
  Binding binding_ ABSL_GUARDED_BY(lock_);
  Use<MemoryRegion> region_use_ ABSL_GUARDED_BY(lock_);  // of binding_'s region
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_MEMORY_WINDOW_H_
