// InterfaceAdapter: DAT's IA, VIPL's NIC. One for each open; opens of one name share the device.
//
// It knows every object made under it, so that an abrupt close leaves nothing behind.
#ifndef VIADUCT_DAT_CORE_INTERFACE_ADAPTER_H_
#define VIADUCT_DAT_CORE_INTERFACE_ADAPTER_H_

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dat/core/counts.h"
#include "dat/core/error.h"
#include "dat/core/event.h"
#include "dat/core/object.h"
#include "dat/core/use.h"
#include "verbs/base/lock.h"
#include "verbs/device.h"

namespace viaduct::core {

class ConnectionManager;
class Endpoint;
class EventDispatcher;
class MemoryRegion;

// Hears of an adapter what has no event: VIPL's NIC.
class AdapterObserver {
 public:
  // The device has failed. Executor: short, no call into the engine.
  virtual void OnAdapterFailed() = 0;

 protected:
  ~AdapterObserver() = default;
};

class InterfaceAdapter final : public Object, private verbs::FailureSink {
 public:
  static constexpr ObjectType kType = ObjectType::kAdapter;

  // The process's device of that address, opened on first use. Addresses of interfaces come
  // from verbs/base/interfaces.h, names of devices from verbs/open_device.h.
  static Error Open(const verbs::Address& address, Ref<InterfaceAdapter>* out,
                    const std::string& device = verbs::kAnyDevice);
  // Over a given device: for the simulation.
  static Error Open(std::shared_ptr<ConnectionManager> manager, Ref<InterfaceAdapter>* out);

  enum class CloseMode { kGraceful, kAbrupt };
  // Graceful: kInvalidState while consumer's objects live (the default dispatcher aside). Abrupt
  // destroys them all: endpoints disconnect, waiters return kAbort. Then the handle is dead.
  Error Close(CloseMode mode);

  // The last step of an open: from now on, until Close returns, the asynchronous dispatcher and
  // `observer`, if there is one, hear of it when the device fails. kInsufficientResources: it has
  // failed already. At most once.
  Error WatchDevice(AdapterObserver* observer);

  verbs::Context& context() const { return *context_; }
  ConnectionManager& connections() const { return *manager_; }
  verbs::Executor& executor() const { return context_->executor(); }
  verbs::Deadline DeadlineAfter(verbs::Nanos duration) const;
  // For who changes some of what an endpoint of it has: held from where the rest is read until
  // Endpoint::Modify has returned. So of two changes at once neither undoes the other. Before every
  // other lock.
  verbs::Mutex& modify_lock() { return modify_lock_; }

  // The asynchronous-event dispatcher, made at open by the DAT face; null for VIPL.
  // kInvalidHandle: it has ended.
  Error SetAsyncDispatcher(EventDispatcher& dispatcher, bool own);
  Ref<EventDispatcher> async_dispatcher() const;
  bool IsAsyncDispatcher(const EventDispatcher& dispatcher) const;
  // An event about `subject`, if there is such a dispatcher; without memory it is lost. Inside an
  // EpochGuard too.
  void PostAsync(EventType type, Handle subject);

  // What a consumer may put into a connect, accept or reject, all headers of the engine allowed
  // for. InfiniBand and RoCE leave less than DAT's 64 bytes: there a connect to a name without a
  // port of its own, whose header takes its part, may carry less than this.
  uint32_t max_private_data() const;

  // kInvalidParameter unless the range lies inside the live region of that key. A region may be
  // longer than a segment of a post. No bytes: address and key mean nothing.
  Error CheckRange(verbs::Key key, uint64_t address, uint64_t length) const;
  // The live region of that key, or null.
  Ref<MemoryRegion> FindRegion(verbs::Key key) const;
  // Those that are open.
  std::vector<Ref<Endpoint>> EndpointsOnSharedQueues() const;

  // ---- what was counted
  Counts<AdapterCount>& counts() { return counts_; }
  // Of AddChild and RemoveChild, since it was asked last with `clear`.
  uint64_t CountOfMade(ObjectType type, bool clear);
  uint64_t CountOfFreed(ObjectType type, bool clear);
  // What concerns connections is counted unless that was stopped; starting begins at 0, or throws
  // std::bad_alloc, and nothing has happened.
  void CountConnections(bool start);
  void CountConnection(AdapterCount what) {
    if (counts_connections_.load(std::memory_order_relaxed)) counts_.AddShared(what);
  }

  // ---- for the objects made under it
  // Gives a new object its handle and remembers it. kInvalidHandle once the adapter is closed;
  // kInsufficientResources without a free handle.
  Error AddChild(Object* object);
  // The object is being freed; its handle is dead already.
  void RemoveChild(Object* object);

 private:
  explicit InterfaceAdapter(std::shared_ptr<ConnectionManager> manager);
  ~InterfaceAdapter() override;
  void OnDeviceFailed() override;
  bool in_use() const;
  bool HasChildren() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  void DestroyChildren();
  // How many of the children it was: 1 or 0.
  size_t Forget(Object* object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Null: there is none. Inside an EpochGuard, and valid as long as it.
  EventDispatcher* FindAsyncDispatcher() const;

  const std::shared_ptr<ConnectionManager> manager_;
  verbs::Context* const context_;        // the manager's
  AdapterObserver* observer_ = nullptr;  // does not change once the device is watched
  verbs::Mutex modify_lock_;
  mutable verbs::Mutex lock_;
  bool closed_ ABSL_GUARDED_BY(lock_) = false;
  bool own_async_ ABSL_GUARDED_BY(lock_) = false;
  // Not Abseil's: those do not survive an insertion for which there is no memory.
  std::unordered_set<Object*> children_ ABSL_GUARDED_BY(lock_);
  std::unordered_map<verbs::Key, MemoryRegion*> regions_ ABSL_GUARDED_BY(lock_);  // of them
  std::array<uint64_t, kObjectTypes> made_ ABSL_GUARDED_BY(lock_) = {};
  std::array<uint64_t, kObjectTypes> freed_ ABSL_GUARDED_BY(lock_) = {};
  Counts<AdapterCount> counts_;
  std::atomic<bool> counts_connections_{true};
  Use<EventDispatcher> async_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_INTERFACE_ADAPTER_H_
