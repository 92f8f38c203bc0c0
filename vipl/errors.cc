// Asynchronous errors: where they arise, and VipErrorCallback, through which the program is told.
#include <cstdio>
#include <string>

#include "dat/core/handle_table.h"
#include "verbs/base/callback_thread.h"
#include "verbs/base/log.h"
#include "vipl/face.h"
#include "vipl/nic.h"
#include "vipl/vi.h"

namespace viaduct::vipl {
namespace {

// Indexed by error code, in the order of the header.
struct ErrorText {
  const char* name;
  const char* meaning;
};
constexpr ErrorText kTexts[] = {
    {"VIP_ERROR_POST_DESC",
     "a descriptor was posted that is not aligned or not in registered memory"},
    {"VIP_ERROR_CONN_LOST", "connection lost"},
    {"VIP_ERROR_RECVQ_EMPTY", "a message found no receive descriptor and was dropped"},
    {"VIP_ERROR_VI_OVERRUN", "too many descriptors are posted"},
    {"VIP_ERROR_RDMAW_PROT", "an incoming RDMA write was refused"},
    {"VIP_ERROR_RDMAW_DATA", "an incoming RDMA write was corrupt"},
    {"VIP_ERROR_RDMAW_ABORT", "an incoming RDMA write was aborted"},
    {"VIP_ERROR_RDMAR_PROT", "an incoming RDMA read was refused"},
    {"VIP_ERROR_COMP_PROT", "a descriptor's memory was deregistered before it completed"},
    {"VIP_ERROR_RDMA_TRANSPORT", "something arrived so corrupt that it is not known what it was"},
    {"VIP_ERROR_CATASTROPHIC", "the NIC has failed"},
};
static_assert(sizeof kTexts / sizeof *kTexts == VIP_ERROR_CATASTROPHIC + 1);

// The most reports that wait for a handler that does not keep up with its peers.
constexpr uint32_t kMostUndelivered = 4096;

// The most log lines about errors that a peer can cause without end.
constexpr uint32_t kMostLines = 64;

// At Unreliable Delivery these do not end the connection, so the peer may cause more of them.
bool MayRepeat(VIP_ERROR_CODE code) {
  return code == VIP_ERROR_RECVQ_EMPTY || code == VIP_ERROR_RDMAW_PROT;
}

}  // namespace

void Vi::Report(VIP_ERROR_CODE code, VIP_RESOURCE_CODE resource, VIP_DESCRIPTOR* descriptor) {
  VIP_ERROR_DESCRIPTOR error = {};
  error.ViHandle = handle();
  error.DescriptorPtr = descriptor;
  error.ResourceCode = resource;
  error.ErrorCode = code;
  nic_->Report(error);
}

// The connection has ended, in order or broken, and not by VipDisconnect: the VI is in Error.
void Vi::OnDisconnected(bool /*broken*/) { Report(VIP_ERROR_CONN_LOST, VIP_RESOURCE_VI, nullptr); }

void Vi::OnDropped() { Report(VIP_ERROR_RECVQ_EMPTY, VIP_RESOURCE_VI, nullptr); }

void Vi::OnRefusedWrite() { Report(VIP_ERROR_RDMAW_PROT, VIP_RESOURCE_VI, nullptr); }

void Vi::OnRefusedRead() { Report(VIP_ERROR_RDMAR_PROT, VIP_RESOURCE_VI, nullptr); }

void Vi::OnDamage(verbs::Damage damage) {
  switch (damage) {
    case verbs::Damage::kNone:
      break;
    case verbs::Damage::kWriteCutOff:
      Report(VIP_ERROR_RDMAW_ABORT, VIP_RESOURCE_VI, nullptr);
      break;
    case verbs::Damage::kWriteCorrupt:
      Report(VIP_ERROR_RDMAW_DATA, VIP_RESOURCE_VI, nullptr);
      break;
    case verbs::Damage::kCorrupt:
      Report(VIP_ERROR_RDMA_TRANSPORT, VIP_RESOURCE_VI, nullptr);
      break;
  }
}

void Nic::OnAdapterFailed() {
  VIP_ERROR_DESCRIPTOR error = {};
  error.ResourceCode = VIP_RESOURCE_NIC;
  error.ErrorCode = VIP_ERROR_CATASTROPHIC;
  Report(error);
  const verbs::MutexLock hold(&lock_);
  failed_ = true;
  for (core::EventDispatcher* waiter : waiters_) waiter->SetWaitable(false);
}

void Nic::SetErrorHandler(VIP_ERROR_HANDLER handler, VIP_PVOID context) {
  {
    const verbs::MutexLock hold(&lock_);
    handler_ = handler;
    handler_context_ = context;
  }
  verbs::AwaitCallback(this);  // a handler that is running may use the old context
}

void Nic::Report(VIP_ERROR_DESCRIPTOR error) {
  // What the NIC's close flushes is no news, and must not start the callback thread.
  if (closed_.load()) return;
  if (MayRepeat(error.ErrorCode) && undelivered_.load() >= kMostUndelivered) {
    if (!overflowing_.exchange(true)) {
      verbs::Log(verbs::LogLevel::kWarn,
                 std::string(attributes_.Name) + ": " + std::to_string(kMostUndelivered) +
                     " errors wait for the error handler; further ones of messages without "
                     "a receive, and of refused writes, are left out until it has caught up");
    }
    return;
  }
  error.NicHandle = handle();
  undelivered_.fetch_add(1);
  const bool posted = verbs::PostCallback(
      this, [nic = core::Ref<Nic>::Share(this), error] { nic->Deliver(error); });
  if (!posted) undelivered_.fetch_sub(1);
}

void Nic::Deliver(VIP_ERROR_DESCRIPTOR error) {
  if (undelivered_.fetch_sub(1) == 1) overflowing_.store(false);
  VIP_ERROR_HANDLER handler;
  VIP_PVOID context;
  {
    const verbs::MutexLock hold(&lock_);
    if (closed_.load()) return;
    handler = handler_;
    context = handler_context_;
  }
  if (handler != nullptr) {
    handler(context, &error);
  } else if (verbs::LogEnabled(verbs::LogLevel::kWarn)) {
    if (MayRepeat(error.ErrorCode) && logged_.load() == kMostLines) return;
    const ErrorText& text = kTexts[error.ErrorCode];
    char vi[sizeof ": VI 0x" + 2 * sizeof(void*)] = "";
    if (error.ViHandle != nullptr) std::snprintf(vi, sizeof vi, ": VI %p", error.ViHandle);
    char line[256];  // not allocated: nobody would hear that there was no memory
    std::snprintf(line, sizeof line, "%s%s: %s: %s", attributes_.Name, vi, text.name, text.meaning);
    verbs::WriteLog(verbs::LogLevel::kWarn, line);
    if (MayRepeat(error.ErrorCode) && logged_.fetch_add(1) + 1 == kMostLines) {
      verbs::WriteLog(verbs::LogLevel::kWarn,
                      "further messages without a receive, and refused writes, are not told here; "
                      "VipErrorCallback(3) tells a program of each");
    }
  }
}

}  // namespace viaduct::vipl

using viaduct::core::Ref;
using viaduct::core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Nic;

VIPL_EXPORT VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE NicHandle, VIP_PVOID Context,
                                        VIP_ERROR_HANDLER Handler) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic) return VIP_INVALID_PARAMETER;
    nic->SetErrorHandler(Handler, Context);
    return VIP_SUCCESS;
  });
}
