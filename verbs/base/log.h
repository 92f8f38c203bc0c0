// One line to stderr, or nothing. Levels by volume: error, warn, info (per adapter), debug (per
// object), trace (per message). VIADUCT_LOG names the level; without it OFED's masks DAT_DBG_TYPE
// and DAPL_DBG_TYPE decide, where they are given; warn is the default.
//
// The function that first knows of an error logs it; others pass it on. No "=" in messages.
#ifndef VIADUCT_VERBS_BASE_LOG_H_
#define VIADUCT_VERBS_BASE_LOG_H_

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace viaduct::verbs {

enum class LogLevel { kError, kWarn, kInfo, kDebug, kTrace };

// What the environment asks for now; the log itself asks once per process.
LogLevel LogLevelOfEnvironment();
// Cheap: one relaxed load.
bool LogEnabled(LogLevel level);
// Writes "viaduct: <level>: <message>\n" with one write and without memory. Any thread; errno is
// kept, and no signal of the write reaches the program.
void WriteLog(LogLevel level, absl::string_view message);

template <typename... Args>
void Log(LogLevel level, const Args&... args) {
  if (LogEnabled(level)) WriteLog(level, absl::StrCat(args...));
}

// The same for problems that every call finds anew, such as a wrong line of a file: logs each
// message once per process. Needs memory.
void LogOnce(LogLevel level, absl::string_view message);

// Logs at its first call in this process what is wrong with the settings; a forked child does not
// repeat it. Each function of a face that opens an adapter begins with it, so that a misspelt
// variable is named also where the adapter is not found for want of it. Throws std::bad_alloc; then
// the next call tries again.
void LogSettingProblems();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_LOG_H_
