#include "tests/abi/compiler.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace viaduct::abi {

Outcome RunProgram(const std::vector<std::string>& argv) {
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);

  int ends[2];
  if (pipe(ends) != 0) return {false, std::strerror(errno)};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, args[0], &actions, nullptr, args.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);

  Outcome outcome;
  if (error != 0) {
    close(ends[0]);
    outcome.output = argv[0] + ": " + std::strerror(error);
    return outcome;
  }
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) outcome.output.append(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  outcome.ok = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return outcome;
}

std::vector<std::string> Flags(bool ours) {
  std::vector<std::string> flags = {"-Wall", "-Wextra", "-Werror", "-I."};
  if (ours) flags.insert(flags.end(), {"-Ivipl/include", "-Idat/include"});
  return flags;
}

bool Works(const std::string& compiler, const std::vector<std::string>& flags) {
  std::vector<std::string> argv = {compiler};
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.insert(argv.end(), {"-fsyntax-only", "-x", "c", "/dev/null"});
  return RunProgram(argv).ok;
}

}  // namespace viaduct::abi
