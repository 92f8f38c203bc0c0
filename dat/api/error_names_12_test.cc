#include <dat/udat.h>

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
};
#undef TYPE
#undef SUBTYPE

#define TYPE(enumerator)
#define SUBTYPE(enumerator) {#enumerator, enumerator},
constexpr Case kSubtypes[] = {
#include "dat/api/error_names_cases.inc"
};
#undef TYPE
#undef SUBTYPE
// clang-format on

TEST(ErrorNames12, NameEveryType) {
  for (const Case& type : kTypes) {
    const ErrorNames names = NamesOf(Version::k12, type.value);
    EXPECT_STREQ(names.type, type.name);
    EXPECT_STREQ(names.subtype, "");
  }
}

TEST(ErrorNames12, NameEverySubtype) {
  for (const Case& subtype : kSubtypes) {
    const ErrorNames names =
        NamesOf(Version::k12, DAT_CLASS_ERROR | DAT_INVALID_STATE | subtype.value);
    EXPECT_STREQ(names.type, "DAT_INVALID_STATE");
    EXPECT_STREQ(names.subtype, subtype.name);
  }
}

TEST(ErrorNames12, KnowNothingElse) {
  size_t types = 0;
  for (uint32_t type = 0; type <= DAT_TYPE_MASK >> 16; ++type) {
    if (NamesOf(Version::k12, type << 16).type != nullptr) ++types;
  }
  EXPECT_EQ(types, std::size(kTypes));
  size_t subtypes = 0;
  for (uint32_t subtype = 1; subtype <= DAT_SUBTYPE_MASK; ++subtype) {
    if (NamesOf(Version::k12, DAT_INVALID_HANDLE | subtype).subtype != nullptr) ++subtypes;
  }
  EXPECT_EQ(subtypes, std::size(kSubtypes));
}

// DAT_NOT_IMPLEMENTED has class bits in 1.2 that no other error has.
TEST(ErrorNames12, LookAtNoClass) {
  EXPECT_STREQ(NamesOf(Version::k12, DAT_NOT_IMPLEMENTED).type, "DAT_NOT_IMPLEMENTED");
  EXPECT_STREQ(NamesOf(Version::k12, DAT_CLASS_ERROR | DAT_ABORT).type, "DAT_ABORT");
}

}  // namespace
}  // namespace viaduct::dat
