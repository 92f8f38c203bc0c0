// What one measurement is, as both ends must know it.
#ifndef VIADUCT_TOOLS_DATPING_PARAMETERS_H_
#define VIADUCT_TOOLS_DATPING_PARAMETERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace viaduct::datping {

enum class Test : uint8_t { kLatency, kBandwidth, kConnect };
enum class Operation : uint8_t { kSend, kWrite, kRead };
enum class Completion : uint8_t { kPoll, kWait, kCno };

struct Parameters {
  Test test = Test::kLatency;
  Operation operation = Operation::kSend;
  Completion completion = Completion::kPoll;
  uint32_t bytes = 8;
  uint32_t depth = 64;  // requests, and receives, posted at a time
  uint32_t connections = 1;

  // A write that the other end spins on in its memory; without polling a message follows it.
  bool silent_write() const {
    return test == Test::kLatency && operation == Operation::kWrite &&
           completion == Completion::kPoll;
  }
};

inline constexpr uint32_t kMaxDepth = 1024;
inline constexpr uint32_t kMaxBytes = 16u << 20;
inline constexpr uint32_t kMaxConnections = 256;

// Where the other end may read and write.
struct Place {
  uint64_t address = 0;
  uint32_t context = 0;
};

// The private data of a client's request: "datp", a version, completion, operation, test, then
// bytes, depth, connections and place; of the server's accept, the same with its own place. Most
// significant byte first.
inline constexpr size_t kWireBytes = 32;
using Wire = std::array<uint8_t, kWireBytes>;
Wire Encode(const Parameters& parameters, const Place& place);
// False: not of this version, or beyond the limits.
bool Decode(const void* data, size_t size, Parameters* parameters, Place* place);

const char* NameOf(Test test);
const char* NameOf(Operation operation);
const char* NameOf(Completion completion);
// By those names.
bool Parse(const std::string& text, Test* test);
bool Parse(const std::string& text, Operation* operation);
bool Parse(const std::string& text, Completion* completion);

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_PARAMETERS_H_
