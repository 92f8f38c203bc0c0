#include "verbs/base/log.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "verbs/base/settings.h"
#include "verbs/base/uncancelled.h"

namespace viaduct::verbs {
namespace {

constexpr int kUnknown = -1;
std::atomic<int> g_level{kUnknown};

constexpr const char* kNames[] = {"error", "warn", "info", "debug", "trace"};

int ReadLevel() {
  const std::string name = ChoiceSetting(SettingId::kLog);
  int level = 0;
  while (name != kNames[level]) ++level;  // the setting is one of them
  g_level.store(level, std::memory_order_relaxed);
  return level;
}

}  // namespace

bool LogEnabled(LogLevel level) {
  int enabled = g_level.load(std::memory_order_relaxed);
  if (enabled == kUnknown) enabled = ReadLevel();
  return static_cast<int>(level) <= enabled;
}

void WriteLog(LogLevel level, absl::string_view message) {
  const int saved = errno;
  const std::string line =
      absl::StrCat("viaduct: ", kNames[static_cast<int>(level)], ": ", message, "\n");
  // One call, so that lines of several threads and processes do not mix. What cannot be written
  // is lost: there is nobody to tell.
  uncancelled::Write(STDERR_FILENO, line.data(), line.size());
  errno = saved;
}

}  // namespace viaduct::verbs
