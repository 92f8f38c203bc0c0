#include "tools/datping/parameters.h"

namespace viaduct::datping {
namespace {

constexpr ping::Protocol kProtocol = {'d', 'a', 't', 'p', 1};

}  // namespace

Wire Encode(const Parameters& parameters, const Place& place) {
  Wire bytes = {};
  ping::EncodeHead(kProtocol, parameters, bytes.data());
  ping::Put(parameters.connections, &bytes[16]);
  ping::Put(place.context, &bytes[20]);
  ping::Put(place.address, &bytes[24]);
  return bytes;
}

// Further bytes, by which the fabric may pad private data, mean nothing.
bool Decode(const void* data, size_t size, Parameters* parameters, Place* place) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (size < kWireBytes || !ping::DecodeHead(kProtocol, bytes, size, parameters)) return false;
  parameters->connections = ping::Get<uint32_t>(&bytes[16]);
  place->context = ping::Get<uint32_t>(&bytes[20]);
  place->address = ping::Get<uint64_t>(&bytes[24]);
  return parameters->connections >= 1 && parameters->connections <= kMaxConnections;
}

}  // namespace viaduct::datping
