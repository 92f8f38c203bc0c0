// Frames in front of messages, for devices without immediate data: FORMAT.md.
#ifndef VIADUCT_VERBS_FRAME_FORMAT_H_
#define VIADUCT_VERBS_FRAME_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbs/base/byte_order.h"

namespace viaduct::verbs {

inline constexpr size_t kFrameBytes = 12;

enum class FrameKind : uint32_t { kSend = 0, kSendWithImmediate = 1, kWrite = 2 };

struct Frame {
  FrameKind kind = FrameKind::kSend;
  uint32_t immediate = 0;
  uint32_t length = 0;  // of the write

  bool has_immediate() const { return kind != FrameKind::kSend; }
};

inline void EncodeFrame(const Frame& frame, std::span<uint8_t, kFrameBytes> out) {
  StoreBig32(&out[0], static_cast<uint32_t>(frame.kind));
  StoreBig32(&out[4], frame.immediate);
  StoreBig32(&out[8], frame.length);
}

// Null if EncodeFrame never makes such a frame, or not one followed by `behind` bytes of message.
inline std::optional<Frame> ParseFrame(std::span<const uint8_t, kFrameBytes> data,
                                       uint64_t behind) {
  const uint32_t kind = LoadBig32(&data[0]);
  const Frame frame = {static_cast<FrameKind>(kind), LoadBig32(&data[4]), LoadBig32(&data[8])};
  switch (frame.kind) {
    case FrameKind::kSend:
      return frame.immediate == 0 && frame.length == 0 ? std::optional(frame) : std::nullopt;
    case FrameKind::kSendWithImmediate:
      return frame.length == 0 ? std::optional(frame) : std::nullopt;
    case FrameKind::kWrite:
      return behind == 0 ? std::optional(frame) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_FRAME_FORMAT_H_
