#include "verbs/base/log.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <utility>

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

LogLevel LevelWith(const char* log, const char* dat, const char* dapl) {
  const std::pair<const char*, const char*> variables[] = {
      {"VIADUCT_LOG", log}, {"DAT_DBG_TYPE", dat}, {"DAPL_DBG_TYPE", dapl}};
  for (const auto& [name, value] : variables) {
    if (value == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, value, 1);
    }
  }
  const LogLevel level = LogLevelOfEnvironment();
  for (const auto& variable : variables) unsetenv(variable.first);
  setenv("VIADUCT_LOG", "info", 1);  // as BUILD sets it
  return level;
}

TEST(Log, MasksOfOfedNameALevel) {
  EXPECT_EQ(LevelWith(nullptr, nullptr, nullptr), LogLevel::kWarn);
  EXPECT_EQ(LevelWith(nullptr, "0", nullptr), LogLevel::kError);
  EXPECT_EQ(LevelWith(nullptr, "1", nullptr), LogLevel::kError);
  EXPECT_EQ(LevelWith(nullptr, "0x5", nullptr), LogLevel::kInfo);
  EXPECT_EQ(LevelWith(nullptr, "0xff", nullptr), LogLevel::kDebug);
  EXPECT_EQ(LevelWith(nullptr, nullptr, "1"), LogLevel::kError);
  EXPECT_EQ(LevelWith(nullptr, nullptr, "3"), LogLevel::kWarn);
  EXPECT_EQ(LevelWith(nullptr, nullptr, "0x8"), LogLevel::kDebug);
  EXPECT_EQ(LevelWith(nullptr, nullptr, "0x8000"), LogLevel::kDebug);
  EXPECT_EQ(LevelWith(nullptr, nullptr, "0xffff"), LogLevel::kTrace);
  EXPECT_EQ(LevelWith(nullptr, "1", "0x100"), LogLevel::kTrace);
}

TEST(Log, OurVariableDecides) {
  EXPECT_EQ(LevelWith("info", "0xff", "0xffff"), LogLevel::kInfo);
  EXPECT_EQ(LevelWith("loud", "0xff", nullptr), LogLevel::kDebug) << "no level";
  EXPECT_EQ(LevelWith("warn", "much", ""), LogLevel::kWarn);
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
