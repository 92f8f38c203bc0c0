#include "verbs/base/version.h"

namespace {
constexpr char kProjectVersion[] = VIADUCT_VERSION;
}
#undef VIADUCT_VERSION

#include <dat2/dat_ib_extensions.h>
#include <dat2/dat_registry.h>
#include <dat2/udat.h>

#include "gtest/gtest.h"
#include "tests/abi/abi_list.h"

namespace viaduct::abi {
namespace {

constexpr Fact kFacts[] = {
#include "tests/abi/dat20_extensions.inc"
#include "tests/abi/dat20_layout.inc"
#include "tests/abi/dat20_values.inc"
};

TEST(Dat20Abi, C001_HasEveryValueSizeAndOffset) {
  for (const Fact& fact : kFacts) EXPECT_EQ(fact.actual, fact.expected) << fact.what;
}

TEST(Dat20Abi, CarriesTheProjectsVersion) { EXPECT_STREQ(VIADUCT_VERSION, kProjectVersion); }

}  // namespace
}  // namespace viaduct::abi
