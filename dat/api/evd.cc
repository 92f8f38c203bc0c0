// Event dispatchers.
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "dat/api/cno.h"
#include "dat/api/event_translation.h"
#include "dat/api/face.h"
#include "dat/api/limits.h"
#include "dat/api/registration.h"
#include "dat/core/event_dispatcher.h"

namespace viaduct::dat {
namespace {

core::Ref<core::EventDispatcher> ShareEvd(DAT_EVD_HANDLE handle) {
  return Share<core::EventDispatcher>(handle);
}

// On such a dispatcher OFED waits at the device and passes on its bare time-out; on others its
// time-out has the class.
bool WaitsForRequests(const core::EventDispatcher& dispatcher) {
  constexpr uint32_t kRequests = core::kCompletionStream | core::kBindStream;
  return (dispatcher.streams() & kRequests) != 0 && !dispatcher.notifier();
}

// The CONFIG bits of DAT_EVD_STATE.
int ConfigOf(core::CompletionMode mode) {
  switch (mode) {
    case core::CompletionMode::kDefault:
      return 0;
    case core::CompletionMode::kThreshold:
      return DAT_EVD_STATE_CONFIG_THRESHOLD;
    case core::CompletionMode::kUnsignalled:
      return DAT_EVD_STATE_CONFIG_NOTIFY;
    case core::CompletionMode::kSolicited:
      return DAT_EVD_STATE_CONFIG_SOLICITED;
  }
  return 0;
}
// A handle alone does not say which of the subtypes for dispatchers was meant.
constexpr DAT_RETURN kBadEvd = BadHandle(DAT_INVALID_HANDLE1);

// Converts an event that was taken from the dispatcher, which the program knows by `handle`.
inline void Show(const core::Event& taken, DAT_EVD_HANDLE handle,
                 const core::EventDispatcher& dispatcher, DAT_EVENT* event) {
  if (IsTransfer(taken)) [[likely]] {
    ToTransferEvent(taken, handle, event);
  } else {
    ToDatEvent(taken, handle, dispatcher.adapter().context().address(), event);
  }
}

template <typename Call>
DAT_RETURN OnEvd(DAT_EVD_HANDLE handle, const Call& call) {
  return Control([&]() -> DAT_RETURN {
    auto dispatcher = ShareEvd(handle);
    return dispatcher ? ToReturn(call(*dispatcher)) : kBadEvd;
  });
}

}  // namespace

DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
                          DAT_CNO_HANDLE cno_handle, DAT_EVD_FLAGS evd_flags,
                          DAT_EVD_HANDLE* evd_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (evd_min_qlen <= 0) return BadParameter(2);
    auto notifier = ShareOf<core::Notifier>(*adapter, cno_handle);
    if (!notifier && cno_handle != DAT_HANDLE_NULL) return kBadCno;
    const auto streams = static_cast<uint32_t>(evd_flags);
    if (streams == 0 || (streams & ~(core::kAllStreams | kExtensionStreams)) != 0) {
      return BadParameter(4);
    }
    if (evd_handle == nullptr) return BadParameter(5);
    if (evd_min_qlen > kMaxEvdLength) return Failure(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
    core::Ref<core::EventDispatcher> dispatcher;
    core::Error error = core::EventDispatcher::Create(*adapter, static_cast<uint32_t>(evd_min_qlen),
                                                      streams, /*eager=*/false, &dispatcher);
    if (!error.ok()) return ToReturn(error);
    // Also runs if memory runs out below.
    absl::Cleanup undo = [&] { dispatcher->Destroy(); };
    if (notifier) error = dispatcher->SetNotifier(notifier.get());
    if (!error.ok()) return ToReturn(error);
    std::move(undo).Cancel();
    *evd_handle = dispatcher->handle();
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK mask, DAT_EVD_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto dispatcher = ShareEvd(evd_handle);
    if (!dispatcher) return kBadEvd;
    if ((mask & ~DAT_EVD_FIELD_ALL) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    param->ia_handle = ShownHandle(dispatcher->adapter());
    param->evd_qlen = static_cast<DAT_COUNT>(dispatcher->length());
    param->evd_state = static_cast<DAT_EVD_STATE>(
        (dispatcher->enabled() ? DAT_EVD_STATE_ENABLED : DAT_EVD_STATE_DISABLED) |
        (dispatcher->waitable() ? DAT_EVD_STATE_WAITABLE : DAT_EVD_STATE_UNWAITABLE) |
        ConfigOf(dispatcher->mode()));
    const core::Ref<core::Notifier> notifier = dispatcher->notifier();
    param->cno_handle = notifier ? notifier->handle() : DAT_HANDLE_NULL;
    param->evd_flags = static_cast<DAT_EVD_FLAGS>(dispatcher->streams());
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_evd_modify_cno(DAT_EVD_HANDLE evd_handle, DAT_CNO_HANDLE cno_handle) {
  return Control([&]() -> DAT_RETURN {
    auto dispatcher = ShareEvd(evd_handle);
    if (!dispatcher) return kBadEvd;
    auto notifier = ShareOf<core::Notifier>(dispatcher->adapter(), cno_handle);
    if (!notifier && cno_handle != DAT_HANDLE_NULL) return kBadCno;
    return ToReturn(dispatcher->SetNotifier(notifier.get()));
  });
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen) {
  return Control([&]() -> DAT_RETURN {
    auto dispatcher = ShareEvd(evd_handle);
    if (!dispatcher) return kBadEvd;
    if (evd_min_qlen <= 0) return BadParameter(2);
    if (evd_min_qlen > kMaxEvdLength) return Failure(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
    return ToReturn(dispatcher->Resize(static_cast<uint32_t>(evd_min_qlen)));
  });
}

DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT* event) {
  return Control([&]() -> DAT_RETURN {
    auto dispatcher = ShareEvd(evd_handle);
    if (!dispatcher) return kBadEvd;
    if (event == nullptr || event->event_number != DAT_SOFTWARE_EVENT) return BadParameter(2);
    core::Error error = dispatcher->PostSoftware(event->event_data.software_event_data.pointer);
    if (error.code == core::Code::kInvalidParameter) return BadParameter(1);  // no software stream
    return ToReturn(error);
  });
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT* event) {
  return DataPath<core::EventDispatcher>(evd_handle,
                                         [&](core::EventDispatcher* dispatcher) -> DAT_RETURN {
                                           if (dispatcher == nullptr) return kBadEvd;
                                           if (event == nullptr) return BadParameter(2);
                                           core::Event taken;
                                           core::Error error = dispatcher->Dequeue(&taken);
                                           if (error.code == core::Code::kQueueEmpty) {
                                             return NoEvent(DAT_QUEUE_EMPTY);
                                           }
                                           if (!error.ok()) return ToReturn(error);
                                           Show(taken, evd_handle, *dispatcher, event);
                                           return DAT_SUCCESS;
                                         });
}

// `nmore` may be NULL.
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd_handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
                        DAT_EVENT* event, DAT_COUNT* nmore) {
  return WaitControl([&]() -> DAT_RETURN {
    auto dispatcher = ShareEvd(evd_handle);
    if (!dispatcher) return kBadEvd;
    if (threshold <= 0) return BadParameter(3);
    if (event == nullptr) return BadParameter(4);
    core::EventDispatcher::WaitOptions options;
    options.threshold = static_cast<uint32_t>(threshold);
    options.exclusive = true;
    options.interruptible = true;
    core::Event taken;
    uint32_t more = 0;
    core::Error error =
        dispatcher->Wait(ToDeadline(dispatcher->adapter(), timeout), options, &taken, &more);
    if (nmore != nullptr) *nmore = static_cast<DAT_COUNT>(more);
    if (error.code == core::Code::kInvalidParameter) return BadParameter(3);  // above the length
    if (error.code == core::Code::kTimeout && WaitsForRequests(*dispatcher)) {
      return NoEvent(DAT_TIMEOUT_EXPIRED);
    }
    if (!error.ok()) return ToReturn(error);
    Show(taken, evd_handle, *dispatcher, event);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_evd_enable(DAT_EVD_HANDLE evd_handle) {
  return OnEvd(evd_handle, [](core::EventDispatcher& dispatcher) {
    dispatcher.SetEnabled(true);
    return core::Ok();
  });
}

DAT_RETURN dat_evd_disable(DAT_EVD_HANDLE evd_handle) {
  return OnEvd(evd_handle, [](core::EventDispatcher& dispatcher) {
    dispatcher.SetEnabled(false);
    return core::Ok();
  });
}

DAT_RETURN dat_evd_set_unwaitable(DAT_EVD_HANDLE evd_handle) {
  return OnEvd(evd_handle, [](core::EventDispatcher& dispatcher) {
    dispatcher.SetWaitable(false);
    return core::Ok();
  });
}

DAT_RETURN dat_evd_clear_unwaitable(DAT_EVD_HANDLE evd_handle) {
  return OnEvd(evd_handle, [](core::EventDispatcher& dispatcher) {
    dispatcher.SetWaitable(true);
    return core::Ok();
  });
}

DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle) {
  return OnEvd(evd_handle, [](core::EventDispatcher& dispatcher) { return dispatcher.Free(); });
}

}  // namespace viaduct::dat
