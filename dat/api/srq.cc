// Shared receive queues.
#include <algorithm>

#include "dat/api/face.h"
#include "dat/api/registration.h"
#include "dat/api/segments.h"
#include "dat/core/shared_receive_queue.h"

namespace viaduct::dat {
namespace {

core::Ref<core::SharedReceiveQueue> ShareSrq(DAT_SRQ_HANDLE handle) {
  return Share<core::SharedReceiveQueue>(handle);
}

}  // namespace

// uDAPL 1.2 dat_srq_create: the low watermark is set later, by dat_srq_set_lw.
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_SRQ_ATTR* srq_attr,
                          DAT_SRQ_HANDLE* srq_handle) {
  return Control([&]() -> DAT_RETURN {
    auto adapter = Share<core::InterfaceAdapter>(ia_handle);
    if (!adapter) return kBadIa;
    auto zone = ShareOf<core::ProtectionZone>(*adapter, pz_handle);
    if (!zone) return kBadPz;
    if (srq_attr == nullptr || srq_attr->max_recv_dtos <= 0 || srq_attr->max_recv_iov < 0 ||
        srq_attr->max_recv_iov > kMaxSegments || srq_attr->low_watermark != DAT_SRQ_LW_DEFAULT) {
      return BadParameter(3);
    }
    if (srq_handle == nullptr) return BadParameter(4);
    core::Ref<core::SharedReceiveQueue> queue;
    core::Error error = core::SharedReceiveQueue::Create(
        *adapter, *zone, static_cast<uint32_t>(srq_attr->max_recv_dtos),
        static_cast<uint32_t>(std::max<DAT_COUNT>(srq_attr->max_recv_iov, 1)), &queue);
    if (error.ok()) *srq_handle = queue->handle();
    return ToReturn(error);
  });
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM* param) {
  return Control([&]() -> DAT_RETURN {
    auto queue = ShareSrq(srq_handle);
    if (!queue) return kBadSrq;
    if ((static_cast<unsigned>(mask) & ~unsigned{DAT_SRQ_FIELD_ALL}) != 0) return BadParameter(2);
    if (param == nullptr) return BadParameter(3);
    param->ia_handle = ShownHandle(queue->adapter());
    param->srq_state = DAT_SRQ_STATE_OPERATIONAL;
    param->pz_handle = queue->zone().handle();
    param->max_recv_dtos = static_cast<DAT_COUNT>(queue->max_receives());
    param->max_recv_iov = static_cast<DAT_COUNT>(queue->max_segments());
    param->low_watermark = static_cast<DAT_COUNT>(queue->low_watermark());
    const uint32_t available = queue->available();
    param->available_dto_count = static_cast<DAT_COUNT>(available);
    // Outstanding() misses receives that are taken while it counts.
    param->outstanding_dto_count =
        static_cast<DAT_COUNT>(std::max(available, queue->Outstanding()));
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT max_recv_dtos) {
  return Control([&]() -> DAT_RETURN {
    auto queue = ShareSrq(srq_handle);
    if (!queue) return kBadSrq;
    if (max_recv_dtos <= 0) return BadParameter(2);
    return ToReturn(queue->Resize(static_cast<uint32_t>(max_recv_dtos)));
  });
}

DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark) {
  return Control([&]() -> DAT_RETURN {
    auto queue = ShareSrq(srq_handle);
    if (!queue) return kBadSrq;
    if (low_watermark < 0) return BadParameter(2);
    return ToReturn(queue->SetLowWatermark(static_cast<uint32_t>(low_watermark)));
  });
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
                             DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie) {
  return DataPath<core::SharedReceiveQueue>(
      srq_handle, [&](core::SharedReceiveQueue* queue) -> DAT_RETURN {
        if (queue == nullptr) return kBadSrq;
        Segments segments;
        DAT_RETURN taken = segments.Take(num_segments, local_iov);
        if (taken != DAT_SUCCESS) return taken;
        verbs::ReceiveRequest request;
        request.id = user_cookie.as_64;
        request.segments = segments.span();
        return ToReturn(queue->PostReceive(request));
      });
}

DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle) {
  return Control([&]() -> DAT_RETURN {
    auto queue = ShareSrq(srq_handle);
    return queue ? ToReturn(queue->Free()) : kBadSrq;
  });
}

}  // namespace viaduct::dat
