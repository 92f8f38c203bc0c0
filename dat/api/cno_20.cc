// The functions of notifiers that 1.2 lacks.
#include "dat/api/cno.h"
#include "dat/api/face.h"
#include "dat/core/notifier.h"

namespace viaduct::dat {

DAT_RETURN dat_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD* file_descriptor,
                             DAT_CNO_HANDLE* cno_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    if (file_descriptor == nullptr) return BadParameter(2);
    if (cno_handle == nullptr) return BadParameter(3);
    core::Ref<core::Notifier> notifier;
    core::Error error = core::Notifier::CreateWithDescriptor(*adapter, &notifier);
    if (!error.ok()) return ToReturn(error);
    *file_descriptor = notifier->descriptor();
    *cno_handle = notifier->handle();
    return DAT_SUCCESS;
  });
}

// Takes the trigger that made the descriptor readable.
DAT_RETURN dat_cno_trigger(DAT_CNO_HANDLE cno_handle, DAT_EVD_HANDLE* evd_handle) {
  return Control([&]() -> DAT_RETURN {
    auto notifier = ShareCno(cno_handle);
    if (!notifier) return kBadCno;
    if (evd_handle == nullptr) return BadParameter(2);
    return ToReturn(notifier->Take(evd_handle));
  });
}

}  // namespace viaduct::dat
