#include "verbs/soft/iwarp/mpa.h"

#include <algorithm>
#include <cstring>

#include "absl/base/macros.h"
#include "verbs/base/byte_order.h"

namespace viaduct::verbs::iwarp {
namespace {

const char* KeyOf(MpaKind kind) {
  return kind == MpaKind::kRequest ? kMpaRequestKey : kMpaReplyKey;
}

void StoreDepths(uint8_t* out, MpaKind kind, const MpaDepths& depths) {
  const uint16_t most = kind == MpaKind::kReply ? kMpaDepthUnspecified : kMpaMaxDepth;
  ABSL_HARDENING_ASSERT(depths.ird <= most && depths.ord <= most);
  StoreBig16(out, static_cast<uint16_t>(depths.ird | (depths.peer_to_peer ? kMpaPeerToPeer : 0) |
                                        (depths.rtr_send ? kMpaRtrSend : 0)));
  StoreBig16(out + 2, static_cast<uint16_t>(depths.ord | (depths.rtr_write ? kMpaRtrWrite : 0) |
                                            (depths.rtr_read ? kMpaRtrRead : 0)));
}

MpaDepths LoadDepths(const uint8_t* in) {
  const uint16_t first = LoadBig16(in);
  const uint16_t second = LoadBig16(in + 2);
  MpaDepths depths;
  depths.peer_to_peer = first & kMpaPeerToPeer;
  depths.rtr_send = first & kMpaRtrSend;
  depths.ird = first & kMpaDepthMask;
  depths.rtr_write = second & kMpaRtrWrite;
  depths.rtr_read = second & kMpaRtrRead;
  depths.ord = second & kMpaDepthMask;
  return depths;
}

}  // namespace

size_t EncodeMpa(const MpaFrame& frame, std::span<uint8_t, kMpaMaxFrameSize> out) {
  const bool enhanced = frame.depths.has_value();
  ABSL_HARDENING_ASSERT(frame.revision <= kMpaMaxRevision);
  ABSL_HARDENING_ASSERT(!enhanced || frame.revision >= kMpaEnhancedRevision);
  ABSL_HARDENING_ASSERT(!frame.reject || frame.kind == MpaKind::kReply);
  ABSL_HARDENING_ASSERT(frame.private_data.size() <= MpaMaxPrivateData(frame.kind, enhanced));

  uint8_t* const p = out.data();
  std::memcpy(p, KeyOf(frame.kind), kMpaKeySize);
  p[kMpaFlagsOffset] =
      static_cast<uint8_t>((frame.markers ? kMpaFlagMarkers : 0) | (frame.crc ? kMpaFlagCrc : 0) |
                           (frame.reject ? kMpaFlagReject : 0) | (enhanced ? kMpaFlagEnhanced : 0));
  p[kMpaRevisionOffset] = frame.revision;
  size_t size = kMpaHeaderSize;
  if (enhanced) {
    StoreDepths(p + size, frame.kind, *frame.depths);
    size += kMpaDepthsSize;
  }
  std::copy(frame.private_data.begin(), frame.private_data.end(), p + size);
  size += frame.private_data.size();
  StoreBig16(p + kMpaPrivateLengthOffset, static_cast<uint16_t>(size - kMpaHeaderSize));
  return size;
}

size_t MpaParser::Feed(std::span<const uint8_t> bytes) {
  size_t taken = 0;
  while (state_ == State::kIncomplete && taken < bytes.size()) {
    const size_t from = have_;
    const size_t step = std::min(need_ - have_, bytes.size() - taken);
    std::memcpy(bytes_.data() + have_, bytes.data() + taken, step);
    have_ += step;
    taken += step;
    if (from < kMpaKeySize && !CheckKey(from)) break;
    if (have_ < need_) break;
    if (need_ == kMpaHeaderSize) ParseHeader();
    if (state_ == State::kIncomplete && have_ == need_) ParseBody();
  }
  return taken;
}

void MpaParser::Fail(Error error) {
  state_ = State::kFailed;
  error_ = error;
}

// The two keys differ in one byte, so that the other role is recognised at that byte.
bool MpaParser::CheckKey(size_t from) {
  const MpaKind other = expected_ == MpaKind::kRequest ? MpaKind::kReply : MpaKind::kRequest;
  for (size_t i = from; i < std::min(have_, kMpaKeySize); ++i) {
    const auto byte = static_cast<char>(bytes_[i]);
    if (byte == KeyOf(expected_)[i]) continue;
    Fail(byte == KeyOf(other)[i] ? Error::kWrongRole : Error::kBadKey);
    return false;
  }
  return true;
}

void MpaParser::ParseHeader() {
  const uint8_t flags = bytes_[kMpaFlagsOffset];
  const size_t length = LoadBig16(&bytes_[kMpaPrivateLengthOffset]);
  frame_.kind = expected_;
  frame_.revision = bytes_[kMpaRevisionOffset];
  frame_.markers = flags & kMpaFlagMarkers;
  frame_.crc = flags & kMpaFlagCrc;
  frame_.reject = expected_ == MpaKind::kReply && (flags & kMpaFlagReject);
  if (frame_.revision > kMpaMaxRevision) return Fail(Error::kBadRevision);
  if (length > kMpaMaxPrivateLength) return Fail(Error::kTooLong);
  // Before revision 2 the bit of S was reserved; it is ignored then.
  if (frame_.revision >= kMpaEnhancedRevision && (flags & kMpaFlagEnhanced)) {
    if (length < kMpaDepthsSize) return Fail(Error::kNoDepths);
    frame_.depths.emplace();
  }
  need_ = kMpaHeaderSize + length;
}

void MpaParser::ParseBody() {
  size_t at = kMpaHeaderSize;
  if (frame_.depths.has_value()) {
    frame_.depths = LoadDepths(&bytes_[at]);
    at += kMpaDepthsSize;
  }
  frame_.private_data = std::span<const uint8_t>(bytes_).subspan(at, need_ - at);
  state_ = State::kComplete;
}

}  // namespace viaduct::verbs::iwarp
