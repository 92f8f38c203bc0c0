// Client and server: [MAN] VipConnectRequest and its four companions.
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "compat/attributes.h"
#include "compat/net_address.h"
#include "compat/result.h"
#include "dat/core/connection_header.h"
#include "dat/core/connection_request.h"
#include "dat/core/service_name.h"
#include "dat/core/service_point.h"
#include "verbs/base/clock.h"
#include "verbs/base/log.h"
#include "verbs/base/settings.h"
#include "vipl/face.h"
#include "vipl/turn.h"
#include "vipl/vi.h"

namespace viaduct::vipl {
namespace {

core::EndpointProfile ProfileOf(const core::ConnectionRequest& request) {
  return request.header() ? request.header()->profile : core::EndpointProfile();
}

// A request that a VIPL program may answer, or null. The engine's handles are also DAT's, and only
// adapters that DAT has opened have a face word.
core::Ref<core::ConnectionRequest> ShareRequest(VIP_CONN_HANDLE handle) {
  core::Ref<core::ConnectionRequest> request = core::ShareObject<core::ConnectionRequest>(handle);
  const bool vipls = request && request->adapter().face_word() == 0;
  return vipls ? request : core::Ref<core::ConnectionRequest>();
}

}  // namespace

VIP_RETURN Vi::ResultOfAttempt(core::Error error) const {
  return error.code == core::Code::kInvalidState ? WrongState() : compat::ResultOf(error);
}

void Vi::BeginAttempt() {
  turns_.Begin();
  // The end of an earlier attempt moves the state before it queues its event. Once the state has
  // settled, the event is there.
  (void)endpoint_->SettledState();
  for (;;) {
    // The VI is Idle, so a thread that still waits in AwaitPeer waits for an attempt that is over.
    peer_waiter_.wait(true);
    const verbs::MutexLock hold(&peer_lock_);
    if (peer_waiter_.load()) continue;
    core::Event event;
    while (connect_events_->Dequeue(&event).ok()) {
    }
    peer_phase_ = PeerPhase::kNone;
    return;
  }
}

VIP_RETURN Vi::AwaitOutcome() {
  core::Event event;
  // The outcome always comes: a request has its deadline, an accept the device's patience.
  const core::Error error = connect_events_->Wait(verbs::Deadline::Infinite(), {}, &event, nullptr);
  const VIP_RETURN result = error.ok() ? compat::ResultOf(event.type) : compat::ResultOf(error);
  // [MAN] "any pending receive descriptors are marked as flushed"
  if (result == VIP_NOT_REACHABLE) MarkFlushed();
  return result;
}

void Vi::MarkFlushed() {
  for (WorkQueue* queue : {&sends_, &receives_}) queue->dispatcher()->Harvest();
}

VIP_RETURN Vi::Connect(core::ConnectionHeader header, core::ConnectParameters parameters,
                       VIP_VI_ATTRIBUTES* peer) {
  const Turn turn = TakeTurn(Turns::Use::kConnect);
  const VIP_RETURN may = CheckTurn(turn, compat::ViCall::kConnectRequest);
  if (may != VIP_SUCCESS) return may;
  BeginAttempt();
  header.profile = compat::ProfileOf(attributes());
  parameters.header = &header;
  const core::Error error = endpoint_->Connect(parameters);
  if (!error.ok()) return ResultOfAttempt(error);
  turns_.Started();
  const VIP_RETURN result = AwaitOutcome();
  if (result == VIP_SUCCESS) *peer = PeerAttributes();
  return result;
}

VIP_RETURN Vi::Accept(VIP_CONN_HANDLE handle) {
  const core::Ref<core::ConnectionRequest> request = ShareRequest(handle);
  if (!request) return VIP_INVALID_PARAMETER;
  const Turn turn = TakeTurn(Turns::Use::kConnect);
  const VIP_RETURN may = CheckTurn(turn, compat::ViCall::kConnectAccept);
  if (may != VIP_SUCCESS) return may;
  // The requester does not learn of a mismatch: the caller may try again with another VI.
  const VIP_RETURN match =
      compat::MatchProfiles(compat::ProfileOf(attributes()), ProfileOf(*request));
  if (match != VIP_SUCCESS) return match;
  BeginAttempt();
  const core::Error error = request->BeginAccept(endpoint_.get(), {});
  if (!error.ok()) return ResultOfAttempt(error);
  turns_.Started();
  const VIP_RETURN result = AwaitOutcome();
  // Only success consumes the handle: otherwise the caller must reject explicitly.
  request->EndAccept(result == VIP_SUCCESS);
  return result;
}

VIP_RETURN Vi::Disconnect() {
  const VIP_RETURN result = EndConnection();
  MarkFlushed();
  return result;
}

VIP_RETURN Vi::EndConnection() {
  const verbs::MutexLock hold(&lock_);
  for (;;) {
    const bool idle =
        compat::VerdictOf(state(), compat::ViCall::kDisconnect) == compat::ViVerdict::kFlushOnly;
    const core::Error error =
        idle ? endpoint_->FlushPosted() : endpoint_->Disconnect(verbs::DisconnectMode::kAbrupt);
    // The state has changed meanwhile: an attempt began or failed just now.
    if (error.code == core::Code::kInvalidState) continue;
    if (idle || !error.ok()) return compat::ResultOf(error);
    // Before the VI is Idle and another attempt may begin: a thread that slept in this attempt may
    // take a while to leave.
    turns_.End();
    const core::Error reset = endpoint_->Reset();
    if (reset.code == core::Code::kInvalidState) continue;  // VipCloseNic has ended the VI
    return compat::ResultOf(reset);
  }
}

}  // namespace viaduct::vipl

