// The parameters of a measurement that both programs have: what the command line chooses by name,
// and the bytes in which a client sends them to its server.
#ifndef VIADUCT_TOOLS_PING_PARAMETERS_H_
#define VIADUCT_TOOLS_PING_PARAMETERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace viaduct::ping {

// ---- names
// Each enum that has names defines next to it those of its values 0, 1, ..., in that order:
//   constexpr auto NamesOf(ThatEnum) { return std::to_array({"one", "two"}); }
template <typename Enum>
const char* NameOf(Enum value) {
  return NamesOf(value)[static_cast<size_t>(value)];
}

// False: no value has that name.
template <typename Enum>
bool Parse(const std::string& text, Enum* out) {
  const auto names = NamesOf(Enum());
  for (size_t i = 0; i < names.size(); ++i) {
    if (text == names[i]) {
      *out = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

// ---- parameters
inline constexpr uint32_t kMaxDepth = 1024;
inline constexpr uint32_t kMaxBytes = 16u << 20;

// The enums are the program's. They begin with kLatency and kBandwidth; kSend and kWrite; kPoll.
template <typename TestEnum, typename OperationEnum, typename CompletionEnum>
struct Parameters {
  TestEnum test = TestEnum::kLatency;
  OperationEnum operation = OperationEnum::kSend;
  CompletionEnum completion = CompletionEnum::kPoll;
  uint32_t bytes = 8;
  uint32_t depth = 64;  // messages, and receives, posted at a time

  // Whether messages are writes for which the other end spins on its memory; every other message
  // takes a receive there.
  bool silent_write() const {
    return test == TestEnum::kLatency && operation == OperationEnum::kWrite &&
           completion == CompletionEnum::kPoll;
  }
  // The value that silent write number `n` leaves in its last byte; never that of the write before.
  static unsigned char Mark(uint64_t n) { return static_cast<unsigned char>(n % 255 + 1); }
};

// ---- their bytes
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

// Four letters and a version; then completion, operation, test, bytes and depth. Most significant
// byte first.
inline constexpr size_t kHeadBytes = 16;
using Protocol = std::array<uint8_t, 5>;

template <typename Parameters>
void EncodeHead(const Protocol& protocol, const Parameters& parameters, uint8_t* out) {
  std::memcpy(out, protocol.data(), protocol.size());
  out[5] = static_cast<uint8_t>(parameters.completion);
  out[6] = static_cast<uint8_t>(parameters.operation);
  out[7] = static_cast<uint8_t>(parameters.test);
  Put(parameters.bytes, out + 8);
  Put(parameters.depth, out + 12);
}

// False: another protocol or version, or beyond the limits.
template <typename Parameters>
bool DecodeHead(const Protocol& protocol, const uint8_t* bytes, size_t size,
                Parameters* parameters) {
  if (size < kHeadBytes || std::memcmp(bytes, protocol.data(), protocol.size()) != 0) return false;
  const auto choose = [](uint8_t value, auto* out) {
    using Enum = std::decay_t<decltype(*out)>;
    *out = static_cast<Enum>(value);
    return value < NamesOf(Enum()).size();
  };
  if (!choose(bytes[5], &parameters->completion) || !choose(bytes[6], &parameters->operation) ||
      !choose(bytes[7], &parameters->test)) {
    return false;
  }
  parameters->bytes = Get<uint32_t>(bytes + 8);
  parameters->depth = Get<uint32_t>(bytes + 12);
  const bool is_write = parameters->operation == decltype(parameters->operation)::kWrite;
  return parameters->bytes <= kMaxBytes && parameters->depth >= 2 &&
         parameters->depth <= kMaxDepth && !(is_write && parameters->bytes == 0);
}

}  // namespace viaduct::ping

#endif  // VIADUCT_TOOLS_PING_PARAMETERS_H_
