#include "verbs/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

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

// Logs lines while the pipe or file `fd` is the standard error.
void LogInto(int fd, int lines) {
  const int before = dup(STDERR_FILENO);
  dup2(fd, STDERR_FILENO);
  for (int i = 0; i < lines; ++i) Log(LogLevel::kInfo, "line ", i);
  dup2(before, STDERR_FILENO);
  close(before);
}

TEST(Log, APipeThatNobodyReadsStopsNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  LogInto(ends[1], 20'000);  // more than fit
  char first[] = "viaduct: info: line 0\n";
  char bytes[sizeof first] = {};
  EXPECT_EQ(read(ends[0], bytes, sizeof first - 1), static_cast<ssize_t>(sizeof first - 1));
  EXPECT_STREQ(bytes, first);
  close(ends[0]);
  close(ends[1]);
}

// The pipe has less room than the line needs.
TEST(Log, APipeThatIsNearlyFullStopsNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  Log(LogLevel::kInfo, std::string(100'000, 'x'));
  dup2(before, STDERR_FILENO);
  close(before);
  EXPECT_EQ(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0) << "the program's own writes would fail";
  close(ends[0]);
  close(ends[1]);
}

TEST(Log, ATerminalThatNobodyReadsStopsNobody) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const int end = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(end, 0);
  LogInto(end, 20'000);  // more than fit
  close(end);
  close(terminal);
}

TEST(Log, APipeThatNobodyWillReadEndsNobody) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  LogInto(ends[1], 1);  // no SIGPIPE
  close(ends[1]);
}

// Logs into a file while the process may write no file beyond its tenth byte.
void LogIntoFullFile() {
  FILE* const file = tmpfile();
  ASSERT_NE(file, nullptr);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  LogInto(fileno(file), 3);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  char text[12] = {};
  EXPECT_EQ(pread(fileno(file), text, sizeof text, 0), 10);
  EXPECT_STREQ(text, "viaduct: i");
  fclose(file);
}

bool IsPending(int signal) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, signal) == 1;
}

TEST(Log, AFileAtItsLimitEndsNobody) {
  sigset_t before, behind;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  LogIntoFullFile();  // no SIGXFSZ
  EXPECT_FALSE(IsPending(SIGXFSZ));
  pthread_sigmask(SIG_BLOCK, nullptr, &behind);
  for (int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) {
    EXPECT_EQ(sigismember(&behind, signal), sigismember(&before, signal)) << signal;
  }
}

TEST(Log, ASignalOfTheProgramsOwnGoesOnWaiting) {
  sigset_t own, before;
  sigemptyset(&own);
  sigaddset(&own, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &own, &before);
  raise(SIGXFSZ);
  LogIntoFullFile();
  EXPECT_TRUE(IsPending(SIGXFSZ));
  signal(SIGXFSZ, SIG_IGN);  // discards the pending one
  signal(SIGXFSZ, SIG_DFL);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(Log, OnceIsOnceForEachMessage) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < 4; ++i) {
    LogOnce(LogLevel::kWarn, "hosts:1");
    LogOnce(LogLevel::kWarn, absl::StrCat("hosts:", 2));
    LogOnce(LogLevel::kDebug, "not at this level");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "viaduct: warn: hosts:1\nviaduct: warn: hosts:2\n");
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
