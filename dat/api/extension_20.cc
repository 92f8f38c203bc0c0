// Extensions on endpoints: atomics, and writes with immediate data.
#include <dat2/dat_ib_extensions.h>

#include "dat/api/counters.h"
#include "dat/api/extension.h"
#include "dat/api/face.h"
#include "dat/api/request_flags.h"
#include "dat/api/segments.h"
#include "dat/core/endpoint.h"

namespace viaduct::dat {
namespace {

// Parameter numbers are those of dat_ib_extensions.h's macros.
DAT_RETURN PostAtomic(DAT_EP_HANDLE handle, verbs::Opcode opcode, uint64_t compare_add,
                      uint64_t swap, const DAT_LMR_TRIPLET* local, DAT_DTO_COOKIE cookie,
                      const DAT_RMR_TRIPLET* remote, unsigned flags) {
  return DataPath<core::Endpoint>(handle, [&](core::Endpoint* endpoint) -> DAT_RETURN {
    if (endpoint == nullptr) return kBadEp;
    if (!endpoint->adapter().context().attributes().atomics) return Failure(DAT_NOT_IMPLEMENTED);
    const unsigned first = opcode == verbs::Opcode::kCompareAndSwap ? 4 : 3;
    if (local == nullptr) return BadParameter(first);
    if (remote == nullptr) return BadParameter(first + 2);
    if ((flags & ~RequestFlagsOf(*endpoint)) != 0) return BadParameter(first + 3);
    if (local->segment_length != sizeof(DAT_UINT64) ||
        remote->segment_length < sizeof(DAT_UINT64)) {
      return Failure(DAT_LENGTH_ERROR);
    }
    verbs::AtomicRequest request;
    request.id = cookie.as_64;
    request.opcode = opcode;
    request.flags = ToRequestFlags(flags);
    request.compare_add = compare_add;
    request.swap = swap;
    (void)ToSegment(*local, &request.result);
    request.remote_address = TargetAddress(*remote);
    request.remote_key = remote->rmr_context;
    const core::Error error = endpoint->PostAtomic(request);
    if (error.ok()) {
      endpoint->counts().Add(opcode == verbs::Opcode::kCompareAndSwap
                                 ? core::EndpointCount::kCompareAndSwaps
                                 : core::EndpointCount::kFetchAndAdds);
    }
    return ToReturn(error);
  });
}

DAT_RETURN PostWriteImmediate(DAT_EP_HANDLE handle, DAT_COUNT count, const DAT_LMR_TRIPLET* local,
                              DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET* remote,
                              DAT_UINT32 immediate, unsigned flags) {
  return DataPath<core::Endpoint>(handle, [&](core::Endpoint* endpoint) -> DAT_RETURN {
    if (endpoint == nullptr) return kBadEp;
    Segments segments;
    DAT_RETURN taken = segments.Take(count, local);
    if (taken != DAT_SUCCESS) return taken;
    if (remote == nullptr) return BadParameter(5);
    if ((flags & ~RequestFlagsOf(*endpoint)) != 0) return BadParameter(7);
    if (segments.bytes() > remote->segment_length) return Failure(DAT_LENGTH_ERROR);
    verbs::SendRequest request;
    request.id = cookie.as_64;
    request.opcode = verbs::Opcode::kWrite;
    request.flags = ToRequestFlags(flags) | verbs::kImmediate;
    request.immediate = immediate;
    request.segments = segments.span();
    request.remote_address = TargetAddress(*remote);
    request.remote_key = remote->rmr_context;
    const core::Error error = endpoint->PostSend(request, segments.bytes());
    if (error.ok()) {
      endpoint->counts().AddWithBytes(core::EndpointCount::kImmediateWrites, segments.bytes());
    }
    return ToReturn(error);
  });
}

}  // namespace

DAT_RETURN HandleExtendedOp(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list arguments) {
  switch (static_cast<unsigned>(op)) {
    case DAT_IB_FETCH_AND_ADD_OP: {
      const auto addend = va_arg(arguments, DAT_UINT64);
      auto* local = va_arg(arguments, DAT_LMR_TRIPLET*);
      const auto cookie = va_arg(arguments, DAT_DTO_COOKIE);
      auto* remote = va_arg(arguments, DAT_RMR_TRIPLET*);
      const auto flags = va_arg(arguments, unsigned);
      return PostAtomic(handle, verbs::Opcode::kFetchAndAdd, addend, 0, local, cookie, remote,
                        flags);
    }
    case DAT_IB_CMP_AND_SWAP_OP: {
      const auto compare = va_arg(arguments, DAT_UINT64);
      const auto swap = va_arg(arguments, DAT_UINT64);
      auto* local = va_arg(arguments, DAT_LMR_TRIPLET*);
      const auto cookie = va_arg(arguments, DAT_DTO_COOKIE);
      auto* remote = va_arg(arguments, DAT_RMR_TRIPLET*);
      const auto flags = va_arg(arguments, unsigned);
      return PostAtomic(handle, verbs::Opcode::kCompareAndSwap, compare, swap, local, cookie,
                        remote, flags);
    }
    case DAT_IB_RDMA_WRITE_IMMED_OP: {
      const auto count = va_arg(arguments, DAT_COUNT);
      auto* local = va_arg(arguments, DAT_LMR_TRIPLET*);
      const auto cookie = va_arg(arguments, DAT_DTO_COOKIE);
      auto* remote = va_arg(arguments, DAT_RMR_TRIPLET*);
      const auto immediate = va_arg(arguments, DAT_UINT32);
      const auto flags = va_arg(arguments, unsigned);
      return PostWriteImmediate(handle, count, local, cookie, remote, immediate, flags);
    }
    case DAT_IB_QUERY_COUNTERS_OP: {
      const auto counter = va_arg(arguments, int);
      auto* out = va_arg(arguments, DAT_UINT64*);
      const auto reset = va_arg(arguments, int);
      return QueryCounters(handle, counter, out, reset != 0);
    }
    case DAT_IB_PRINT_COUNTERS_OP: {
      const auto counter = va_arg(arguments, int);
      const auto reset = va_arg(arguments, int);
      return PrintCounters(handle, counter, reset != 0);
    }
    case DAT_IB_START_COUNTERS_OP:
      return RunCounters(handle, va_arg(arguments, int), /*start=*/true);
    case DAT_IB_STOP_COUNTERS_OP:
      return RunCounters(handle, va_arg(arguments, int), /*start=*/false);
    default:
      return Failure(DAT_NOT_IMPLEMENTED);
  }
}

}  // namespace viaduct::dat
