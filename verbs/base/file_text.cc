#include "verbs/base/file_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "verbs/base/fd.h"

namespace viaduct::verbs {

int ReadFileText(const std::string& path, std::string* text) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return errno;
  char buffer[4096];  // the thread's stack may be small
  for (;;) {
    const ssize_t got = read(file.get(), buffer, sizeof buffer);
    if (got == 0) return 0;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (text->size() + static_cast<size_t>(got) > kMostFileBytes) return EFBIG;
    text->append(buffer, static_cast<size_t>(got));
  }
}

}  // namespace viaduct::verbs
