// What one measurement is, as both ends must know it.
#ifndef VIADUCT_TOOLS_VIPPING_PARAMETERS_H_
#define VIADUCT_TOOLS_VIPPING_PARAMETERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace viaduct::vipping {

enum class Test : uint8_t { kLatency, kBandwidth };
enum class Operation : uint8_t { kSend, kWrite };
enum class Completion : uint8_t { kPoll, kWait, kCq };

struct Parameters {
  Test test = Test::kLatency;
  Operation operation = Operation::kSend;
  Completion completion = Completion::kPoll;
  uint32_t bytes = 8;
  uint32_t depth = 64;  // descriptors posted at a time, of either queue

  // A write that the other end spins on in its memory; every other message takes a receive there.
  bool silent_write() const {
    return test == Test::kLatency && operation == Operation::kWrite &&
           completion == Completion::kPoll;
  }
};

inline constexpr uint32_t kMaxDepth = 1024;
inline constexpr uint32_t kMaxBytes = 16u << 20;

// The parameters travel as the discriminator of the requester, which VipConnectWait hands to the
// server unchanged: "vipp", a version, completion, operation, test, then bytes and depth, most
// significant byte first.
inline constexpr size_t kWireBytes = 16;
std::array<uint8_t, kWireBytes> Encode(const Parameters& parameters);
// Null: not a client of this version, or beyond the limits.
std::optional<Parameters> Decode(const uint8_t* bytes, size_t size);

const char* NameOf(Test test);
const char* NameOf(Operation operation);
const char* NameOf(Completion completion);
// By those names.
bool Parse(const std::string& text, Test* test);
bool Parse(const std::string& text, Operation* operation);
bool Parse(const std::string& text, Completion* completion);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_PARAMETERS_H_
