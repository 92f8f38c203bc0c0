// The parameters of one measurement, which both ends must know.
#ifndef VIADUCT_TOOLS_VIPPING_PARAMETERS_H_
#define VIADUCT_TOOLS_VIPPING_PARAMETERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "tools/ping/parameters.h"

namespace viaduct::vipping {

enum class Test : uint8_t { kLatency, kBandwidth };
constexpr auto NamesOf(Test) { return std::to_array({"latency", "bandwidth"}); }
enum class Operation : uint8_t { kSend, kWrite };
constexpr auto NamesOf(Operation) { return std::to_array({"send", "write"}); }
enum class Completion : uint8_t { kPoll, kWait, kCq, kNotify };
constexpr auto NamesOf(Completion) { return std::to_array({"poll", "wait", "cq", "notify"}); }

using ping::kMaxBytes;
using ping::kMaxDepth;
using ping::NameOf;
using Parameters = ping::Parameters<Test, Operation, Completion>;

// The parameters travel as the discriminator of the requester, which VipConnectWait hands to the
// server unchanged: "vipp", a version, completion, operation, test, then bytes and depth, most
// significant byte first.
inline constexpr size_t kWireBytes = 16;
std::array<uint8_t, kWireBytes> Encode(const Parameters& parameters);
// Null: not a client of this version, or beyond the limits.
std::optional<Parameters> Decode(const uint8_t* bytes, size_t size);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_PARAMETERS_H_
