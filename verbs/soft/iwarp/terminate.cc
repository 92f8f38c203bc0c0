#include "verbs/soft/iwarp/terminate.h"

#include <algorithm>

#include "verbs/base/byte_order.h"

namespace viaduct::verbs::iwarp {
namespace {

constexpr uint8_t kLayerRdmap = 0;
constexpr uint8_t kLayerDdp = 1;
constexpr uint8_t kLayerLlp = 2;
constexpr uint8_t kRdmapProtection = 1;
constexpr uint8_t kRdmapOperation = 2;

bool ShowsSegment(const WireError& error) {
  return error.layer == kLayerDdp || (error.layer == kLayerRdmap && error.type != 0);
}

WireError Split(uint8_t high_first, uint8_t code) {
  return {static_cast<uint8_t>(high_first >> 4), static_cast<uint8_t>(high_first & 15), code};
}

WireError SplitReversed(uint8_t low_first, uint8_t code) {
  return {static_cast<uint8_t>(low_first & 15), static_cast<uint8_t>(low_first >> 4), code};
}

// Without flags the order of the nibbles shows only in their values.
WireError GuessOrder(uint8_t control, uint8_t code, bool started) {
  switch (control) {
    case 0x02:
    case 0x20: {
      const bool llp = (code >= 1 && code <= 4) || (code >= 5 && code <= 7 && !started);
      return {llp ? kLayerLlp : kLayerRdmap, llp ? uint8_t{0} : kRdmapOperation, code};
    }
    case 0x21:  // DDP, untagged, reversed
      return SplitReversed(control, code);
    default:
      return Split(control, code);
  }
}

}  // namespace

size_t EncodeTerminate(const WireError& error, std::span<const uint8_t> ulpdu,
                       std::span<uint8_t, kMaxTerminateSize> out) {
  uint8_t* const p = out.data();
  p[kTerminateLayerOffset] = static_cast<uint8_t>(error.layer << 4 | error.type);
  p[kTerminateCodeOffset] = error.code;
  p[kTerminateFlagsOffset] = 0;
  p[kTerminateFlagsOffset + 1] = 0;
  size_t size = kTerminateControlSize;
  const std::span<const uint8_t> header = HeaderBytes(ulpdu);
  if (!ShowsSegment(error) || header.empty()) return size;

  p[kTerminateFlagsOffset] = kTerminateHasLength | kTerminateHasDdp;
  StoreBig16(p + size, static_cast<uint16_t>(ulpdu.size()));
  size += kTerminateLengthSize;
  std::copy(header.begin(), header.end(), p + size);
  size += header.size();

  const bool is_read_request =
      header.size() == kDdpUntaggedSize &&
      (header[1] & kRdmapOpcodeMask) == static_cast<uint8_t>(RdmapOpcode::kReadRequest) &&
      ulpdu.size() >= kDdpUntaggedSize + kReadRequestSize;
  if (error.layer == kLayerRdmap && error.type == kRdmapProtection && is_read_request) {
    p[kTerminateFlagsOffset] |= kTerminateHasRdmap;
    const auto request = ulpdu.subspan(kDdpUntaggedSize, kReadRequestSize);
    std::copy(request.begin(), request.end(), p + size);
    size += request.size();
  }
  return size;
}

std::optional<Terminate> DecodeTerminate(std::span<const uint8_t> payload, bool started) {
  if (payload.size() < kTerminateControlSize) return std::nullopt;
  const uint8_t control = payload[kTerminateLayerOffset];
  const uint8_t code = payload[kTerminateCodeOffset];
  const uint8_t flags = payload[kTerminateFlagsOffset];
  Terminate terminate;
  bool has_ddp = false;
  if (flags & (kTerminateHasLength | kTerminateHasDdp | kTerminateHasRdmap)) {
    terminate.error = Split(control, code);
    has_ddp = flags & kTerminateHasDdp;
  } else if (flags & (kSiwTerminateHasLength | kSiwTerminateHasDdp | kSiwTerminateHasRdmap)) {
    terminate.error = SplitReversed(control, code);
    has_ddp = flags & kSiwTerminateHasDdp;
  } else {
    terminate.error = GuessOrder(control, code, started);
  }

  // The attached length is ignored: siw counts the payload only.
  std::span<const uint8_t> rest = payload.subspan(kTerminateControlSize);
  if (!has_ddp || rest.size() < kTerminateLengthSize) return terminate;
  rest = rest.subspan(kTerminateLengthSize);
  DdpHeader header;
  if (!ParseDdpHeader(rest, &header).has_value()) terminate.segment = header;
  return terminate;
}

}  // namespace viaduct::verbs::iwarp
