#include "verbs/soft/iwarp/fpdu_reader.h"

#include <algorithm>
#include <cstring>

#include "verbs/base/byte_order.h"
#include "verbs/soft/iwarp/crc32c.h"
#include "verbs/soft/iwarp/ddp_format.h"

namespace viaduct::verbs::iwarp {

FpduReader::Result FpduReader::Next(std::span<const uint8_t>* input,
                                    std::span<const uint8_t>* ulpdu) {
  if (error_.has_value()) return Result::kError;
  if (handed_out_) {
    buffer_.reset();
    have_ = 0;
    handed_out_ = false;
  }
  if (have_ == 0 && input->size() >= kFpduLengthSize) {
    const size_t length = LoadBig16(input->data());
    if (length < kDdpTaggedSize) return Fail(kBadFraming);
    const size_t size = FpduSize(length);
    if (input->size() >= size) {
      const uint8_t* const fpdu = input->data();
      *input = input->subspan(size);
      return HandOut(fpdu, ulpdu);
    }
  }
  while (have_ < kFpduLengthSize) {
    if (input->empty()) return Result::kNeedMore;
    length_[have_++] = input->front();
    *input = input->subspan(1);
  }
  if (buffer_ == nullptr && !StartGathering()) return Fail(kBadFraming);
  const size_t step = std::min(need_ - have_, input->size());
  std::copy_n(input->data(), step, buffer_.get() + have_);
  have_ += step;
  *input = input->subspan(step);
  if (have_ < need_) return Result::kNeedMore;
  handed_out_ = true;
  return HandOut(buffer_.get(), ulpdu);
}

std::span<uint8_t> FpduReader::Missing() {
  if (buffer_ == nullptr || handed_out_) return {};
  return {buffer_.get() + have_, need_ - have_};
}

FpduReader::Result FpduReader::Fail(const WireError& error) {
  error_ = error;
  buffer_.reset();
  return Result::kError;
}

FpduReader::Result FpduReader::HandOut(const uint8_t* fpdu, std::span<const uint8_t>* ulpdu) {
  const size_t length = LoadBig16(fpdu);
  if (check_crc_) {
    const size_t covered = FpduSize(length) - kFpduCrcSize;
    if (ComputeCrc32c({fpdu, covered}) != LoadLittle32(fpdu + covered)) return Fail(kCrcMismatch);
  }
  *ulpdu = {fpdu + kFpduLengthSize, length};
  return Result::kFpdu;
}

bool FpduReader::StartGathering() {
  const size_t length = LoadBig16(length_);
  if (length < kDdpTaggedSize) return false;
  need_ = FpduSize(length);
  buffer_ = std::make_unique_for_overwrite<uint8_t[]>(need_);
  std::memcpy(buffer_.get(), length_, kFpduLengthSize);
  return true;
}

}  // namespace viaduct::verbs::iwarp
