#include "tools/vipping/parameters.h"

#include <cstring>

namespace viaduct::vipping {
namespace {

constexpr uint8_t kMagic[] = {'v', 'i', 'p', 'p'};
constexpr uint8_t kVersion = 1;

constexpr const char* kTests[] = {"latency", "bandwidth"};
constexpr const char* kOperations[] = {"send", "write"};
constexpr const char* kCompletions[] = {"poll", "wait", "cq"};

void Put(uint32_t value, uint8_t* out) {
  for (int i = 0; i < 4; ++i) out[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

uint32_t Get(const uint8_t* bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | bytes[i];
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

std::array<uint8_t, kWireBytes> Encode(const Parameters& parameters) {
  std::array<uint8_t, kWireBytes> bytes = {};
  std::memcpy(bytes.data(), kMagic, sizeof kMagic);
  bytes[4] = kVersion;
  bytes[5] = static_cast<uint8_t>(parameters.completion);
  bytes[6] = static_cast<uint8_t>(parameters.operation);
  bytes[7] = static_cast<uint8_t>(parameters.test);
  Put(parameters.bytes, &bytes[8]);
  Put(parameters.depth, &bytes[12]);
  return bytes;
}

std::optional<Parameters> Decode(const uint8_t* bytes, size_t size) {
  if (size != kWireBytes || std::memcmp(bytes, kMagic, sizeof kMagic) != 0 ||
      bytes[4] != kVersion || bytes[5] > 2 || bytes[6] > 1 || bytes[7] > 1) {
    return std::nullopt;
  }
  Parameters parameters;
  parameters.completion = static_cast<Completion>(bytes[5]);
  parameters.operation = static_cast<Operation>(bytes[6]);
  parameters.test = static_cast<Test>(bytes[7]);
  parameters.bytes = Get(&bytes[8]);
  parameters.depth = Get(&bytes[12]);
  if (parameters.bytes > kMaxBytes || parameters.depth < 2 || parameters.depth > kMaxDepth ||
      (parameters.operation == Operation::kWrite && parameters.bytes == 0)) {
    return std::nullopt;
  }
  return parameters;
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

}  // namespace viaduct::vipping