namespace {

namespace compat = viaduct::compat;
namespace core = viaduct::core;
namespace verbs = viaduct::verbs;
using core::Ref;
using core::ShareObject;
using viaduct::vipl::Control;
using viaduct::vipl::Nic;
using viaduct::vipl::ShareRequest;
using viaduct::vipl::ShareVi;
using viaduct::vipl::Vi;
using viaduct::vipl::WaitControl;

// Shows a request to the caller of VipConnectWait.
void Describe(const core::ConnectionRequest& request, const Nic& nic, VIP_NET_ADDRESS* remote,
              VIP_VI_ATTRIBUTES* attributes) {
  const std::optional<core::ConnectionHeader>& header = request.header();
  const compat::NicAddress host = compat::NicAddressOf(request.remote_address());
  if (header && header->kind == core::HeaderKind::kViplRequest) {
    compat::WriteNetAddress(host, header->local.bytes(), remote);
    *attributes =
        compat::PeerAttributesOf(header->profile, compat::AnyAttributes(nic.attributes()));
  } else {
    compat::WriteNetAddress(host, compat::NameOfPort(request.remote_port()).bytes(), remote);
    *attributes = compat::AnyAttributes(nic.attributes());
  }
}

// How long a port in use may be one that is just passing from one waiting process to the next.
// After that it counts as a stranger's, whatever the caller's time-out.
constexpr verbs::Nanos kPatience = 250 * verbs::kNanosPerMilli;

// VIP_ERROR_RESOURCE has many causes.
void LogPortTaken(const core::ServiceName& name) {
  if (!verbs::LogEnabled(verbs::LogLevel::kWarn)) return;
  const bool direct = name.direct_port().has_value();
  verbs::WriteLog(verbs::LogLevel::kWarn,
                  "VipConnectWait at " + name.ToString() +
                      (direct ? ": something else holds that port"
                              : ": others hold all ports that it is hashed to; there are more with "
                                "a lower VIADUCT_PORT_BASE and a higher VIADUCT_PORT_COUNT"));
}

// Nothing feeds the dispatcher yet, so waiting on it is sleeping.
core::Error Serve(Nic& nic, const core::ServicePoint::Options& options,
                  core::EventDispatcher& dispatcher, Ref<core::ServicePoint>* out) {
  const verbs::Nanos end = nic.adapter().DeadlineAfter(kPatience).at();
  for (;;) {
    const core::Error error =
        core::ServicePoint::CreatePublic(nic.adapter(), options, dispatcher, out);
    if (error.code != core::Code::kConnQualInUse) return error;
    const verbs::Nanos again = nic.adapter().DeadlineAfter(verbs::kNanosPerMilli).at();
    if (again > end) {
      LogPortTaken(options.name);
      return error;
    }
    core::Event none;
    const core::Error slept = dispatcher.Wait(verbs::Deadline::At(again), {}, &none, nullptr);
    if (slept.code != core::Code::kTimeout) return slept;
  }
}

core::Error NextRequest(Nic& nic, const core::ServicePoint::Options& options,
                        core::EventDispatcher& dispatcher, Ref<core::ConnectionRequest>* out) {
  Ref<core::ServicePoint> point;
  core::Error error = Serve(nic, options, dispatcher, &point);
  if (!error.ok()) return error;
  core::Event event;
  absl::Cleanup withdraw = [&] { static_cast<void>(point->Free()); };
  error = dispatcher.Wait(options.deadline, {}, &event, nullptr);
  std::move(withdraw).Invoke();
  // A request may have arrived between the time-out and the end of the service point.
  if (error.code == core::Code::kTimeout && dispatcher.Dequeue(&event).ok()) error = core::Ok();
  if (!error.ok()) return error;
  *out = ShareObject<core::ConnectionRequest>(event.subject);
  return *out ? core::Ok() : core::Error(core::Code::kAbort);  // it died with the adapter
}

VIP_RETURN WaitForRequest(Nic& nic, const core::ServiceName& name, verbs::Deadline deadline,
                          Ref<core::ConnectionRequest>* out) {
  Ref<core::EventDispatcher> dispatcher;
  core::Error error = core::EventDispatcher::Create(nic.adapter(), 1, core::kRequestStream,
                                                    /*eager=*/false, &dispatcher);
  if (!error.ok()) return compat::ResultOf(error);
  const absl::Cleanup free = [&] {
    nic.RemoveWaiter(dispatcher.get());
    static_cast<void>(dispatcher->Free());
  };
  nic.AddWaiter(dispatcher.get());
  core::ServicePoint::Options options;
  options.name = name;
  options.shared = true;
  options.one_shot = true;
  options.since = nic.adapter().executor().Now();
  options.deadline = deadline;
  // If memory runs out on the way, nobody else would decide the request.
  absl::Cleanup refuse = [&] {
    if (*out) (*out)->Destroy();
  };
  do {
    error = NextRequest(nic, options, *dispatcher, out);
    // Somebody in another process may have waited longer and gets the request; this waiter then
    // keeps its place in the line.
  } while (error.ok() && (*out)->PassToEarlierWaiter(options));
  std::move(refuse).Cancel();
  return error.ok() ? VIP_SUCCESS : compat::ResultOf(error);
}

}  // namespace

