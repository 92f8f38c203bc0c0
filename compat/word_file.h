// Files of words, one entry per line, with comments after '#': /etc/vip_nics and /etc/vip_hosts.
#ifndef VIADUCT_COMPAT_WORD_FILE_H_
#define VIADUCT_COMPAT_WORD_FILE_H_

#include <string>
#include <string_view>
#include <vector>

namespace viaduct::compat {

struct WordLine {
  int number;  // from 1
  std::vector<std::string> words;
};

// The lines that have words.
std::vector<WordLine> WordLinesOf(std::string_view text);

// The text of the file; empty if there is none, or if it cannot be read, which is logged once.
// Throws std::bad_alloc if descriptors or memory are short, since the contents are unknown then.
std::string ReadWordFile(const std::string& path);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_WORD_FILE_H_
