#include "tools/datping/parameters.h"

#include <cstring>

namespace viaduct::datping {
namespace {

constexpr uint8_t kMagic[] = {'d', 'a', 't', 'p'};
constexpr uint8_t kVersion = 1;

constexpr const char* kTests[] = {"latency", "bandwidth", "connect"};
constexpr const char* kOperations[] = {"send", "write", "read"};
constexpr const char* kCompletions[] = {"poll", "wait", "cno"};

template <typename Number>
void Put(Number value, uint8_t* out) {
  for (size_t i = 0; i < sizeof value; ++i) {
    out[i] = static_cast<uint8_t>(value >> (8 * (sizeof value - 1 - i)));
  }
}

template <typename Number>
Number Get(const uint8_t* bytes) {
  Number value = 0;
  for (size_t i = 0; i < sizeof value; ++i) value = static_cast<Number>(value << 8 | bytes[i]);
  return value;
}

template <typename Enum, size_t kCount>
bool ParseName(const char* const (&names)[kCount], const std::string& text, Enum* out) {
  for (size_t i = 0; i < kCount; ++i) {
    if (text == names[i]) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

}  // namespace

Wire Encode(const Parameters& parameters, const Place& place) {
  Wire bytes = {};
  std::memcpy(bytes.data(), kMagic, sizeof kMagic);
  bytes[4] = kVersion;
  bytes[5] = static_cast<uint8_t>(parameters.completion);
  bytes[6] = static_cast<uint8_t>(parameters.operation);
  bytes[7] = static_cast<uint8_t>(parameters.test);
  Put(parameters.bytes, &bytes[8]);
  Put(parameters.depth, &bytes[12]);
  Put(parameters.connections, &bytes[16]);
  Put(place.context, &bytes[20]);
  Put(place.address, &bytes[24]);
  return bytes;
}

// What comes behind, if the fabric pads private data, means nothing.
bool Decode(const void* data, size_t size, Parameters* parameters, Place* place) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  if (size < kWireBytes || std::memcmp(bytes, kMagic, sizeof kMagic) != 0 || bytes[4] != kVersion ||
      bytes[5] > 2 || bytes[6] > 2 || bytes[7] > 2) {
    return false;
  }
  parameters->completion = static_cast<Completion>(bytes[5]);
  parameters->operation = static_cast<Operation>(bytes[6]);
  parameters->test = static_cast<Test>(bytes[7]);
  parameters->bytes = Get<uint32_t>(&bytes[8]);
  parameters->depth = Get<uint32_t>(&bytes[12]);
  parameters->connections = Get<uint32_t>(&bytes[16]);
  place->context = Get<uint32_t>(&bytes[20]);
  place->address = Get<uint64_t>(&bytes[24]);
  return parameters->bytes <= kMaxBytes && parameters->depth >= 2 &&
         parameters->depth <= kMaxDepth && parameters->connections >= 1 &&
         parameters->connections <= kMaxConnections &&
         (parameters->operation != Operation::kWrite || parameters->bytes != 0);
}

const char* NameOf(Test test) { return kTests[static_cast<size_t>(test)]; }
const char* NameOf(Operation operation) { return kOperations[static_cast<size_t>(operation)]; }
const char* NameOf(Completion completion) { return kCompletions[static_cast<size_t>(completion)]; }

bool Parse(const std::string& text, Test* test) { return ParseName(kTests, text, test); }
bool Parse(const std::string& text, Operation* operation) {
  return ParseName(kOperations, text, operation);
}
bool Parse(const std::string& text, Completion* completion) {
  return ParseName(kCompletions, text, completion);
}

}  // namespace viaduct::datping
