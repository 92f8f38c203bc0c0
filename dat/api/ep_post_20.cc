// The posts that 1.2 lacks: a send that invalidates a remote memory region of the peer, and a read
// into a remote memory region.
#include "absl/types/span.h"
#include "dat/api/ep_post.h"
#include "dat/api/face.h"
#include "dat/api/request_flags.h"
#include "dat/api/segments.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {

DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                            DAT_COMPLETION_FLAGS completion_flags,
                                            DAT_BOOLEAN invalidate_flag,
                                            DAT_RMR_CONTEXT rmr_context) {
  return DataPath<core::Endpoint>(ep_handle, [&](core::Endpoint* endpoint) -> DAT_RETURN {
    if (endpoint == nullptr) return kBadEp;
    Segments segments;
    DAT_RETURN taken = segments.Take(num_segments, local_iov);
    if (taken != DAT_SUCCESS) return taken;
    const auto flags = static_cast<unsigned>(completion_flags);
    if ((flags & ~RequestFlagsOf(*endpoint)) != 0) return BadParameter(5);
    verbs::SendRequest request;
    request.id = user_cookie.as_64;
    if (invalidate_flag != DAT_FALSE) {
      request.opcode = verbs::Opcode::kSendInvalidate;
      request.remote_key = rmr_context;
    }
    request.flags = ToRequestFlags(flags);
    request.segments = segments.span();
    const core::Error error = endpoint->PostSend(request, segments.bytes());
    if (error.ok()) CountPost(*endpoint, verbs::Opcode::kSend, segments.bytes());
    return ToReturn(error);
  });
}

DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET* local_iov,
                                        DAT_DTO_COOKIE user_cookie,
                                        const DAT_RMR_TRIPLET* remote_iov,
                                        DAT_COMPLETION_FLAGS completion_flags) {
  return DataPath<core::Endpoint>(ep_handle, [&](core::Endpoint* endpoint) -> DAT_RETURN {
    if (endpoint == nullptr) return kBadEp;
    if (local_iov == nullptr) return BadParameter(2);
    if (remote_iov == nullptr) return BadParameter(4);
    if (remote_iov->segment_length > local_iov->segment_length) return Failure(DAT_LENGTH_ERROR);
    const auto flags = static_cast<unsigned>(completion_flags);
    if ((flags & ~RequestFlagsOf(*endpoint)) != 0) return BadParameter(5);
    const verbs::Segment sink = {TargetAddress(*local_iov), local_iov->rmr_context,
                                 remote_iov->segment_length};
    verbs::SendRequest request;
    request.id = user_cookie.as_64;
    request.opcode = verbs::Opcode::kRead;
    request.flags = ToRequestFlags(flags) | verbs::kRemoteSink;
    request.segments = absl::MakeConstSpan(&sink, 1);
    request.remote_address = TargetAddress(*remote_iov);
    request.remote_key = remote_iov->rmr_context;
    const core::Error error = endpoint->PostSend(request, sink.length);
    if (error.ok()) CountPost(*endpoint, verbs::Opcode::kRead, sink.length);
    return ToReturn(error);
  });
}

}  // namespace viaduct::dat
