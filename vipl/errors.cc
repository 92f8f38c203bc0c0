#include <string>

#include "dat/core/handle_table.h"
#include "verbs/base/log.h"
#include "vipl/api.h"
#include "vipl/callback_thread.h"
#include "vipl/nic.h"

namespace viaduct::vipl {
namespace {

const char* NameOf(VIP_ERROR_CODE code) {
  switch (code) {
    case VIP_ERROR_POST_DESC:
      return "a descriptor was posted that is not aligned or not in registered memory";
    case VIP_ERROR_CONN_LOST:
      return "connection lost";
    case VIP_ERROR_RECVQ_EMPTY:
      return "a message found no receive descriptor and was dropped";
    case VIP_ERROR_VI_OVERRUN:
      return "too many descriptors are posted";
    case VIP_ERROR_RDMAW_PROT:
      return "an incoming RDMA write was refused";
    case VIP_ERROR_RDMAW_DATA:
      return "an incoming RDMA write was corrupt";
    case VIP_ERROR_RDMAW_ABORT:
      return "an incoming RDMA write was aborted";
    case VIP_ERROR_RDMAR_PROT:
      return "an incoming RDMA read was refused";
    case VIP_ERROR_COMP_PROT:
      return "a descriptor's memory was deregistered before it completed";
    case VIP_ERROR_RDMA_TRANSPORT:
      return "an RDMA failed in the network";
    case VIP_ERROR_CATASTROPHIC:
      return "the NIC has failed";
  }
  return "unknown error";
}

}  // namespace

void Nic::SetErrorHandler(VIP_ERROR_HANDLER handler, VIP_PVOID context) {
  const verbs::MutexLock hold(&lock_);
  handler_ = handler;
  handler_context_ = context;
}

void Nic::Report(VIP_ERROR_DESCRIPTOR error) {
  error.NicHandle = handle();
  PostCallback([nic = core::Ref<Nic>::Share(this), error] { nic->Deliver(error); });
}

void Nic::Deliver(VIP_ERROR_DESCRIPTOR error) {
  VIP_ERROR_HANDLER handler;
  VIP_PVOID context;
  {
    const verbs::MutexLock hold(&lock_);
    if (closed_) return;
    handler = handler_;
    context = handler_context_;
  }
  if (handler != nullptr) {
    handler(context, &error);
  } else if (verbs::LogEnabled(verbs::LogLevel::kWarn)) {
    verbs::WriteLog(verbs::LogLevel::kWarn,
                    std::string(attributes_.Name) + ": " + NameOf(error.ErrorCode));
  }
}

}  // namespace viaduct::vipl

using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Call;
using viaduct::vipl::Nic;

VIPL_EXPORT VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                                        VIP_ERROR_HANDLER Handler) {
  return Call([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    nic->SetErrorHandler(Handler, Context);
    return VIP_SUCCESS;
  });
}
