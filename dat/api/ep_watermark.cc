// The number of receives that wait for an endpoint's messages, and limits for the number that
// messages hold.
#include <optional>

#include "dat/api/ep_attributes.h"
#include "dat/api/face.h"
#include "dat/core/endpoint.h"
#include "dat/core/receive_watch.h"
#include "verbs/base/lock.h"

namespace viaduct::dat {
namespace {

bool TakeLimit(DAT_COUNT watermark, uint32_t* limit) {
  if (watermark == DAT_WATERMARK_INFINITE) {
    *limit = core::ReceiveWatch::kNoLimit;
    return true;
  }
  *limit = static_cast<uint32_t>(watermark);
  return watermark >= 0;
}

}  // namespace

// [dat_ep_recv_query] "buffers allocated to ep_handle but not yet completed"; "when an EP does not
// use SRQ, a buffer is allocated as soon as it is posted". Each result may be NULL. Messages arrive
// in order, so both results are the same number.
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT* nbufs_allocated,
                             DAT_COUNT* bufs_alloc_span) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = Share<core::Endpoint>(ep_handle);
    if (!endpoint) return kBadEp;
    const auto open = static_cast<DAT_COUNT>(endpoint->HarvestOpenReceives());
    if (nbufs_allocated != nullptr) *nbufs_allocated = open;
    if (bufs_alloc_span != nullptr) *bufs_alloc_span = open;
    return DAT_SUCCESS;
  });
}

DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
                                DAT_COUNT hard_high_watermark) {
  return Control([&]() -> DAT_RETURN {
    auto endpoint = Share<core::Endpoint>(ep_handle);
    if (!endpoint) return kBadEp;
    uint32_t soft = 0, hard = 0;
    if (!TakeLimit(soft_high_watermark, &soft)) return BadParameter(2);
    if (!TakeLimit(hard_high_watermark, &hard)) return BadParameter(3);
    verbs::MutexLock lock(&endpoint->adapter().modify_lock());
    endpoint->SetWatermarks(soft, hard);
    // For dat_ep_query.
    AskedAttributes asked = AskedAttributes::Unpack(endpoint->face_word());
    asked.soft_high = soft != core::ReceiveWatch::kNoLimit ? std::optional(soft) : std::nullopt;
    endpoint->set_face_word(asked.Pack());
    return DAT_SUCCESS;
  });
}

}  // namespace viaduct::dat
