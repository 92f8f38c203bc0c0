#include "verbs/base/version.h"

namespace {
constexpr char kProjectVersion[] = VIADUCT_VERSION;
}
#undef VIADUCT_VERSION

#include <dat/dat_registry.h>
#include <dat/udat.h>

#include "gtest/gtest.h"
#include "tests/abi/abi_list.h"

namespace viaduct::abi {
namespace {

constexpr Fact kFacts[] = {
#include "tests/abi/dat12_layout.inc"
#include "tests/abi/dat12_values.inc"
};

TEST(Dat12Abi, C002_HasEveryValueSizeAndOffset) {
  for (const Fact& fact : kFacts) EXPECT_EQ(fact.actual, fact.expected) << fact.what;
}

TEST(Dat12Abi, CarriesTheProjectsVersion) { EXPECT_STREQ(VIADUCT_VERSION, kProjectVersion); }

}  // namespace
}  // namespace viaduct::abi
