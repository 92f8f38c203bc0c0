// Every header or trailer that parses is, byte for byte, what this build would have written.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "dat/core/connection_header.h"

namespace {

using viaduct::core::ConnectionHeader;
using viaduct::core::ServiceName;

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::Span<const uint8_t> input(data, size);
  size_t length = 0;
  const std::optional<ConnectionHeader> header = viaduct::core::ParseHeader(input, &length);
  if (header) {
    Require(length <= size &&
            length <= viaduct::core::kMaxHeaderBytes + viaduct::core::kConfirmationWordBytes);
    const std::vector<uint8_t> again = viaduct::core::EncodeHeader(*header);
    Require(absl::MakeConstSpan(again) == input.first(length));
  }
  const std::optional<ServiceName> name = viaduct::core::ParseTrailer(input);
  if (name) {
    const std::vector<uint8_t> again = viaduct::core::EncodeTrailer(*name);
    Require(absl::MakeConstSpan(again) == input.last(viaduct::core::kTrailerBytes));
  }
  return 0;
}
