#include "dat/core/memory_window.h"

#include <utility>

#include "dat/core/endpoint.h"
#include "dat/core/handle_table.h"
#include "dat/core/interface_adapter.h"

namespace viaduct::core {

using verbs::MutexLock;

namespace {

// A key that no window has.
constexpr verbs::Key kUntouched = ~verbs::Key{0};

}  // namespace

Error MemoryWindow::Create(ProtectionZone& zone, verbs::WindowScope scope, Ref<MemoryWindow>* out) {
  InterfaceAdapter& adapter = zone.adapter();
  Use<ProtectionZone> use;
  if (Error error = use.Begin(&zone); !error.ok()) return error;
  auto window = adapter.context().CreateWindow(zone.domain(), scope);
  if (!window.ok()) return OutOf(Resource::kRegion);
  auto made = Ref<MemoryWindow>::Adopt(new MemoryWindow(std::move(use), scope, *std::move(window)));
  if (Error error = adapter.AddChild(made.get()); !error.ok()) return error;
  *out = std::move(made);
  return Ok();
}

MemoryWindow::MemoryWindow(Use<ProtectionZone> zone, verbs::WindowScope scope,
                           std::unique_ptr<verbs::MemoryWindow> window)
    : Object(kType),
      zone_(zone.ref()),
      scope_(scope),
      zone_use_(std::move(zone)),
      window_(std::move(window)) {}

MemoryWindow::~MemoryWindow() = default;

Error MemoryWindow::Free() { return End(); }

void MemoryWindow::Destroy() { (void)End(); }

Error MemoryWindow::End() {
  if (!HandleTable::Erase(handle(), kType)) return InvalidHandle<MemoryWindow>();
  adapter().RemoveChild(this);
  {
    MutexLock lock(&lock_);
    window_.reset();
    Adopt(Binding(), {});
    zone_use_.End();
  }
  DropReference();
  return Ok();
}

void MemoryWindow::Adopt(const Binding& binding, Use<MemoryRegion> region) {
  region_use_ = std::move(region);
  binding_ = binding;
}

Error MemoryWindow::Check(const Endpoint& endpoint, const Binding& binding) const {
  const Ref<ProtectionZone> zone = endpoint.parts().zone;
  if (zone.get() != zone_.get()) return Code::kProtectionViolation;
  if (binding.length == 0) return Ok();
  if (!binding.region->Holds(binding.address, binding.length)) return InvalidParameter(3);
  if (binding.region->zone().get() != zone_.get()) return Code::kProtectionViolation;
  uint32_t needs = 0;
  if ((binding.access & (verbs::kRemoteRead | verbs::kRemoteAtomic)) != 0) {
    needs |= verbs::kLocalRead;
  }
  if ((binding.access & (verbs::kRemoteWrite | verbs::kRemoteAtomic)) != 0) {
    needs |= verbs::kLocalWrite;
  }
  if ((binding.region->access() & needs) != needs) return Code::kPrivilegesViolation;
  return Ok();
}

Error MemoryWindow::Bind(Endpoint& endpoint, const Binding& binding, uint64_t cookie,
                         uint16_t flags, verbs::Key* key) {
  MutexLock lock(&lock_);
  if (window_ == nullptr) return InvalidHandle<MemoryWindow>();
  if (Error error = Check(endpoint, binding); !error.ok()) return error;
  verbs::BindRequest request;
  request.id = cookie;
  request.flags = flags;
  request.window = window_.get();
  request.length = binding.length;
  if (binding.length != 0) {
    request.region = binding.region->key();
    request.address = binding.address;
    request.access = binding.access;
    request.base = binding.base;
  }
  Use<MemoryRegion> use;
  if (Error error = use.Begin(binding.length != 0 ? binding.region.get() : nullptr); !error.ok()) {
    return error;
  }
  *key = 0;
  Binding bound = binding;
  bound.key = kUntouched;
  if (Error error = endpoint.PostBind(request, handle(), &bound.key); !error.ok()) return error;
  // Flushed: nothing has changed. Only the device knows, since the endpoint hears of an end later.
  if (bound.key == kUntouched) return Ok();
  *key = bound.key;
  // A bind without a key: the connection ended while it was posted.
  if (binding.length != 0 && *key != 0) {
    Adopt(bound, std::move(use));
  } else {
    Adopt(Binding(), {});
  }
  return Ok();
}

MemoryWindow::Binding MemoryWindow::binding() const {
  MutexLock lock(&lock_);
  return binding_;
}

}  // namespace viaduct::core
