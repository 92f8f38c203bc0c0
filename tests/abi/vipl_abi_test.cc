#include "verbs/base/version.h"

namespace {
constexpr char kProjectVersion[] = VIADUCT_VERSION;
}
#undef VIADUCT_VERSION

#include <vipl.h>

#include "gtest/gtest.h"
#include "tests/abi/abi_list.h"

namespace viaduct::abi {
namespace {

constexpr Fact kFacts[] = {
#include "tests/abi/vipl.inc"
};

TEST(ViplAbi, HasEveryValueSizeAndOffset) {
  for (const Fact& fact : kFacts) EXPECT_EQ(fact.actual, fact.expected) << fact.what;
}

TEST(ViplAbi, CarriesTheProjectsVersion) { EXPECT_STREQ(VIADUCT_VERSION, kProjectVersion); }

}  // namespace
}  // namespace viaduct::abi
