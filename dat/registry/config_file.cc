// Where the entries come from.
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "dat/registry/registry.h"
#include "verbs/base/fd.h"
#include "verbs/base/file_text.h"
#include "verbs/base/log.h"
#include "verbs/base/settings.h"
#include "verbs/open_device.h"

namespace viaduct::registry {
namespace {

constexpr char kSystemFile[] = "/etc/dat.conf";

void LogError(const std::string& message) {
  if (verbs::LogEnabled(verbs::LogLevel::kError)) {
    verbs::WriteLog(verbs::LogLevel::kError, message);
  }
}

std::vector<Entry> Parse(const std::string& path, const std::string& text) {
  DatConf conf = ParseDatConf(text);
  for (const BadLine& bad : conf.bad_lines) {
    LogError(path + " line " + std::to_string(bad.line) + " is skipped: " + bad.reason);
  }
  return std::move(conf.entries);
}

}  // namespace

std::vector<Entry> ReadEntries() {
  const std::string override_path = verbs::PathSetting(verbs::SettingId::kDatOverride);
  const bool overridden = !override_path.empty();
  const std::string path = overridden ? override_path : kSystemFile;
  std::string text;
  const int error = verbs::ReadFileText(path, &text);
  if (verbs::IsShortage(error)) throw std::bad_alloc();
  if (error != 0 && (overridden || error != ENOENT)) {
    LogError(
        (overridden ? "DAT_OVERRIDE names " : "") + path + ": " + strerror(error) +
        (overridden ? "; no adapter can be opened" : "; only the built-in ones can be opened"));
  }
  std::vector<Entry> entries;
  if (error == 0) entries = Parse(path, text);
  if (overridden) return entries;
  return WithBuiltIn(std::move(entries), BuiltInEntries(verbs::ListRdmaAdapters()));
}

}  // namespace viaduct::registry
