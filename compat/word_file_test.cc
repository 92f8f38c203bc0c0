#include "compat/word_file.h"

#include <new>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "verbs/base/no_descriptors.h"

namespace viaduct::compat {
namespace {

TEST(WordFileTest, LinesHaveTheirNumbersAndNoComments) {
  const std::vector<WordLine> lines = WordLinesOf("# names\n\na b # c\n \td\r\ne#f\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].number, 3);
  EXPECT_EQ(lines[0].words, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(lines[1].number, 4);
  EXPECT_EQ(lines[1].words, (std::vector<std::string>{"d"}));
  EXPECT_EQ(lines[2].words, (std::vector<std::string>{"e"}));
}

TEST(WordFileTest, WithoutTheFileNothingIsThereOrSaid) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReadWordFile("/nonexistent/words"), "");
  EXPECT_EQ(ReadWordFile("/dev/null/words"), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(WordFileTest, WhatCannotBeReadIsSaidOnce) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(ReadWordFile("/tmp"), "");
  EXPECT_EQ(ReadWordFile("/tmp"), "");
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("/tmp: Is a directory"), std::string::npos) << said;
  EXPECT_EQ(said.find("/tmp"), said.rfind("/tmp")) << said;
}

TEST(WordFileTest, WithoutADescriptorNobodyKnowsWhatItSays) {
  const verbs::NoDescriptors none;
  EXPECT_THROW(ReadWordFile("/etc/passwd"), std::bad_alloc);
}

}  // namespace
}  // namespace viaduct::compat
