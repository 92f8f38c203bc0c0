#include <dat2/udat.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "dat/api/error_names.h"
#include "gtest/gtest.h"

namespace viaduct::dat {
namespace {

struct Case {
  const char* name;
  uint32_t value;
};

// clang-format off
#define TYPE(enumerator) {#enumerator, enumerator},
#define SUBTYPE(enumerator)
constexpr Case kTypes[] = {
#include "dat/api/error_names_cases.inc"
TYPE(DAT_RESERVED_LMR)
TYPE(DAT_PORT_IN_USE)
TYPE(DAT_COMM_NOT_SUPPORTED)
TYPE(DAT_EXTENSION_BASE)
};
#undef TYPE
#undef SUBTYPE

#define TYPE(enumerator)
#define SUBTYPE(enumerator) {#enumerator, enumerator},
constexpr Case kSubtypes[] = {
#include "dat/api/error_names_cases.inc"
SUBTYPE(DAT_INVALID_HANDLE_CSP)
SUBTYPE(DAT_INVALID_STATE_SRQ_SHUTDOWN)
};
#undef TYPE
#undef SUBTYPE
// clang-format on

TEST(ErrorNames20, NameEveryType) {
  for (const Case& type : kTypes) {
    const ErrorNames names = NamesOf(Version::k20, type.value);
    EXPECT_STREQ(names.type, type.name);
    EXPECT_STREQ(names.subtype, "");
  }
}

TEST(ErrorNames20, NameEverySubtype) {
  for (const Case& subtype : kSubtypes) {
    const ErrorNames names =
        NamesOf(Version::k20, DAT_CLASS_ERROR | DAT_INVALID_STATE | subtype.value);
    EXPECT_STREQ(names.type, "DAT_INVALID_STATE");
    EXPECT_STREQ(names.subtype, subtype.name);
  }
}

TEST(ErrorNames20, KnowNothingElse) {
  size_t types = 0;
  for (uint32_t type = 0; type <= DAT_TYPE_MASK >> 16; ++type) {
    if (NamesOf(Version::k20, type << 16).type != nullptr) ++types;
  }
  EXPECT_EQ(types, std::size(kTypes));
  size_t subtypes = 0;
  for (uint32_t subtype = 1; subtype <= DAT_SUBTYPE_MASK; ++subtype) {
    if (NamesOf(Version::k20, DAT_INVALID_HANDLE | subtype).subtype != nullptr) ++subtypes;
  }
  EXPECT_EQ(subtypes, std::size(kSubtypes));
}

// The same number means another subtype in 1.2.
TEST(ErrorNames20, DifferFrom12BehindTheInsertedSubtypes) {
  const uint32_t value = DAT_CLASS_ERROR | DAT_INVALID_HANDLE | DAT_INVALID_HANDLE_CSP;
  EXPECT_STREQ(NamesOf(Version::k20, value).subtype, "DAT_INVALID_HANDLE_CSP");
  EXPECT_STREQ(NamesOf(Version::k12, value).subtype, "DAT_INVALID_HANDLE1");
}

}  // namespace
}  // namespace viaduct::dat
