// What every object has: a type and the consumer's context.
#include <optional>

#include "dat/api/face.h"

namespace viaduct::dat {
namespace {

constexpr DAT_RETURN kBadObject = BadHandle(DAT_INVALID_HANDLE1);

std::optional<DAT_HANDLE_TYPE> TypeOf(core::ObjectType type) {
  switch (type) {
    case core::ObjectType::kAdapter:
      return DAT_HANDLE_TYPE_IA;
    case core::ObjectType::kProtectionZone:
      return DAT_HANDLE_TYPE_PZ;
    case core::ObjectType::kMemoryRegion:
      return DAT_HANDLE_TYPE_LMR;
    case core::ObjectType::kEventDispatcher:
      return DAT_HANDLE_TYPE_EVD;
    case core::ObjectType::kEndpoint:
      return DAT_HANDLE_TYPE_EP;
    case core::ObjectType::kPublicServicePoint:
      return DAT_HANDLE_TYPE_PSP;
    case core::ObjectType::kReservedServicePoint:
      return DAT_HANDLE_TYPE_RSP;
    case core::ObjectType::kConnectionRequest:
      return DAT_HANDLE_TYPE_CR;
    case core::ObjectType::kCommonServicePoint:
      return kCommonPoint;
    case core::ObjectType::kNotifier:
      return DAT_HANDLE_TYPE_CNO;
    case core::ObjectType::kSharedReceiveQueue:
      return DAT_HANDLE_TYPE_SRQ;
    case core::ObjectType::kMemoryWindow:
      return DAT_HANDLE_TYPE_RMR;
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
    const core::ObjectType type = core::HandleTable::TypeOf(handle);
    core::Object* object = TypeOf(type) ? core::HandleTable::Find(handle, type) : nullptr;
    return object != nullptr ? use(*object) : kBadObject;
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
    *handle_type = *TypeOf(object.type());
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
