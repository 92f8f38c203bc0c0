#ifndef VIADUCT_VERBS_SOFT_IWARP_FPDU_READER_H_
#define VIADUCT_VERBS_SOFT_IWARP_FPDU_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "verbs/soft/iwarp/mpa_format.h"
#include "verbs/soft/iwarp/wire_error.h"

// Cuts the byte stream after the startup frames into FPDUs and checks their CRC. An FPDU that lies
// whole in the caller's bytes is handed out in place. One that continues beyond these bytes is
// gathered in a buffer of its size (at most kMaxFpduSize), which exists only until it is consumed.
// Nothing of an FPDU is handed out before its CRC has been verified. Not thread-safe.

namespace viaduct::verbs::iwarp {

class FpduReader {
 public:
  enum class Result : uint8_t { kFpdu, kNeedMore, kError };

  FpduReader() = default;
  FpduReader(const FpduReader&) = delete;
  FpduReader& operator=(const FpduReader&) = delete;

  // Whether the CRC was negotiated; if not, the field is ignored. Set before the first byte.
  void set_check_crc(bool check) { check_crc_ = check; }

  // Takes bytes from the front of *input. kFpdu: *ulpdu is the next segment, valid until the next
  // call and as long as the input's bytes are; call again with the rest. kNeedMore: *input is
  // empty. kError: error() tells why, and every later call returns kError too.
  Result Next(std::span<const uint8_t>* input, std::span<const uint8_t>* ulpdu);

  // Room for the rest of the FPDU that is being gathered, so that the bytes can be received there
  // without a copy; empty if none is being gathered. After putting bytes there, no more than fit,
  // call Filled() with their number and then Next(), with empty input if there is no other.
  std::span<uint8_t> Missing();
  void Filled(size_t size) { have_ += size; }

  // True between two FPDUs: where the stream may end.
  bool at_boundary() const { return have_ == 0 || handed_out_; }

  std::optional<WireError> error() const { return error_; }

 private:
  Result Fail(const WireError& error);
  Result HandOut(const uint8_t* fpdu, std::span<const uint8_t>* ulpdu);
  bool StartGathering();

  bool check_crc_ = false;
  bool handed_out_ = false;  // buffer_ holds the FPDU that the last call handed out
  uint8_t length_[kFpduLengthSize] = {};
  size_t have_ = 0;  // bytes of the FPDU being gathered; its first two lie in length_, too
  size_t need_ = 0;  // its size, once have_ >= 2
  std::unique_ptr<uint8_t[]> buffer_;
  std::optional<WireError> error_;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_FPDU_READER_H_
