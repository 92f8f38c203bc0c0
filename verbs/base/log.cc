#include "verbs/base/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "verbs/base/lock.h"
#include "verbs/base/made_once.h"
#include "verbs/base/per_process.h"
#include "verbs/base/settings.h"
#include "verbs/base/uncancelled.h"

namespace viaduct::verbs {
namespace {

constexpr int kUnknown = -1;
std::atomic<int> g_level{kUnknown};

// The messages that LogOnce has logged.
struct WrittenLines {
  Mutex mutex;
  // Not Abseil's set, which is corrupt once it has found no memory to grow.
  std::set<std::string> lines;
};

constexpr const char* kNames[] = {"error", "warn", "info", "debug", "trace"};

// What OFED's masks ask for; a mask with none of these bits logs only errors.
struct OldBits {
  SettingId mask;
  uint32_t bits;
  LogLevel level;
};
constexpr OldBits kOldBits[] = {
    {SettingId::kDatDebug, 0x0000000e, LogLevel::kInfo},    // generic, the two registries
    {SettingId::kDatDebug, 0xfffffff0, LogLevel::kDebug},   // provider's and consumer's calls
    {SettingId::kDaplDebug, 0x00000002, LogLevel::kWarn},   // warnings
    {SettingId::kDaplDebug, 0xfffffcfc, LogLevel::kDebug},  // events, connections, endpoints, ...
    {SettingId::kDaplDebug, 0x00000300, LogLevel::kTrace},  // calls and returns
};

// Whether `fd` has room for a line. For a stopped terminal or a pipe that nobody reads, the first
// line that finds no room waits for a second; those after it do not wait.
bool HasRoom(int fd) {
  static std::atomic<bool> stuck{false};
  pollfd entry = {fd, POLLOUT, 0};
  const bool room = uncancelled::Poll(&entry, stuck.load(std::memory_order_relaxed) ? 0 : 1) == 1;
  stuck.store(!room, std::memory_order_relaxed);
  return room;
}

// A terminal or a pipe reports room as soon as one byte fits, and blocks a writer of more than
// that. Opens it anew without blocking, which must not be set on the program's own descriptor. -1:
// `fd` is neither, or cannot be opened.
int OpenWithoutWaiting(int fd) {
  struct stat what;
  if (fstat(fd, &what) != 0 || !(S_ISCHR(what.st_mode) || S_ISFIFO(what.st_mode))) return -1;
  char path[40];
  std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", fd);
  return uncancelled::Open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

// A pipe without readers raises SIGPIPE and a file that has reached RLIMIT_FSIZE raises SIGXFSZ,
// which would end the program; a terminal that takes no output from the background raises SIGTTOU,
// which would stop it. These signals go to the writing thread, which blocks them here and then
// removes the one that this write raised, unless it was pending before. SIGTTOU is not raised where
// it is blocked.
void WriteWithoutSignal(int fd, const iovec* parts, int count) {
  sigset_t raised, before, pending;
  sigemptyset(&raised);
  for (int signal : {SIGPIPE, SIGXFSZ, SIGTTOU}) sigaddset(&raised, signal);
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  sigpending(&pending);
  if (uncancelled::WriteParts(fd, parts, count) < 0) {
    const int signal = errno == EPIPE ? SIGPIPE : errno == EFBIG ? SIGXFSZ : 0;
    if (signal != 0 && sigismember(&pending, signal) == 0) uncancelled::TakeSignal(signal);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void WriteLine(int fd, const iovec* parts, int count) {
  if (!HasRoom(fd)) return;
  const int opened = OpenWithoutWaiting(fd);
  WriteWithoutSignal(opened >= 0 ? opened : fd, parts, count);
  if (opened >= 0) uncancelled::Close(opened);
}

// Returns whether there were any, since MadeOnce keeps a value.
bool WriteSettingProblems() {
  if (!LogEnabled(LogLevel::kWarn)) return false;
  const std::vector<std::string> problems = SettingProblems();
  for (const std::string& problem : problems) WriteLog(LogLevel::kWarn, problem);
  return !problems.empty();
}

}  // namespace

LogLevel LogLevelOfEnvironment() {
  const bool masks = MaskSetting(SettingId::kDatDebug).has_value() ||
                     MaskSetting(SettingId::kDaplDebug).has_value();
  if (IsGiven(SettingId::kLog) || !masks) {
    const std::string name = ChoiceSetting(SettingId::kLog);
    int level = 0;
    while (name != kNames[level]) ++level;  // the setting is one of them
    return static_cast<LogLevel>(level);
  }
  LogLevel level = LogLevel::kError;
  for (const OldBits& old : kOldBits) {
    if ((MaskSetting(old.mask).value_or(0) & old.bits) != 0) level = std::max(level, old.level);
  }
  return level;
}

bool LogEnabled(LogLevel level) {
  int enabled = g_level.load(std::memory_order_relaxed);
  if (enabled == kUnknown) {
    enabled = static_cast<int>(LogLevelOfEnvironment());
    g_level.store(enabled, std::memory_order_relaxed);
  }
  return static_cast<int>(level) <= enabled;
}

void WriteLog(LogLevel level, absl::string_view message) {
  const int saved = errno;
  const absl::string_view parts[] = {"viaduct: ", kNames[static_cast<int>(level)], ": ", message,
                                     "\n"};
  iovec line[std::size(parts)];
  for (size_t i = 0; i < std::size(parts); ++i) {
    line[i] = {const_cast<char*>(parts[i].data()), parts[i].size()};
  }
  // One call, so that lines of several threads and processes do not mix. A line that cannot be
  // written is lost: there is nobody to report that to.
  WriteLine(STDERR_FILENO, line, std::size(line));
  errno = saved;
}

void LogOnce(LogLevel level, absl::string_view message) {
  if (!LogEnabled(level)) return;
  auto& written = PerProcess<WrittenLines>::Get();
  {
    MutexLock lock(&written.mutex);
    if (!written.lines.emplace(message).second) return;
  }
  WriteLog(level, message);
}

void LogSettingProblems() { MadeOnce<&WriteSettingProblems>(); }

}  // namespace viaduct::verbs
