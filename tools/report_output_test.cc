#include "tools/report_output.h"

#include <cstdio>
#include <string>

#include "gtest/gtest.h"

namespace viaduct {
namespace {

TEST(ReportOutput, IsItsOwnersAlone) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  {
    ReportOutput output;
    std::puts("a library's log");
    output.Print("report\n");
  }
  std::puts("after it");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "report\nafter it\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a library's log\n");
}

}  // namespace
}  // namespace viaduct
