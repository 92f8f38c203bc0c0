// Interface adapters.
#include "dat/api/ia.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/api/face.h"
#include "dat/api/ia_attributes.h"
#include "dat/api/limits.h"
#include "dat/api/registration.h"
#include "verbs/base/log.h"

namespace viaduct::dat {
namespace {

// uDAPL 1.2 dat_ia_open: DAT_HANDLE_NULL asks for a new dispatcher, DAT_EVD_ASYNC_EXISTS says that
// there is one elsewhere, any other value is the dispatcher to use. On return `*async` is the
// handle that the consumer sees.
core::Error AttachAsync(core::InterfaceAdapter& adapter, DAT_COUNT length, DAT_EVD_HANDLE* async) {
  if (*async == DAT_EVD_ASYNC_EXISTS) {
    *async = DAT_EVD_OUT_OF_SCOPE;
    return core::Ok();
  }
  core::Ref<core::EventDispatcher> dispatcher = Share<core::EventDispatcher>(*async);
  const bool own = *async == DAT_HANDLE_NULL;
  if (own) {
    core::Error error =
        core::EventDispatcher::Create(adapter, static_cast<uint32_t>(length), core::kAsyncStream,
                                      /*eager=*/false, &dispatcher);
    if (!error.ok()) return error;
    *async = dispatcher->handle();
  }
  // Another thread may have freed it since CheckAsync.
  if (!dispatcher) return core::InvalidHandle<core::EventDispatcher>();
  return adapter.SetAsyncDispatcher(*dispatcher, own);
}

DAT_RETURN CheckAsync(DAT_EVD_HANDLE async, DAT_COUNT length) {
  if (async == DAT_EVD_ASYNC_EXISTS) return DAT_SUCCESS;
  if (async == DAT_HANDLE_NULL) {
    if (length <= 0) return BadParameter(2);
    if (length > kMaxEvdLength) return Failure(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
    return DAT_SUCCESS;
  }
  auto dispatcher = Share<core::EventDispatcher>(async);
  return dispatcher && (dispatcher->streams() & core::kAsyncStream) != 0
             ? DAT_RETURN{DAT_SUCCESS}
             : BadHandle(DAT_INVALID_HANDLE_EVD_ASYNC);
}

// The place of an entry that the engine serves; the log says if there is none.
core::Error FindPlace(const registry::Entry& entry, registry::Place* place) {
  const core::Error error = registry::PlaceOf(entry, place);
  if (error.code == core::Code::kNotFound && verbs::LogEnabled(verbs::LogLevel::kWarn)) {
    verbs::WriteLog(verbs::LogLevel::kWarn, "adapter " + entry.name +
                                                ": no interface, address or RDMA adapter \"" +
                                                entry.parameters + "\" here");
  }
  return error;
}

}  // namespace

DAT_RETURN OpenOnEngine(const registry::Entry& entry, DAT_COUNT async_evd_min_qlen,
                        DAT_EVD_HANDLE* async_evd_handle, DAT_IA_HANDLE* ia_handle) {
  DAT_RETURN checked = CheckAsync(*async_evd_handle, async_evd_min_qlen);
  if (checked != DAT_SUCCESS) return checked;
  registry::Place place;
  core::Error error = FindPlace(entry, &place);
  core::Ref<core::InterfaceAdapter> adapter;
  if (error.ok()) error = core::InterfaceAdapter::Open(place.address, &adapter, place.device);
  if (!error.ok()) return ToReturn(error);
  adapter->set_face_word(reinterpret_cast<uintptr_t>(&entry));
  // Also runs if memory runs out below.
  absl::Cleanup undo = [&] { (void)adapter->Close(core::InterfaceAdapter::CloseMode::kAbrupt); };
  DAT_EVD_HANDLE async = *async_evd_handle;
  error = AttachAsync(*adapter, async_evd_min_qlen, &async);
  if (error.ok()) error = adapter->WatchDevice(nullptr);
  if (!error.ok()) return ToReturn(error);
  std::move(undo).Cancel();
  *async_evd_handle = async;
  *ia_handle = adapter->handle();
  return DAT_SUCCESS;
}

// An attribute pointer may be NULL if its mask is empty.
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE* async_evd_handle,
                        DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR* ia_attributes,
                        DAT_PROVIDER_ATTR_MASK provider_attr_mask,
                        DAT_PROVIDER_ATTR* provider_attributes) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if ((ia_attr_mask & ~DAT_IA_ATTR_MASK{DAT_IA_FIELD_ALL}) != 0) return BadParameter(3);
    if (ia_attr_mask != 0 && ia_attributes == nullptr) return BadParameter(4);
    if ((provider_attr_mask & ~DAT_PROVIDER_ATTR_MASK{DAT_PROVIDER_FIELD_ALL}) != 0) {
      return BadParameter(5);
    }
    if (provider_attr_mask != 0 && provider_attributes == nullptr) return BadParameter(6);
    if (async_evd_handle != nullptr) {
      const core::Ref<core::EventDispatcher> async = adapter->async_dispatcher();
      // The dispatcher may belong to another open, and have ended with it.
      const bool lives = async && Share<core::EventDispatcher>(async->handle());
      *async_evd_handle = lives ? async->handle() : DAT_EVD_OUT_OF_SCOPE;
    }
    if (ia_attr_mask != 0) {
      ShowAdapter(EntryOf(*adapter).name, adapter->context().address(),
                  adapter->context().attributes(), ia_attributes);
    }
    if (provider_attr_mask != 0) {
      ShowProvider(adapter->context().attributes(), adapter->max_private_data(),
                   provider_attributes);
      provider_attributes->is_thread_safe = ToBoolean(ShownThreadSafety(*adapter));
    }
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS ia_flags) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    switch (static_cast<unsigned>(ia_flags)) {
      case DAT_CLOSE_ABRUPT_FLAG:
        return ToReturn(adapter->Close(core::InterfaceAdapter::CloseMode::kAbrupt));
      case DAT_CLOSE_GRACEFUL_FLAG:
        return ToReturn(adapter->Close(core::InterfaceAdapter::CloseMode::kGraceful));
      default:
        return BadParameter(2);
    }
  });
}

}  // namespace viaduct::dat
