#include "dat/api/ep_attributes.h"

#include <algorithm>
#include <optional>

#include "dat/api/limits.h"
#include "dat/api/return_code.h"

namespace viaduct::dat {
namespace {

// A stream has one mode; SOLICITED_WAIT is for receives only. SUPPRESS means nothing for a stream,
// since each post says it for itself; programs pass it for requests all the same (NetPIPE).
std::optional<core::CompletionMode> ModeOf(unsigned flags, bool receives) {
  switch (flags) {
    case DAT_COMPLETION_DEFAULT_FLAG:
      return core::CompletionMode::kDefault;
    case DAT_COMPLETION_EVD_THRESHOLD_FLAG:
      return core::CompletionMode::kThreshold;
    case DAT_COMPLETION_UNSIGNALLED_FLAG:
      return core::CompletionMode::kUnsignalled;
    case DAT_COMPLETION_SOLICITED_WAIT_FLAG:
      if (receives) return core::CompletionMode::kSolicited;
      break;
    case DAT_COMPLETION_SUPPRESS_FLAG:
      if (!receives) return core::CompletionMode::kDefault;
      break;
    default:
      break;
  }
  return std::nullopt;
}

// InfiniBand's longest message. Programs ask for it whatever the device supports (MVAPICH2).
constexpr uint64_t kLongestMessage = uint64_t{1} << 31;

// Takes one size in bytes. Up to kLongestMessage, a size above the device's limit means that limit.
bool TakeSize(uint64_t asked, uint32_t limit, uint32_t* engine) {
  if (asked > std::max<uint64_t>(limit, kLongestMessage)) return false;
  *engine = static_cast<uint32_t>(std::min<uint64_t>(asked, limit));
  return true;
}

// Takes one count, from 0 (which means `preset`) to `limit`.
bool TakeCount(DAT_COUNT asked, uint32_t limit, uint32_t* engine, uint32_t preset) {
  if (asked < 0 || static_cast<uint32_t>(asked) > limit) return false;
  *engine = asked == 0 ? preset : static_cast<uint32_t>(asked);
  return true;
}

class Taker {
 public:
  Taker(const DAT_EP_ATTR& attributes, DAT_EP_PARAM_MASK mask,
        const verbs::DeviceAttributes& device)
      : attributes_(attributes), mask_(mask), device_(device) {}

  bool Sizes(core::EndpointAttributes* engine, AskedAttributes* asked) const {
    return (!Has(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE) ||
            TakeSize(attributes_.max_message_size, device_.max_message_bytes,
                     &engine->max_message_bytes)) &&
           (!Has(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE) ||
            TakeSize(attributes_.max_rdma_size, device_.max_message_bytes, &asked->max_rdma_size));
  }

  // srq_soft_hw is the initial value of the soft watermark that dat_ep_set_watermark changes.
  bool Watermark(AskedAttributes* asked) const {
    if (!Has(DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)) return true;
    // It counts receives of a shared queue.
    const uint32_t most =
        std::min(std::max(device_.max_requests_per_queue, device_.max_shared_receives),
                 AskedAttributes::kMaxSoftHigh);
    uint32_t limit = 0;
    if (attributes_.srq_soft_hw != DAT_HW_DEFAULT &&
        !TakeCount(attributes_.srq_soft_hw, most, &limit, 0)) {
      return false;
    }
    asked->soft_high = limit != 0 ? std::optional(limit) : std::nullopt;
    return true;
  }

  bool Counts(core::EndpointAttributes* engine) const {
    const auto preset = core::EndpointAttributes::DefaultOn(device_);
    const uint32_t requests = device_.max_requests_per_queue;
    const uint32_t segments = std::min<uint32_t>(device_.max_segments, kMaxSegments);
    return Count(DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, attributes_.max_recv_dtos, requests,
                 &engine->max_receives, preset.max_receives) &&
           Count(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, attributes_.max_request_dtos, requests,
                 &engine->max_sends, preset.max_sends) &&
           Count(DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, attributes_.max_recv_iov, segments,
                 &engine->max_receive_segments, preset.max_receive_segments) &&
           RequestSegments(segments, engine, preset.max_send_segments) &&
           Count(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, attributes_.max_rdma_read_in,
                 device_.max_reads_in, &engine->max_reads_in, 0) &&
           Count(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, attributes_.max_rdma_read_out,
                 device_.max_reads_out, &engine->max_reads_out, 0) &&
           RdmaSegments(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV, attributes_.max_rdma_read_iov,
                        segments, engine) &&
           RdmaSegments(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, attributes_.max_rdma_write_iov,
                        segments, engine);
  }

