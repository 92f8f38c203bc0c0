// What public and reserved service points have in common.
#ifndef VIADUCT_DAT_API_SERVICE_POINTS_H_
#define VIADUCT_DAT_API_SERVICE_POINTS_H_

#include "dat/api/face.h"
#include "dat/core/service_point.h"

namespace viaduct::dat {

inline core::Ref<core::ServicePoint> SharePoint(DAT_HANDLE handle, core::ObjectType type) {
  core::Ref<core::ServicePoint> point = core::ShareObject<core::ServicePoint>(handle, type);
  return point && IsDats(*point) ? point : core::Ref<core::ServicePoint>();
}

// The dispatcher that connection requests go to, or null.
inline core::Ref<core::EventDispatcher> ShareRequestDispatcher(core::InterfaceAdapter& adapter,
                                                               DAT_EVD_HANDLE handle) {
  return ShareDispatcher(adapter, handle, core::kRequestStream);
}

inline DAT_CONN_QUAL QualifierOf(const core::ServicePoint& point) {
  return point.options().name.qualifier().value_or(0);
}

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_SERVICE_POINTS_H_
