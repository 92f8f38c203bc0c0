// Debian's dtestcm, unmodified, on our libdat2: 100 connections, 10 at a time, judged by what it
// prints, since its exit status says nothing.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::tests {
namespace {

constexpr char kProgram[] = "/usr/bin/dtestcm";

// A program on a terminal of its own, so that it shows its lines as it prints them.
class Program {
 public:
  explicit Program(std::vector<const char*> arguments) {
    terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal_ < 0 || grantpt(terminal_) != 0 || unlockpt(terminal_) != 0) return;
    const char* name = ptsname(terminal_);
    const int other_end = name != nullptr ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (other_end < 0) return;
    arguments.insert(arguments.begin(), kProgram);
    arguments.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(other_end, STDOUT_FILENO);
      dup2(other_end, STDERR_FILENO);
      execv(kProgram, const_cast<char* const*>(arguments.data()));
      _exit(127);
    }
    close(other_end);
  }
  ~Program() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads until `text` has been printed, or the program has ended, or nothing came for 20 s.
  bool AwaitText(const std::string& text) {
    while (output_.find(text) == std::string::npos) {
      pollfd wait = {terminal_, POLLIN, 0};
      if (poll(&wait, 1, 20000) <= 0) return false;
      char buffer[4096];
      const ssize_t got = read(terminal_, buffer, sizeof buffer);
      if (got <= 0) return false;  // EIO: the other end is closed
      output_.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }
  // Its exit status, after all its output has been read.
  int Finish() {
    (void)AwaitText("\1no such text");
    int status = -1;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  const std::string& output() const { return output_; }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string output_;
};

void ExpectClean(const Program& program, const std::string& all_connected) {
  const std::string& output = program.output();
  EXPECT_NE(output.find(all_connected), std::string::npos) << output;
  EXPECT_NE(output.find("DAPL Connection Test Complete."), std::string::npos) << output;
  for (const char* bad : {"rror", "REJECTED", "FAILED", "nexpected", "no version information"}) {
    EXPECT_EQ(output.find(bad), std::string::npos) << output;
  }
}

TEST(Dtestcm, HundredConnectionsTenAtATime) {
  if (access(kProgram, X_OK) != 0) GTEST_SKIP() << "dapl2-utils is not installed: tools/setup";
  const std::string here = getcwd(nullptr, 0);
  setenv("LD_LIBRARY_PATH", (here + "/dat/api:" + here + "/dat/core").c_str(), 1);
  const std::string port = std::to_string(Port(0));
  Program server({"-P", "soft0", "-s", "-c", "100", "-b", "10", "-p", port.c_str()});
  ASSERT_TRUE(server.AwaitText("Server ready on port")) << server.output();
  Program client({"-P", "soft0", "-h", "127.0.0.1", "-c", "100", "-b", "10", "-p", port.c_str()});
  EXPECT_EQ(client.Finish(), 0);
  EXPECT_EQ(server.Finish(), 0);
  ExpectClean(client, "ALL 100 CONNECTED on Client!");
  ExpectClean(server, "ALL 100 CONNECTED on Server!");
}

}  // namespace
}  // namespace viaduct::tests