 private:
  bool Has(DAT_EP_PARAM_MASK field) const { return (mask_ & field) != 0; }
  bool Count(DAT_EP_PARAM_MASK field, DAT_COUNT asked, uint32_t limit, uint32_t* engine,
             uint32_t preset) const {
    return !Has(field) || TakeCount(asked, limit, engine, preset);
  }
  // Sends, writes and reads share a queue, so the largest of their three limits applies, also of
  // those that the mask does not name.
  bool RequestSegments(uint32_t limit, core::EndpointAttributes* engine, uint32_t preset) const {
    const bool all =
        Has(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV) && Has(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV);
    const uint32_t before = all ? 0 : engine->max_send_segments;
    if (!Count(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, attributes_.max_request_iov, limit,
               &engine->max_send_segments, preset)) {
      return false;
    }
    engine->max_send_segments = std::max(engine->max_send_segments, before);
    return true;
  }
  bool RdmaSegments(DAT_EP_PARAM_MASK field, DAT_COUNT asked, uint32_t limit,
                    core::EndpointAttributes* engine) const {
    uint32_t segments = 0;
    if (!Count(field, asked, limit, &segments, 0)) return false;
    engine->max_send_segments = std::max(engine->max_send_segments, segments);
    return true;
  }

  const DAT_EP_ATTR& attributes_;
  const DAT_EP_PARAM_MASK mask_;
  const verbs::DeviceAttributes& device_;
};

}  // namespace

DAT_RETURN ApplyAttributes(const DAT_EP_ATTR& attributes, DAT_EP_PARAM_MASK mask, unsigned argument,
                           const verbs::DeviceAttributes& device, core::EndpointAttributes* engine,
                           AskedAttributes* asked) {
  core::EndpointAttributes changed = *engine;
  AskedAttributes changed_asked = *asked;
  if ((mask & DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE) != 0 &&
      attributes.service_type != DAT_SERVICE_TYPE_RC) {
    return Failure(DAT_MODEL_NOT_SUPPORTED);
  }
  if ((mask & DAT_EP_FIELD_EP_ATTR_QOS) != 0 && attributes.qos != DAT_QOS_BEST_EFFORT) {
    return Failure(DAT_MODEL_NOT_SUPPORTED);
  }
  if ((mask & DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS) != 0) {
    const auto flags = static_cast<unsigned>(attributes.recv_completion_flags);
    const auto mode = ModeOf(flags, /*receives=*/true);
    if (!mode) return BadParameter(argument);
    changed.receive_mode = *mode;
    changed_asked.receive_flags = static_cast<uint8_t>(flags);
  }
  if ((mask & DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS) != 0) {
    const auto flags = static_cast<unsigned>(attributes.request_completion_flags);
    const auto mode = ModeOf(flags, /*receives=*/false);
    if (!mode) return BadParameter(argument);
    changed.request_mode = *mode;
    changed_asked.request_flags = static_cast<uint8_t>(flags);
  }
  const Taker taker(attributes, mask, device);
  if (!taker.Sizes(&changed, &changed_asked) || !taker.Watermark(&changed_asked) ||
      !taker.Counts(&changed)) {
    return BadParameter(argument);
  }
  *engine = changed;
  *asked = changed_asked;
  return DAT_SUCCESS;
}

void ShowAttributes(const core::EndpointAttributes& engine, const AskedAttributes& asked,
                    const verbs::DeviceAttributes& device, DAT_EP_ATTR* attributes) {
  auto or_default = [](uint32_t value, uint32_t preset) { return value != 0 ? value : preset; };
  *attributes = {};
  attributes->service_type = DAT_SERVICE_TYPE_RC;
  attributes->max_message_size = or_default(engine.max_message_bytes, device.max_message_bytes);
  attributes->max_rdma_size = or_default(asked.max_rdma_size, device.max_message_bytes);
  attributes->qos = DAT_QOS_BEST_EFFORT;
  attributes->recv_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(asked.receive_flags);
  attributes->request_completion_flags = static_cast<DAT_COMPLETION_FLAGS>(asked.request_flags);
  attributes->max_recv_dtos = static_cast<DAT_COUNT>(engine.max_receives);
  attributes->max_request_dtos = static_cast<DAT_COUNT>(engine.max_sends);
  attributes->max_recv_iov = static_cast<DAT_COUNT>(engine.max_receive_segments);
  attributes->max_request_iov = static_cast<DAT_COUNT>(engine.max_send_segments);
  attributes->max_rdma_read_in =
      static_cast<DAT_COUNT>(or_default(engine.max_reads_in, device.max_reads_in));
  attributes->max_rdma_read_out =
      static_cast<DAT_COUNT>(or_default(engine.max_reads_out, device.max_reads_out));
  attributes->srq_soft_hw =
      asked.soft_high ? static_cast<DAT_COUNT>(*asked.soft_high) : DAT_HW_DEFAULT;
  attributes->max_rdma_read_iov = attributes->max_request_iov;
  attributes->max_rdma_write_iov = attributes->max_request_iov;
}

}  // namespace viaduct::dat
