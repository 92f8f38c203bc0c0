// Notifiers: DAT's CNO.
#include "dat/api/cno.h"

#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/core/notifier.h"

namespace viaduct::dat {
namespace {

core::Notifier::Agent ToAgent(const DAT_OS_WAIT_PROXY_AGENT& agent) {
  return {agent.proxy_agent_func, agent.instance_data};
}

}  // namespace

core::Ref<core::Notifier> ShareCno(DAT_CNO_HANDLE handle) { return Share<core::Notifier>(handle); }

DAT_RETURN dat_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
                          DAT_CNO_HANDLE* cno_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (cno_handle == nullptr) return BadParameter(3);
    core::Ref<core::Notifier> notifier;
    core::Error error = core::Notifier::Create(*adapter, ToAgent(agent), &notifier);
    if (error.ok()) *cno_handle = notifier->handle();
    return ToReturn(error);
  });
}

DAT_RETURN dat_cno_modify_agent(DAT_CNO_HANDLE cno_handle, DAT_OS_WAIT_PROXY_AGENT agent) {
  return Control([&]() -> DAT_RETURN {
    auto notifier = ShareCno(cno_handle);
    return notifier ? ToReturn(notifier->SetAgent(ToAgent(agent))) : kBadCno;
  });
}

DAT_RETURN dat_cno_query(DAT_CNO_HANDLE cno_handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto notifier = ShareCno(cno_handle);
    if (!notifier) return kBadCno;
    if ((static_cast<unsigned>(mask) & ~kCnoFields) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    param->ia_handle = ShownHandle(notifier->adapter());
    const core::Notifier::Agent agent = notifier->agent();
    ShowProxy({agent.instance, agent.function}, notifier->descriptor(), param);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_cno_wait(DAT_CNO_HANDLE cno_handle, DAT_TIMEOUT timeout,
                        DAT_EVD_HANDLE* evd_handle) {
  return WaitControl([&]() -> DAT_RETURN {
    auto notifier = ShareCno(cno_handle);
    if (!notifier) return kBadCno;
    if (evd_handle == nullptr) return BadParameter(3);
    const core::Error error = notifier->Wait(ToDeadline(notifier->adapter(), timeout), evd_handle);
    return error.code == core::Code::kQueueEmpty ? NoEvent(DAT_QUEUE_EMPTY) : ToReturn(error);
  });
}

DAT_RETURN dat_cno_free(DAT_CNO_HANDLE cno_handle) {
  return Control([&]() -> DAT_RETURN {
    auto notifier = ShareCno(cno_handle);
    return notifier ? ToReturn(notifier->Free()) : kBadCno;
  });
}

}  // namespace viaduct::dat
