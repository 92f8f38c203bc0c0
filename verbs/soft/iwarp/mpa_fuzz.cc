// Fuzzes MPA startup frames: the first byte chooses the role (bit 0) and the size of the pieces,
// the rest is the stream. However the stream is cut, the parser must find the same. What it accepts
// as a frame must encode to the same bytes, if it is a frame that we would send.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "verbs/soft/iwarp/mpa.h"

namespace {

using viaduct::verbs::iwarp::MpaFrame;
using viaduct::verbs::iwarp::MpaKind;
using viaduct::verbs::iwarp::MpaParser;

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckEncoding(const MpaFrame& frame, std::span<const uint8_t> bytes) {
  using namespace viaduct::verbs::iwarp;
  const bool enhanced = frame.depths.has_value();
  if (frame.private_data.size() > MpaMaxPrivateData(frame.kind, enhanced)) return;
  if (enhanced && frame.kind == MpaKind::kRequest &&
      (frame.depths->ird > kMpaMaxDepth || frame.depths->ord > kMpaMaxDepth)) {
    return;
  }
  std::array<uint8_t, kMpaMaxFrameSize> out;
  const size_t size = EncodeMpa(frame, out);
  Require(size == bytes.size());
  for (size_t i = 0; i < size; ++i) {
    if (i != kMpaFlagsOffset) Require(out[i] == bytes[i]);  // reserved bits are not kept
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const MpaKind kind = data[0] & 1 ? MpaKind::kReply : MpaKind::kRequest;
  const size_t piece = 1 + (data[0] >> 1);
  const std::span<const uint8_t> stream(data + 1, size - 1);

  MpaParser whole(kind);
  const size_t taken = whole.Feed(stream);
  Require(taken <= stream.size());

  MpaParser parts(kind);
  size_t fed = 0;
  while (fed < stream.size()) {
    const size_t step = std::min(piece, stream.size() - fed);
    const size_t took = parts.Feed(stream.subspan(fed, step));
    fed += took;
    if (took < step || parts.state() != MpaParser::State::kIncomplete) break;
  }
  Require(parts.state() == whole.state() && parts.error() == whole.error());
  if (whole.state() == MpaParser::State::kComplete) {
    Require(fed == taken);
    Require(std::ranges::equal(parts.frame().private_data, whole.frame().private_data));
    CheckEncoding(whole.frame(), stream.first(taken));
  }
  return 0;
}
