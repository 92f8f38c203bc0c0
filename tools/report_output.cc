#include "tools/report_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <stdexcept>

namespace viaduct {

ReportOutput::ReportOutput() : output_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
  std::fflush(stdout);
  if (output_ >= 0) dup2(STDERR_FILENO, STDOUT_FILENO);
}

ReportOutput::~ReportOutput() {
  std::fflush(stdout);
  if (output_ < 0) return;
  dup2(output_, STDOUT_FILENO);
  close(output_);
}

void ReportOutput::Print(const std::string& text) {
  for (size_t written = 0; written < text.size();) {
    const ssize_t n = write(output_, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw std::runtime_error("standard output cannot be written");
    written += static_cast<size_t>(n);
  }
}

}  // namespace viaduct
