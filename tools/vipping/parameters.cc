#include "tools/vipping/parameters.h"

namespace viaduct::vipping {
namespace {

constexpr ping::Protocol kProtocol = {'v', 'i', 'p', 'p', 1};

}  // namespace

std::array<uint8_t, kWireBytes> Encode(const Parameters& parameters) {
  std::array<uint8_t, kWireBytes> bytes = {};
  ping::EncodeHead(kProtocol, parameters, bytes.data());
  return bytes;
}

std::optional<Parameters> Decode(const uint8_t* bytes, size_t size) {
  Parameters parameters;
  if (size != kWireBytes || !ping::DecodeHead(kProtocol, bytes, size, &parameters)) {
    return std::nullopt;
  }
  return parameters;
}

}  // namespace viaduct::vipping
