// Nic: what VipOpenNic returns. It wraps an adapter of its own and knows the VIs and completion
// queues made under it, so that VipCloseNic leaves nothing behind.
#ifndef VIADUCT_VIPL_NIC_H_
#define VIADUCT_VIPL_NIC_H_

#include <vipl.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "compat/net_address.h"
#include "compat/nic_names.h"
#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "dat/core/object.h"
#include "dat/core/protection_zone.h"
#include "verbs/base/address.h"
#include "verbs/base/clock.h"
#include "verbs/base/lock.h"
#include "vipl/registrations.h"

namespace viaduct::vipl {

// A VI or a completion queue, as its NIC sees it.
class NicChild : public core::Object {
 public:
  using Object::Object;
  // Called when the handle is dead and the adapter is about to close: threads that wait on this
  // object return and take nothing any more.
  virtual void OnNicClosed() = 0;
};

class Nic final : public core::Object, private core::AdapterObserver {
 public:
  static constexpr core::ObjectType kType = core::ObjectType::kNic;

  static VIP_RETURN Open(const std::string& name, const compat::NicChoice& choice,
                         core::Ref<Nic>* out);
  // When it returns, the handle is dead, and so are the handles of everything made under this NIC.
  VIP_RETURN Close();

  core::InterfaceAdapter& adapter() const { return *adapter_; }
  verbs::Deadline DeadlineAfter(VIP_ULONG milliseconds) const;
  const VIP_NIC_ATTRIBUTES& attributes() const { return attributes_; }
  const compat::NicAddress& address() const { return address_; }
  Registrations& registrations() { return registrations_; }

  // The zone of `tag`; a NULL tag means the wildcard zone. Null: `tag` is not one of this NIC.
  core::Ref<core::ProtectionZone> ZoneOf(VIP_PROTECTION_HANDLE tag) const;

  // False once the NIC is closing, and if the child, which has a handle, has been destroyed: a
  // program can guess the handle.
  bool AddChild(NicChild* child);
  void RemoveChild(NicChild* child);

  // The dispatcher of a thread that waits for connection requests. Once the NIC has failed no
  // request comes any more, so the dispatcher refuses to wait.
  void AddWaiter(core::EventDispatcher* waiter);
  void RemoveWaiter(core::EventDispatcher* waiter);

  // ---- asynchronous errors
  // A null handler restores the default, which logs.
  void SetErrorHandler(VIP_ERROR_HANDLER handler, VIP_PVOID context);
  // Calls the handler that is set at the time of delivery, on the callback thread, unless the NIC
  // has been closed by then; a delivery that is under way may reach the handler after VipCloseNic
  // has begun. Any thread, also inside an EpochGuard. Of errors that a peer can cause again and
  // again, only some thousands are kept for a handler that does not keep up.
  void Report(VIP_ERROR_DESCRIPTOR error);

  // `address` in the form that programs read. It has no discriminator, but room in which the
  // program may put one; valid while this object lives.
  VIP_NET_ADDRESS* Discovered(const compat::NicAddress& address);

  // True between VipNSInit and VipNSShutdown.
  std::atomic<bool>& name_service() { return name_service_; }

 private:
  Nic(const std::string& name, const verbs::Address& address,
      core::Ref<core::InterfaceAdapter> adapter, core::Ref<core::ProtectionZone> wildcard);
  ~Nic() override;
  void OnAdapterFailed() override;
  void Deliver(VIP_ERROR_DESCRIPTOR error);

  const core::Ref<core::InterfaceAdapter> adapter_;
  const core::Ref<core::ProtectionZone> wildcard_;
  const compat::NicAddress address_;
  VIP_NIC_ATTRIBUTES attributes_;
  Registrations registrations_;
  std::atomic<bool> name_service_{false};

  verbs::Mutex lock_;
  std::atomic<bool> closed_{false};  // set under the lock
  bool failed_ ABSL_GUARDED_BY(lock_) = false;
  std::unordered_set<NicChild*> children_ ABSL_GUARDED_BY(lock_);
  std::unordered_set<core::EventDispatcher*> waiters_ ABSL_GUARDED_BY(lock_);
  std::atomic<uint32_t> undelivered_{0};  // reports that wait for delivery
  std::atomic<bool> overflowing_{false};  // reports have been left out since none waited
  std::atomic<uint32_t> logged_{0};       // lines about errors that may repeat
  VIP_ERROR_HANDLER handler_ ABSL_GUARDED_BY(lock_) = nullptr;
  VIP_PVOID handler_context_ ABSL_GUARDED_BY(lock_) = nullptr;
  std::map<compat::NicAddress, std::vector<uint32_t>> discovered_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::vipl

#endif  // VIADUCT_VIPL_NIC_H_
