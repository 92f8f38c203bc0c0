#include "tests/interop/program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace viaduct::tests {

Program::Program(const std::vector<std::string>& words) {
  terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0) return;
  const char* name = ptsname(terminal_);
  const int other_end = name != nullptr ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
  if (other_end < 0) return;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  fflush(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(other_end, STDOUT_FILENO);
    dup2(other_end, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(other_end);
}

Program::~Program() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

bool Program::AwaitText(const std::string& text, int seconds) {
  if (pid_ <= 0) return false;
  size_t from = 0;
  while (output_.find(text, from) == std::string::npos) {
    // A later match may begin in what has already been read.
    from = output_.size() < text.size() ? 0 : output_.size() - text.size();
    pollfd wait = {terminal_, POLLIN, 0};
    silent_ = poll(&wait, 1, seconds * 1000) <= 0;
    if (silent_) return false;
    char buffer[16384];
    const ssize_t got = read(terminal_, buffer, sizeof buffer);
    if (got <= 0) return false;  // EIO: the other end is closed
    output_.append(buffer, static_cast<size_t>(got));
  }
  return true;
}

int Program::Finish(int seconds) {
  if (pid_ <= 0) return -1;
  (void)AwaitText("\1no such text", seconds);
  if (silent_) kill(pid_, SIGKILL);
  int status = -1;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace viaduct::tests
