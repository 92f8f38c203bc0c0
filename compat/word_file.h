// Files of words, a line for each entry, with comments behind '#': /etc/vip_nics and
// /etc/vip_hosts.
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

// Those with words.
std::vector<WordLine> WordLinesOf(std::string_view text);

// The text of the file; empty without it, or where it cannot be read, which is logged once. Throws
// std::bad_alloc where descriptors or memory are short: what it says is not known then.
std::string ReadWordFile(const std::string& path);

}  // namespace viaduct::compat

#endif  // VIADUCT_COMPAT_WORD_FILE_H_
