// InterfaceAdapter: DAT's IA, VIPL's NIC. Each open makes one; opens of the same name share the
// device.
//
// An adapter knows every object made under it, so that an abrupt close leaves nothing behind.
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

// Is notified of what has no event in a face: VIPL's NIC implements it.
class AdapterObserver {
 public:
  // The device has failed. Called on the executor: must be short, without calls into the engine.
  virtual void OnAdapterFailed() = 0;

 protected:
  ~AdapterObserver() = default;
};

class InterfaceAdapter final : public Object, private verbs::FailureSink {
 public:
  static constexpr ObjectType kType = ObjectType::kAdapter;

  // Uses this process's device at that address, which is opened on first use. Addresses of
  // interfaces come from verbs/base/interfaces.h, names of devices from verbs/open_device.h.
  static Error Open(const verbs::Address& address, Ref<InterfaceAdapter>* out,
                    const std::string& device = verbs::kAnyDevice);
  // Over a given device: for the simulation.
  static Error Open(std::shared_ptr<ConnectionManager> manager, Ref<InterfaceAdapter>* out);

  enum class CloseMode { kGraceful, kAbrupt };
  // Graceful: kInvalidState while objects of the consumer live (the default dispatcher does not
  // count). Abrupt: destroys them all; endpoints disconnect, waiters return kAbort. Then the handle
  // is dead.
  Error Close(CloseMode mode);

  // The last step of an open: if the device fails before Close returns, the asynchronous dispatcher
  // and `observer`, if there is one, are notified. kInsufficientResources: it has failed already.
  // To be called at most once.
  Error WatchDevice(AdapterObserver* observer);

  verbs::Context& context() const { return *context_; }
  ConnectionManager& connections() const { return *manager_; }
  verbs::Executor& executor() const { return context_->executor(); }
  verbs::Deadline DeadlineAfter(verbs::Nanos duration) const;
  // For a caller that changes only some parts or attributes of an endpoint: hold it from reading
  // the others until Endpoint::Modify has returned, so that concurrent changes do not undo each
  // other. Taken before every other lock.
  verbs::Mutex& modify_lock() { return modify_lock_; }

  // The dispatcher for asynchronous events, made at open by the DAT face; null for VIPL.
  // kInvalidHandle: `dispatcher` has ended, or another thread has closed the adapter.
  Error SetAsyncDispatcher(EventDispatcher& dispatcher, bool own);
  Ref<EventDispatcher> async_dispatcher() const;
  bool IsAsyncDispatcher(const EventDispatcher& dispatcher) const;
  // Posts an event about `subject` if there is such a dispatcher; the event is lost if memory is
  // lacking. May be called inside an EpochGuard, too.
  void PostAsync(EventType type, Handle subject);

  // How many bytes a consumer may put into a connect, accept or reject, after deduction of all
  // headers of the engine. On InfiniBand and RoCE that would leave less than DAT's 64 bytes, so
  // nothing is deducted: a connect to a name without a port of its own, which needs a header, may
  // carry less than this.
  uint32_t max_private_data() const;

  // kInvalidParameter unless the range lies inside the live region of that key. A region may be
  // longer than a segment of a post. With length 0, address and key mean nothing.
  Error CheckRange(verbs::Key key, uint64_t address, uint64_t length) const;
  // The live region of that key, or null.
  Ref<MemoryRegion> FindRegion(verbs::Key key) const;
  // The live endpoints that have a shared receive queue.
  std::vector<Ref<Endpoint>> EndpointsOnSharedQueues() const;

  // ---- what was counted
  Counts<AdapterCount>& counts() { return counts_; }
  // Objects made and freed since the last call with `clear`.
  uint64_t CountOfMade(ObjectType type, bool clear);
  uint64_t CountOfFreed(ObjectType type, bool clear);
  // Starts or stops the counting of what concerns connections, which is on at first. A start resets
  // these counts to 0; if it throws std::bad_alloc, nothing has changed.
  void CountConnections(bool start);
  void CountConnection(AdapterCount what) {
    if (counts_connections_.load(std::memory_order_relaxed)) counts_.AddShared(what);
  }

  // ---- for the objects made under it
  // Gives a new object its handle and remembers the object. kInvalidHandle once the adapter is
  // closed; kInsufficientResources if no handle is free.
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
  void ReleaseWaiters();
  // Returns how many children it removed: 1 or 0.
  size_t Forget(Object* object) ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);
  // Null: there is none. To be called inside an EpochGuard; the result is valid as long as that.
  EventDispatcher* FindAsyncDispatcher() const;

  const std::shared_ptr<ConnectionManager> manager_;
  verbs::Context* const context_;        // the manager's
  AdapterObserver* observer_ = nullptr;  // does not change once the device is watched
  verbs::Mutex modify_lock_;
  mutable verbs::Mutex lock_;
  bool closed_ ABSL_GUARDED_BY(lock_) = false;
  bool own_async_ ABSL_GUARDED_BY(lock_) = false;
  // Not Abseil containers, which do not survive an insertion that runs out of memory.
  std::unordered_set<Object*> children_ ABSL_GUARDED_BY(lock_);
  std::unordered_map<verbs::Key, MemoryRegion*> regions_ ABSL_GUARDED_BY(lock_);  // in children_
  std::array<uint64_t, kObjectTypes> made_ ABSL_GUARDED_BY(lock_) = {};
  std::array<uint64_t, kObjectTypes> freed_ ABSL_GUARDED_BY(lock_) = {};
  Counts<AdapterCount> counts_;
  std::atomic<bool> counts_connections_{true};
  Use<EventDispatcher> async_ ABSL_GUARDED_BY(lock_);
};

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_INTERFACE_ADAPTER_H_
