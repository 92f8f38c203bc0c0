// Fuzzes the stream after the startup frames, up to where a connection's state begins. The first
// byte chooses: bit 0 checks the CRC, bit 1 is unused, bit 2 repairs every CRC first (so that the
// headers are reached), the rest is the size of the pieces. However the stream is cut, the same
// segments and the same error must come out.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "verbs/base/byte_order.h"
#include "verbs/soft/iwarp/crc32c.h"
#include "verbs/soft/iwarp/ddp.h"
#include "verbs/soft/iwarp/fpdu_reader.h"
#include "verbs/soft/iwarp/inbound_sequence.h"
#include "verbs/soft/iwarp/terminate.h"

namespace {

using namespace viaduct::verbs::iwarp;
using viaduct::verbs::LoadBig16;
using viaduct::verbs::StoreLittle32;

void Require(bool condition) {
  if (!condition) std::abort();
}

struct Trace {
  std::vector<uint32_t> segments;  // a checksum of each
  std::optional<WireError> error;
};

class Receiver {
 public:
  explicit Receiver(bool check_crc) { reader_.set_check_crc(check_crc); }

  // Returns false after an error.
  bool Feed(std::span<const uint8_t> bytes) {
    std::span<const uint8_t> ulpdu;
    for (;;) {
      switch (reader_.Next(&bytes, &ulpdu)) {
        case FpduReader::Result::kNeedMore:
          Require(bytes.empty());
          Require(reader_.Missing().size() < kMaxFpduSize);
          return true;
        case FpduReader::Result::kError:
          trace_.error = reader_.error();
          return false;
        case FpduReader::Result::kFpdu:
          if (!Take(ulpdu)) return false;
      }
    }
  }

  const Trace& trace() const { return trace_; }

 private:
  bool Take(std::span<const uint8_t> ulpdu) {
    Require(ulpdu.size() >= kDdpTaggedSize && ulpdu.size() <= kMaxUlpduLength);
    trace_.segments.push_back(ComputeCrc32c(ulpdu));
    DdpHeader header;
    trace_.error = ParseDdpHeader(ulpdu, &header);
    if (!trace_.error.has_value()) {
      trace_.error = sequence_.Accept(header, ulpdu.size() - header.size());
    }
    if (trace_.error.has_value()) {
      std::array<uint8_t, kMaxTerminateSize> terminate;
      const size_t size = EncodeTerminate(*trace_.error, ulpdu, terminate);
      const auto back =
          DecodeTerminate(std::span<const uint8_t>(terminate).first(size), /*started=*/true);
      Require(back.has_value() && back->error == *trace_.error);
      return false;
    }
    if (header.opcode == RdmapOpcode::kTerminate) {
      (void)DecodeTerminate(ulpdu.subspan(header.size()), trace_.segments.size() > 1);
      return false;
    }
    return true;
  }

  FpduReader reader_;
  InboundSequence sequence_;
  Trace trace_;
};

void RepairCrcs(std::vector<uint8_t>* stream) {
  const std::span<uint8_t> all(*stream);
  for (size_t at = 0; at + kFpduLengthSize <= all.size();) {
    const size_t size = FpduSize(LoadBig16(&all[at]));
    if (at + size > all.size()) return;
    const size_t covered = size - kFpduCrcSize;
    StoreLittle32(&all[at + covered], ComputeCrc32c(all.subspan(at, covered)));
    at += size;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const bool check_crc = data[0] & 1;
  const size_t piece = 1 + (data[0] >> 3);
  std::vector<uint8_t> stream(data + 1, data + size);
  if (data[0] & 4) RepairCrcs(&stream);
  const std::span<const uint8_t> all(stream);

  Receiver whole(check_crc);
  whole.Feed(all);
  Receiver parts(check_crc);
  for (size_t at = 0; at < all.size(); at += piece) {
    if (!parts.Feed(all.subspan(at, std::min(piece, all.size() - at)))) break;
  }
  Require(whole.trace().segments == parts.trace().segments);
  Require(whole.trace().error == parts.trace().error);
  return 0;
}
