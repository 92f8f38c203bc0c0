// The parameters of one measurement, which both ends must know.
#ifndef VIADUCT_TOOLS_DATPING_PARAMETERS_H_
#define VIADUCT_TOOLS_DATPING_PARAMETERS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "tools/ping/parameters.h"

namespace viaduct::datping {

enum class Test : uint8_t { kLatency, kBandwidth, kConnect };
constexpr auto NamesOf(Test) { return std::to_array({"latency", "bandwidth", "connect"}); }
enum class Operation : uint8_t { kSend, kWrite, kRead };
constexpr auto NamesOf(Operation) { return std::to_array({"send", "write", "read"}); }
enum class Completion : uint8_t { kPoll, kWait, kCno };
constexpr auto NamesOf(Completion) { return std::to_array({"poll", "wait", "cno"}); }

using ping::NameOf;
using ping::Parse;

inline constexpr uint32_t kMaxConnections = 256;
struct Parameters : ping::Parameters<Test, Operation, Completion> {
  uint32_t connections = 1;
};

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

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_PARAMETERS_H_
