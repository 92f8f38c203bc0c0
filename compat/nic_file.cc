#include "compat/nic_file.h"

#include <fstream>
#include <sstream>
#include <utility>

#include "verbs/base/log.h"
#include "verbs/device.h"

namespace viaduct::compat {

NicFile NicFile::Parse(const std::string& text) {
  NicFile file;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    Entry entry;
    if (!(words >> entry.name)) continue;
    words >> entry.interface;
    if (!(words >> entry.device)) entry.device = verbs::kAnyDevice;
    std::string more;
    if (entry.interface.empty() || words >> more) {
      file.skipped_.push_back(number);
    } else {
      file.entries_.push_back(std::move(entry));
    }
  }
  return file;
}

NicFile NicFile::Read(const std::string& path) {
  std::ifstream stream(path);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  NicFile file = Parse(text.str());
  for (int number : file.skipped()) {
    verbs::LogOnce(verbs::LogLevel::kWarn,
                   path + ":" + std::to_string(number) + ": not \"name interface [device]\"");
  }
  return file;
}

const NicFile::Entry* NicFile::Find(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace viaduct::compat
