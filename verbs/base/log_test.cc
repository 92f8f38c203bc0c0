#include "verbs/base/log.h"

#include <cerrno>
#include <string>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

// The level is read once per process: BUILD sets VIADUCT_LOG to info.
TEST(Log, TheVariableNamesTheLevel) {
  EXPECT_TRUE(LogEnabled(LogLevel::kError));
  EXPECT_TRUE(LogEnabled(LogLevel::kWarn));
  EXPECT_TRUE(LogEnabled(LogLevel::kInfo));
  EXPECT_FALSE(LogEnabled(LogLevel::kDebug));
  EXPECT_FALSE(LogEnabled(LogLevel::kTrace));
}

TEST(Log, WritesOneLine) {
  testing::internal::CaptureStderr();
  Log(LogLevel::kInfo, "port ", 4711, " taken");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "viaduct: info: port 4711 taken\n");
}

TEST(Log, IsSilentAboveTheLevel) {
  testing::internal::CaptureStderr();
  Log(LogLevel::kDebug, "object");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Log, KeepsErrno) {
  testing::internal::CaptureStderr();
  errno = EXDEV;
  Log(LogLevel::kError, "x");
  EXPECT_EQ(errno, EXDEV);
  testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace viaduct::verbs