VIPL_EXPORT VIP_RETURN VipConnectWait(VIP_NIC_HANDLE NicHandle, VIP_NET_ADDRESS* LocalAddr,
                                      VIP_ULONG Timeout, VIP_NET_ADDRESS* RemoteAddr,
                                      VIP_VI_ATTRIBUTES* RemoteViAttribs,
                                      VIP_CONN_HANDLE* ConnHandle) {
  return WaitControl([&]() -> VIP_RETURN {
    const Ref<Nic> nic = ShareObject<Nic>(NicHandle);
    if (!nic || LocalAddr == nullptr || RemoteAddr == nullptr || RemoteViAttribs == nullptr ||
        ConnHandle == nullptr) {
      return VIP_INVALID_PARAMETER;
    }
    const verbs::Deadline deadline = nic->DeadlineAfter(Timeout);
    if (!compat::IsLocal(LocalAddr, nic->address())) return VIP_INVALID_ADDRESS;
    const auto name = compat::DiscriminatorOf(LocalAddr);
    if (!name) return VIP_INVALID_PARAMETER;
    Ref<core::ConnectionRequest> request;
    const VIP_RETURN result = WaitForRequest(*nic, *name, deadline, &request);
    if (result != VIP_SUCCESS) return result;
    Describe(*request, *nic, RemoteAddr, RemoteViAttribs);
    *ConnHandle = request->handle();
    return VIP_SUCCESS;
  });
}

VIPL_EXPORT VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE ConnHandle, VIP_VI_HANDLE ViHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    return vi ? vi->Accept(ConnHandle) : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipConnectReject(VIP_CONN_HANDLE ConnHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<core::ConnectionRequest> request = ShareRequest(ConnHandle);
    return request ? compat::ResultOf(request->Reject({})) : VIP_INVALID_PARAMETER;
  });
}

VIPL_EXPORT VIP_RETURN VipConnectRequest(VIP_VI_HANDLE ViHandle, VIP_NET_ADDRESS* LocalAddr,
                                         VIP_NET_ADDRESS* RemoteAddr, VIP_ULONG TimeOut,
                                         VIP_VI_ATTRIBUTES* RemoteViAttribs) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    if (!vi || LocalAddr == nullptr || RemoteAddr == nullptr || RemoteViAttribs == nullptr ||
        TimeOut == 0) {
      return VIP_INVALID_PARAMETER;
    }
    compat::Route route;
    const VIP_RETURN read = compat::ReadRoute(LocalAddr, RemoteAddr, vi->nic().address(), &route);
    if (read != VIP_SUCCESS) return read;

    core::ConnectionHeader header;
    header.kind = core::HeaderKind::kViplRequest;
    header.remote = route.remote_name;
    header.local = route.local_name;
    core::ConnectParameters parameters;
    parameters.target.address = route.remote_host;
    parameters.target.name = route.remote_name;
    parameters.deadline = vi->nic().DeadlineAfter(TimeOut);
    parameters.grace = verbs::NumberSetting(verbs::SettingId::kGraceMs) * verbs::kNanosPerMilli;
    return vi->Connect(header, parameters, RemoteViAttribs);
  });
}

VIPL_EXPORT VIP_RETURN VipDisconnect(VIP_VI_HANDLE ViHandle) {
  return Control([&]() -> VIP_RETURN {
    const Ref<Vi> vi = ShareVi(ViHandle);
    return vi ? vi->Disconnect() : VIP_INVALID_PARAMETER;
  });
}
