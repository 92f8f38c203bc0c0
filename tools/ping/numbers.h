// Numbers on a command line.
#ifndef VIADUCT_TOOLS_PING_NUMBERS_H_
#define VIADUCT_TOOLS_PING_NUMBERS_H_

#include <cstdint>

namespace viaduct::ping {

// A decimal number from `least` to `most`; K or M after it multiplies by 1024 or its square.
// False, and `*out` untouched: `text` is no such number.
bool ParseCount(const char* text, uint64_t least, uint64_t most, uint64_t* out);

// The same for a number of seconds above 0 and up to a million.
bool ParseSeconds(const char* text, double* out);

}  // namespace viaduct::ping

#endif  // VIADUCT_TOOLS_PING_NUMBERS_H_
