#include "compat/descriptor.h"

namespace viaduct::compat {
uint32_t FailureBitsOf(verbs::Status status, VIP_RELIABILITY_LEVEL level) {
  switch (status) {
    case verbs::Status::kSuccess:
      return 0;
    case verbs::Status::kFlushed:
      return VIP_STATUS_DESC_FLUSHED_ERROR;
    case verbs::Status::kLocalLength:
      return VIP_STATUS_LENGTH_ERROR;
    case verbs::Status::kLocalProtection:
      return VIP_STATUS_PROTECTION_ERROR;
    case verbs::Status::kRemoteAccess:
      return VIP_STATUS_RDMA_PROT_ERROR;
    case verbs::Status::kRemoteOperation:
    case verbs::Status::kReceiverNotReady:
      return level == VIP_SERVICE_RELIABLE_RECEPTION ? VIP_STATUS_REMOTE_DESC_ERROR
                                                     : VIP_STATUS_TRANSPORT_ERROR;
    case verbs::Status::kTransport:
      return VIP_STATUS_TRANSPORT_ERROR;
  }
  return VIP_STATUS_TRANSPORT_ERROR;
}

}  // namespace viaduct::compat
