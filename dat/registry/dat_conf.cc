#include "dat/registry/dat_conf.h"

#include <charconv>
#include <optional>
#include <utility>

namespace viaduct::registry {
namespace {

constexpr size_t kWords = 8;

constexpr bool IsBlank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// Cuts the text into lines of words.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ == text_.size(); }
  int line() const { return line_; }

  // Reads the words of the current line and moves to the next one. On an error, sets `*error` and
  // skips the rest of the line.
  std::vector<std::string> ReadLine(std::string* error) {
    std::vector<std::string> words;
    while (!AtEnd() && text_[at_] != '\n') {
      if (IsBlank(text_[at_])) {
        ++at_;
      } else if (text_[at_] == '#') {
        break;
      } else if (text_[at_] == '"') {
        ++at_;
        words.push_back(ReadQuoted(error));
        if (!error->empty()) break;
      } else {
        words.push_back(ReadPlain());
      }
    }
    SkipLine();
    return words;
  }

 private:
  std::string ReadPlain() {
    const size_t begin = at_;
    while (!AtEnd() && text_[at_] != '\n' && !IsBlank(text_[at_])) ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string ReadQuoted(std::string* error) {
    std::string word;
    while (!AtEnd() && text_[at_] != '\n') {
      char c = text_[at_++];
      if (c == '"') return word;
      if (c == '\\') {
        if (AtEnd() || text_[at_] == '\n') break;
        c = text_[at_++];
      }
      word.push_back(c);
    }
    *error = "a quotation mark is not closed";
    return word;
  }

  void SkipLine() {
    while (!AtEnd() && text_[at_] != '\n') ++at_;
    if (!AtEnd()) ++at_;
    ++line_;
  }

  const std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

std::optional<uint32_t> ToNumber(std::string_view text) {
  uint32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

// "MAJOR.MINOR"
bool ParseVersion(std::string_view text, uint32_t* major, uint32_t* minor) {
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos) return false;
  const std::optional<uint32_t> first = ToNumber(text.substr(0, dot));
  const std::optional<uint32_t> second = ToNumber(text.substr(dot + 1));
  if (!first || !second) return false;
  *major = *first;
  *minor = *second;
  return true;
}

// "ID.MAJOR.MINOR"
bool IsLibraryVersion(std::string_view text) {
  const size_t dot = text.find('.');
  uint32_t major, minor;
  return dot != std::string_view::npos && dot > 0 &&
         ParseVersion(text.substr(dot + 1), &major, &minor);
}

// Returns false unless `word` is `yes` or `no`; `*value` is set to true for `yes`.
bool ParseChoice(std::string_view word, std::string_view yes, std::string_view no, bool* value) {
  *value = word == yes;
  return word == yes || word == no;
}

// Returns why the words are not an entry; empty if they are. `*wanted`: the entry is for user
// programs and a default one.
std::string ToEntry(std::vector<std::string> words, Entry* entry, bool* wanted) {
  if (words.size() != kWords) {
    return "an entry has " + std::to_string(kWords) + " words and this line has " +
           std::to_string(words.size());
  }
  for (const std::string& word : words) {
    if (word.find('\0') != std::string::npos) return "it has a zero byte";
  }
  if (words[0].empty()) return "the name of the adapter is empty";
  if (words[0].size() > kMaxNameLength) {
    return "the name of the adapter is longer than " + std::to_string(kMaxNameLength) + " bytes";
  }
  const std::string_view version = words[1];
  const bool user = !version.empty() && version[0] == 'u';
  const bool kernel = !version.empty() && version[0] == 'k';
  if ((!user && !kernel) || !ParseVersion(version.substr(1), &entry->major, &entry->minor)) {
    return "\"" + words[1] + "\" is not a version of the interface such as u2.0";
  }
  if (!ParseChoice(words[2], "threadsafe", "nonthreadsafe", &entry->thread_safe)) {
    return "\"" + words[2] + "\" is neither threadsafe nor nonthreadsafe";
  }
  bool is_default = false;
  if (!ParseChoice(words[3], "default", "nondefault", &is_default)) {
    return "\"" + words[3] + "\" is neither default nor nondefault";
  }
  if (words[4].empty()) return "the name of the library is empty";
  if (!IsLibraryVersion(words[5])) {
    return "\"" + words[5] + "\" is not a version of the library such as dapl.2.0";
  }
  entry->name = std::move(words[0]);
  entry->library = std::move(words[4]);
  entry->library_version = std::move(words[5]);
  entry->parameters = std::move(words[6]);
  entry->platform = std::move(words[7]);
  *wanted = user && is_default;
  return "";
}

std::string Quoted(std::string_view word) {
  std::string quoted = "\"";
  for (char c : word) {
    if (c == '"' || c == '\\') quoted.push_back('\\');
    quoted.push_back(c);
  }
  return quoted + '"';
}

// The word as it is if it reads back the same, otherwise quoted.
std::string Word(const std::string& word) {
  bool plain = !word.empty() && word[0] != '"' && word[0] != '#';
  for (char c : word) plain = plain && !IsBlank(c);
  return plain ? word : Quoted(word);
}

}  // namespace

DatConf ParseDatConf(std::string_view text) {
  DatConf conf;
  Reader reader(text);
  while (!reader.AtEnd()) {
    Entry entry;
    entry.line = reader.line();
    std::string reason;
    std::vector<std::string> words = reader.ReadLine(&reason);
    if (words.empty() && reason.empty()) continue;
    bool wanted = false;
    if (reason.empty()) reason = ToEntry(std::move(words), &entry, &wanted);
    if (!reason.empty()) {
      conf.bad_lines.push_back({entry.line, std::move(reason)});
    } else if (wanted) {
      conf.entries.push_back(std::move(entry));
    }
  }
  return conf;
}

std::string ToLine(const Entry& entry) {
  return Word(entry.name) + " u" + std::to_string(entry.major) + "." + std::to_string(entry.minor) +
         (entry.thread_safe ? " threadsafe" : " nonthreadsafe") + " default " +
         Word(entry.library) + " " + Word(entry.library_version) + " " + Quoted(entry.parameters) +
         " " + Quoted(entry.platform);
}

}  // namespace viaduct::registry
