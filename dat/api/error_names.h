// The names of return values: what dat_strerror says. Knows the numbers of both versions of the
// interface and includes the headers of neither.
#ifndef VIADUCT_DAT_API_ERROR_NAMES_H_
#define VIADUCT_DAT_API_ERROR_NAMES_H_

#include <cstdint>
#include <optional>

namespace viaduct::dat {

enum class Version { k12, k20 };

// Enumerators of the version's dat_error.h, prefix included; static strings.
struct ErrorNames {
  const char* type;
  const char* subtype;  // "" if the value has none
};

// Nothing for a value whose type or subtype the version does not define. The class bits are not
// looked at: DAT_INVALID_STATE alone and a returned error of that type have one name.
std::optional<ErrorNames> NamesOf(Version version, uint32_t value);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ERROR_NAMES_H_
