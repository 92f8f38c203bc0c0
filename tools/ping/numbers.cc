#include "tools/ping/numbers.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace viaduct::ping {

bool ParseCount(const char* text, uint64_t least, uint64_t most, uint64_t* out) {
  char* end = nullptr;
  errno = 0;
  uint64_t value = std::strtoull(text, &end, 10);
  // strtoull accepts white space and then a sign before the number.
  if (errno != 0 || *text < '0' || *text > '9') return false;
  uint64_t unit = 1;
  if (*end == 'K' || *end == 'k') unit = 1u << 10;
  if (*end == 'M' || *end == 'm') unit = 1u << 20;
  if (unit != 1) ++end;
  if (*end != '\0' || value > most / unit) return false;
  value *= unit;
  if (value < least) return false;
  *out = value;
  return true;
}

bool ParseSeconds(const char* text, double* out) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0) || value > 1e6) return false;
  if (text[std::strspn(text, "0123456789.eE+-")] != '\0') return false;  // white space, hexadecimal
  *out = value;
  return true;
}

}  // namespace viaduct::ping
