// The names of return values: what dat_strerror says. Knows the numbers of both versions of the
// interface and includes the headers of neither.
#ifndef VIADUCT_DAT_API_ERROR_NAMES_H_
#define VIADUCT_DAT_API_ERROR_NAMES_H_

#include <cstdint>

namespace viaduct::dat {

enum class Version { k12, k20 };

// Names of enumerators in the version's dat_error.h, prefix included. The strings are static.
struct ErrorNames {
  const char* type;     // null if the version does not define it
  const char* subtype;  // the same; "" if the value has none
};

// The class bits are ignored: DAT_INVALID_STATE alone and a returned error of that type have the
// same name.
ErrorNames NamesOf(Version version, uint32_t value);

}  // namespace viaduct::dat

#endif  // VIADUCT_DAT_API_ERROR_NAMES_H_
