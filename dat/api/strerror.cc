// The names of return values.
#include "dat/api/error_names.h"
#include "dat/api/face.h"

namespace viaduct::dat {

DAT_RETURN dat_strerror(DAT_RETURN value, const char** major_message, const char** minor_message) {
  if (major_message == nullptr) return BadParameter(2);
  const ErrorNames names = NamesOf(kVersion, value);
  // OFED's words: its dtest and dapltest print both strings whatever this returns.
  *major_message = names.type != nullptr ? names.type : "unknown error";
  // OFED's dat_strerror_extension, an inline function of its header, asks for the first one only.
  if (minor_message != nullptr) {
    *minor_message = names.subtype != nullptr ? names.subtype : "unknown minor error";
  }
  if (names.type == nullptr || names.subtype == nullptr) return BadParameter(1);
  return DAT_SUCCESS;
}

}  // namespace viaduct::dat
