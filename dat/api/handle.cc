// What every object has: a type and the consumer's context.
#include <optional>

#include "dat/api/face.h"
#include "dat/core/connection_request.h"
#include "dat/core/endpoint.h"
#include "dat/core/memory_region.h"
#include "dat/core/memory_window.h"
#include "dat/core/notifier.h"
#include "dat/core/protection_zone.h"
#include "dat/core/service_point.h"
#include "dat/core/shared_receive_queue.h"

namespace viaduct::dat {
namespace {

constexpr DAT_RETURN kBadObject = BadHandle(DAT_INVALID_HANDLE1);

template <typename T>
std::optional<DAT_HANDLE_TYPE> IfDats(const core::Object& object,
                                      std::optional<DAT_HANDLE_TYPE> type) {
  return IsDats(static_cast<const T&>(object)) ? type : std::nullopt;
}

// Null: the object is VIPL's, or the header has no such type.
std::optional<DAT_HANDLE_TYPE> TypeOf(const core::Object& object) {
  switch (object.type()) {
    case core::ObjectType::kAdapter:
      return IfDats<core::InterfaceAdapter>(object, DAT_HANDLE_TYPE_IA);
    case core::ObjectType::kProtectionZone:
      return IfDats<core::ProtectionZone>(object, DAT_HANDLE_TYPE_PZ);
    case core::ObjectType::kMemoryRegion:
      return IfDats<core::MemoryRegion>(object, DAT_HANDLE_TYPE_LMR);
    case core::ObjectType::kEventDispatcher:
      return IfDats<core::EventDispatcher>(object, DAT_HANDLE_TYPE_EVD);
    case core::ObjectType::kEndpoint:
      return IfDats<core::Endpoint>(object, DAT_HANDLE_TYPE_EP);
    case core::ObjectType::kPublicServicePoint:
      return IfDats<core::ServicePoint>(object, DAT_HANDLE_TYPE_PSP);
    case core::ObjectType::kReservedServicePoint:
      return IfDats<core::ServicePoint>(object, DAT_HANDLE_TYPE_RSP);
    case core::ObjectType::kConnectionRequest:
      return IfDats<core::ConnectionRequest>(object, DAT_HANDLE_TYPE_CR);
    case core::ObjectType::kCommonServicePoint:
      return IfDats<core::ServicePoint>(object, kCommonPoint);
    case core::ObjectType::kNotifier:
      return IfDats<core::Notifier>(object, DAT_HANDLE_TYPE_CNO);
    case core::ObjectType::kSharedReceiveQueue:
      return IfDats<core::SharedReceiveQueue>(object, DAT_HANDLE_TYPE_SRQ);
    case core::ObjectType::kMemoryWindow:
      return IfDats<core::MemoryWindow>(object, DAT_HANDLE_TYPE_RMR);
    case core::ObjectType::kNone:
    case core::ObjectType::kNic:  // VIPL's, in the same table
    case core::ObjectType::kVi:
    case core::ObjectType::kCompletionQueue:
      break;
  }
  return std::nullopt;
}

// Calls `use` with the object while it cannot go away.
template <typename Use>
DAT_RETURN OnObject(DAT_HANDLE handle, const Use& use) {
  return Protected([&]() -> DAT_RETURN {
    const verbs::EpochGuard guard;
    core::Object* object = core::HandleTable::Find(handle, core::HandleTable::TypeOf(handle));
    return object != nullptr && TypeOf(*object) ? use(*object) : kBadObject;
  });
}

}  // namespace

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context) {
  return OnObject(dat_handle, [&](core::Object& object) -> DAT_RETURN {
    object.set_context(context.as_64);
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT* context) {
  return OnObject(dat_handle, [&](core::Object& object) -> DAT_RETURN {
    if (context == nullptr) return BadParameter(2);
    context->as_64 = object.context();
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE* handle_type) {
  return OnObject(dat_handle, [&](core::Object& object) -> DAT_RETURN {
    if (handle_type == nullptr) return BadParameter(2);
    *handle_type = *TypeOf(object);
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
