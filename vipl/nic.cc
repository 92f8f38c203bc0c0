#include "vipl/nic.h"

#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "compat/attributes.h"
#include "compat/result.h"
#include "compat/time.h"
#include "dat/core/handle_table.h"
#include "dat/core/service_name.h"
#include "verbs/base/callback_thread.h"
#include "verbs/base/epoch.h"
#include "verbs/base/log.h"
#include "vipl/face.h"

namespace viaduct::vipl {

Nic::Nic(const std::string& name, const verbs::Address& address,
         core::Ref<core::InterfaceAdapter> adapter, core::Ref<core::ProtectionZone> wildcard)
    : Object(kType),
      adapter_(std::move(adapter)),
      wildcard_(std::move(wildcard)),
      address_(compat::NicAddressOf(address)),
      attributes_(compat::NicAttributesOf(adapter_->context().attributes(), name.c_str())) {
  attributes_.LocalNicAddress = address_.data();
}

Nic::~Nic() = default;

VIP_RETURN Nic::Open(const std::string& name, const compat::NicChoice& choice,
                     core::Ref<Nic>* out) {
  core::Ref<core::InterfaceAdapter> adapter;
  core::Error error = core::InterfaceAdapter::Open(choice.address, &adapter, choice.device);
  if (!error.ok()) return compat::ResultOf(error);
  core::Ref<Nic> nic;
  core::Ref<Nic> table_reference;
  // Also if memory runs out on the way. Before the NIC goes, which the adapter may tell of a
  // failure.
  absl::Cleanup undo = [&] {
    static_cast<void>(adapter->Close(core::InterfaceAdapter::CloseMode::kAbrupt));
    if (nic && core::HandleTable::Erase(nic->handle(), kType)) {
      table_reference = core::Ref<Nic>::Adopt(nic.get());
    }
  };
  core::Ref<core::ProtectionZone> wildcard;
  error = core::ProtectionZone::Create(*adapter, /*wildcard=*/true, &wildcard);
  if (!error.ok()) return compat::ResultOf(error);
  nic = core::Ref<Nic>::Adopt(new Nic(name, choice.address, adapter, wildcard));
  // A program that guesses the handle may close the NIC from here on. WatchDevice then fails.
  if (core::HandleTable::Insert(nic.get()) == nullptr) return VIP_ERROR_RESOURCE;
  error = adapter->WatchDevice(nic.get());
  if (!error.ok()) return compat::ResultOf(error);
  std::move(undo).Cancel();
  *out = std::move(nic);
  return VIP_SUCCESS;
}

VIP_RETURN Nic::Close() {
  // A child found under this lock has not been destroyed. Whoever erases its handle owns the
  // table's reference to it.
  std::vector<core::Ref<NicChild>> owned;
  {
    const verbs::MutexLock hold(&lock_);
    owned.reserve(children_.size());  // from here on nothing needs memory
    if (!core::HandleTable::Erase(handle(), kType)) return VIP_INVALID_PARAMETER;
    closed_.store(true);
    for (NicChild* child : children_) {
      if (core::HandleTable::Erase(child->handle(), child->type())) {
        owned.push_back(core::Ref<NicChild>::Adopt(child));
      }
    }
    children_.clear();
  }
  // Dropped at the end.
  const core::Ref<Nic> table_reference = core::Ref<Nic>::Adopt(this);
  for (const core::Ref<NicChild>& child : owned) child->OnNicClosed();
  verbs::EpochSynchronize();  // waits for calls under way that found a child
  // From now on a flush finds no descriptor to write to, and no descriptor is handed out: the
  // program may have freed its memory. Peers can reach the memory until the connections have ended.
  registrations_.HideAll();
  static_cast<void>(adapter_->Close(core::InterfaceAdapter::CloseMode::kAbrupt));
  for (const core::Ref<NicChild>& child : owned) verbs::AwaitCallback(child.get());
  verbs::AwaitCallback(this);
  return VIP_SUCCESS;
}

verbs::Deadline Nic::DeadlineAfter(VIP_ULONG milliseconds) const {
  return compat::DeadlineAfter(adapter_->executor(), milliseconds);
}

core::Ref<core::ProtectionZone> Nic::ZoneOf(VIP_PROTECTION_HANDLE tag) const {
  if (tag == nullptr) return wildcard_;
  core::Ref<core::ProtectionZone> zone = core::ShareObject<core::ProtectionZone>(tag);
  if (zone && &zone->adapter() != adapter_.get()) return {};
  return zone;
}

bool Nic::AddChild(NicChild* child) {
  const verbs::MutexLock hold(&lock_);
  if (closed_.load()) return false;
  const verbs::EpochGuard guard;
  if (core::HandleTable::Find(child->handle(), child->type()) != child) return false;
  children_.insert(child);
  return true;
}

void Nic::RemoveChild(NicChild* child) {
  const verbs::MutexLock hold(&lock_);
  children_.erase(child);
}

void Nic::AddWaiter(core::EventDispatcher* waiter) {
  const verbs::MutexLock hold(&lock_);
  waiters_.insert(waiter);
  if (failed_) waiter->SetWaitable(false);
}

void Nic::RemoveWaiter(core::EventDispatcher* waiter) {
  const verbs::MutexLock hold(&lock_);
  waiters_.erase(waiter);
}

VIP_NET_ADDRESS* Nic::Discovered(const compat::NicAddress& address) {
  constexpr size_t kBytes =
      sizeof(VIP_NET_ADDRESS) + compat::kNicAddressBytes + core::kMaxNameBytes;
  const verbs::MutexLock hold(&lock_);
  std::vector<uint32_t>& room = discovered_[address];
  const bool known = !room.empty();  // and the program may have put a discriminator there
  if (!known) room.resize((kBytes + sizeof(uint32_t) - 1) / sizeof(uint32_t));
  auto* out = reinterpret_cast<VIP_NET_ADDRESS*>(room.data());
  if (!known) compat::WriteNetAddress(address, {}, out);
  return out;
}

}  // namespace viaduct::vipl

using viaduct::core::Error;
using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Nic;

VIPL_EXPORT VIP_RETURN VipOpenNic(const VIP_CHAR* DeviceName, VIP_NIC_HANDLE* NicHandle) {
  return Control([&]() -> VIP_RETURN {
    if (DeviceName == nullptr || NicHandle == nullptr) return VIP_INVALID_PARAMETER;
    viaduct::verbs::LogSettingProblems();
    viaduct::compat::NicChoice choice;
    const Error chosen = viaduct::compat::ChooseNic(DeviceName, &choice);
    if (!chosen.ok()) return viaduct::compat::ResultOf(chosen);
    Ref<Nic> nic;
    const VIP_RETURN result = Nic::Open(DeviceName, choice, &nic);
    if (result == VIP_SUCCESS) *NicHandle = nic->handle();
    return result;
  });
}

VIPL_EXPORT VIP_RETURN VipCloseNic(VIP_NIC_HANDLE NicHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    return nic ? nic->Close() : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipQueryNic(VIP_NIC_HANDLE NicHandle, VIP_NIC_ATTRIBUTES* NicAttribs) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || NicAttribs == nullptr) return VIP_INVALID_PARAMETER;
    *NicAttribs = nic->attributes();
    return VIP_SUCCESS;
  });
}
