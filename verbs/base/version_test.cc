#include "verbs/base/version.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace {

TEST(Version, IsThreePlainNumbers) {
  const std::vector<std::string> parts = absl::StrSplit(VIADUCT_VERSION, '.');
  ASSERT_EQ(parts.size(), 3u);
  for (const std::string& part : parts) {
    int number = -1;
    EXPECT_TRUE(absl::SimpleAtoi(part, &number)) << part;
    EXPECT_GE(number, 0);
    EXPECT_EQ(part, std::to_string(number)) << "no sign, no leading zero";
  }
}

}  // namespace
