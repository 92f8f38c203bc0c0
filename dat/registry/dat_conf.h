// dat.conf: which adapters there are and which library serves each of them. dat.conf(5).
//
// A line is an entry of eight words: name, interface version (u2.0), threadsafe|nonthreadsafe,
// default|nondefault, library, library's version (id.major.minor), parameters of the adapter,
// parameters of the platform. Whitespace separates words; a word that begins with a double quote
// ends with the next one, and a backslash in it takes the next character as it is; "#" where a
// word would begin starts a comment.
#ifndef VIADUCT_DAT_REGISTRY_DAT_CONF_H_
#define VIADUCT_DAT_REGISTRY_DAT_CONF_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::registry {

// An ia_name and its terminating zero fit into DAT_NAME_MAX_LENGTH.
inline constexpr size_t kMaxNameLength = 255;

// One adapter in one version of the interface.
struct Entry {
  std::string name;
  uint32_t major = 0;
  uint32_t minor = 0;
  bool thread_safe = false;
  std::string library;          // empty: built in
  std::string library_version;  // as it is written
  std::string parameters;       // of the adapter, for the library
  std::string platform;         // parameters of the platform; not used
  int line = 0;                 // of the file; 0: built in
};

// Why a line is not an entry.
struct BadLine {
  int line = 0;  // from 1
  std::string reason;
};

struct DatConf {
  std::vector<Entry> entries;  // in the file's order; only default ones for user programs (u)
  std::vector<BadLine> bad_lines;
};

// Accepts any bytes. A bad line is left out and does not affect any other.
DatConf ParseDatConf(std::string_view text);

// The entry as a line of dat.conf, without a line end: ParseDatConf reads the same entry from it.
std::string ToLine(const Entry& entry);

}  // namespace viaduct::registry

#endif  // VIADUCT_DAT_REGISTRY_DAT_CONF_H_
