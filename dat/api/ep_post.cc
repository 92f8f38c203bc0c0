// The data path: posting.
#include "dat/api/ep_post.h"

#include <cstdint>

#include "absl/base/attributes.h"
#include "dat/api/ep_attributes.h"
#include "dat/api/face.h"
#include "dat/api/request_flags.h"
#include "dat/api/segments.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {
namespace {

constexpr unsigned kReceiveFlags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;

// As RequestFlagsOf.
unsigned ReceiveFlagsOf(const core::Endpoint& endpoint) {
  return kReceiveFlags | (AskedAttributes::Unpack(endpoint.face_word()).receive_flags &
                          DAT_COMPLETION_UNSIGNALLED_FLAG);
}

// What sends, writes and reads have in common. `remote` is null for a send.
template <verbs::Opcode kOpcode>
DAT_RETURN PostRequest(DAT_EP_HANDLE handle, DAT_COUNT count, const DAT_LMR_TRIPLET* iov,
                       DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote, unsigned flags) {
  return DataPath<core::Endpoint>(
      handle, [&](core::Endpoint* endpoint) ABSL_ATTRIBUTE_ALWAYS_INLINE -> DAT_RETURN {
        if (endpoint == nullptr) return kBadEp;
        constexpr bool kRdma = kOpcode != verbs::Opcode::kSend;
        Segments segments;
        DAT_RETURN taken = segments.Take(count, iov);
        if (taken != DAT_SUCCESS) return taken;
        if (kRdma && remote == nullptr) return BadParameter(5);
        if ((flags & ~kRequestFlags) != 0 && (flags & ~RequestFlagsOf(*endpoint)) != 0) {
          return BadParameter(kRdma ? 6 : 5);
        }
        verbs::SendRequest request;
        request.id = cookie.as_64;
        request.opcode = kOpcode;
        request.flags = ToRequestFlags(flags);
        if constexpr (kRdma) {
          // The destination must hold what the source has: a write all local bytes, a read all
          // remote ones.
          const uint64_t remote_bytes = remote->segment_length;
          if (kOpcode == verbs::Opcode::kWrite && segments.bytes() > remote_bytes) {
            return Failure(DAT_LENGTH_ERROR);
          }
          if (kOpcode == verbs::Opcode::kRead) {
            if (remote_bytes > segments.bytes()) return Failure(DAT_LENGTH_ERROR);
            segments.Trim(remote_bytes);
          }
          request.remote_address = TargetAddress(*remote);
          request.remote_key = remote->rmr_context;
        }
        request.segments = segments.span();
        const core::Error error = endpoint->PostSend(request, segments.bytes());
        if (error.ok()) CountPost(*endpoint, kOpcode, segments.bytes());
        return ToReturn(error);
      });
}

}  // namespace

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                            DAT_COMPLETION_FLAGS completion_flags) {
  return PostRequest<verbs::Opcode::kSend>(ep_handle, num_segments, local_iov, user_cookie, nullptr,
                                           static_cast<unsigned>(completion_flags));
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                 DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                 const DAT_RMR_TRIPLET* remote_iov,
                                 DAT_COMPLETION_FLAGS completion_flags) {
  return PostRequest<verbs::Opcode::kRead>(ep_handle, num_segments, local_iov, user_cookie,
                                           remote_iov, static_cast<unsigned>(completion_flags));
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                                  DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                                  const DAT_RMR_TRIPLET* remote_iov,
                                  DAT_COMPLETION_FLAGS completion_flags) {
  return PostRequest<verbs::Opcode::kWrite>(ep_handle, num_segments, local_iov, user_cookie,
                                            remote_iov, static_cast<unsigned>(completion_flags));
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
                            DAT_LMR_TRIPLET* local_iov, DAT_DTO_COOKIE user_cookie,
                            DAT_COMPLETION_FLAGS completion_flags) {
  return DataPath<core::Endpoint>(
      ep_handle, [&](core::Endpoint* endpoint) ABSL_ATTRIBUTE_ALWAYS_INLINE -> DAT_RETURN {
        if (endpoint == nullptr) return kBadEp;
        if (endpoint->has_shared_receives()) [[unlikely]]
          return Failure(DAT_INVALID_STATE);
        Segments segments;
        DAT_RETURN taken = segments.Take(num_segments, local_iov);
        if (taken != DAT_SUCCESS) return taken;
        const auto flags = static_cast<unsigned>(completion_flags);
        if ((flags & ~kReceiveFlags) != 0 && (flags & ~ReceiveFlagsOf(*endpoint)) != 0) {
          return BadParameter(5);
        }
        verbs::ReceiveRequest request;
        request.quiet = (flags & DAT_COMPLETION_UNSIGNALLED_FLAG) != 0;
        request.id = user_cookie.as_64;
        request.segments = segments.span();
        const core::Error error = endpoint->PostReceive(request);
        if (error.ok()) {
          endpoint->counts().AddWithBytes(core::EndpointCount::kReceivesPosted, segments.bytes());
        }
        return ToReturn(error);
      });
}

}  // namespace viaduct::dat
