// The names of return values.
#include "dat/api/error_names.h"
#include "dat/api/face.h"

namespace viaduct::dat {

DAT_RETURN dat_strerror(DAT_RETURN value, const char** major_message, const char** minor_message) {
  if (major_message == nullptr) return BadParameter(2);
  const std::optional<ErrorNames> names = NamesOf(kVersion, value);
  if (!names) return BadParameter(1);
  *major_message = names->type;
  // OFED's dat_strerror_extension, an inline function of its header, asks for the first one only.
  if (minor_message != nullptr) *minor_message = names->subtype;
  return DAT_SUCCESS;
}

}  // namespace viaduct::dat
