#include "compat/word_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "verbs/base/fd.h"
#include "verbs/base/file_text.h"
#include "verbs/base/log.h"

namespace viaduct::compat {
namespace {

std::vector<std::string> WordsOf(std::string_view line) {
  constexpr char kBlanks[] = " \t\r\v\f";
  std::vector<std::string> words;
  size_t begin = line.find_first_not_of(kBlanks);
  while (begin != std::string_view::npos) {
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(kBlanks, end);
  }
  return words;
}

}  // namespace

// Written by hand: the faces need only the engine, and none of Abseil's libraries.
std::vector<WordLine> WordLinesOf(std::string_view text) {
  std::vector<WordLine> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::vector<std::string> words = WordsOf(line.substr(0, line.find('#')));
    if (!words.empty()) lines.push_back({number, std::move(words)});
  }
  return lines;
}

std::string ReadWordFile(const std::string& path) {
  std::string text;
  const int error = verbs::ReadFileText(path, &text);
  if (error == 0) return text;
  if (verbs::IsShortage(error)) throw std::bad_alloc();
  if (error != ENOENT && error != ENOTDIR) {
    verbs::LogOnce(verbs::LogLevel::kWarn,
                   path + ": " + strerror(error) + "; it counts as if it were not there");
  }
  return "";
}

}  // namespace viaduct::compat
