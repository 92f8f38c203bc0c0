#include "compat/nic_file.h"

#include <utility>
#include <vector>

#include "compat/word_file.h"
#include "verbs/base/log.h"
#include "verbs/device.h"

namespace viaduct::compat {

NicFile NicFile::Parse(const std::string& text) {
  NicFile file;
  for (WordLine& line : WordLinesOf(text)) {
    std::vector<std::string>& words = line.words;
    if (words.size() < 2 || words.size() > 3) {
      file.skipped_.push_back(line.number);
      continue;
    }
    Entry& entry = file.entries_.emplace_back();
    entry.name = std::move(words[0]);
    entry.interface = std::move(words[1]);
    entry.device = words.size() == 3 ? std::move(words[2]) : verbs::kAnyDevice;
  }
  return file;
}

NicFile NicFile::Read(const std::string& path) {
  NicFile file = Parse(ReadWordFile(path));
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
