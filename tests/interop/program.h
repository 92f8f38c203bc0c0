// Somebody else's program on a terminal of its own, so that its lines show as it prints them, and a
// test waits for a line and never for a time.
#ifndef VIADUCT_TESTS_INTEROP_PROGRAM_H_
#define VIADUCT_TESTS_INTEROP_PROGRAM_H_

#include <sys/types.h>

#include <string>
#include <vector>

namespace viaduct::tests {

class Program {
 public:
  // Starts it with this process's environment. words[0] is its path. Without a terminal or a
  // process for it, it counts as one that printed nothing and did not end by itself.
  explicit Program(const std::vector<std::string>& words);
  // Kills it if it still runs.
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Reads until `text` has been printed. Returns false if the program ends before that, or prints
  // nothing for `seconds`.
  bool AwaitText(const std::string& text, int seconds = 60);
  // Its exit status, after all its output has been read; -1 if it did not end by itself.
  int Finish(int seconds = 60);
  const std::string& output() const { return output_; }

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  bool silent_ = false;
  std::string output_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_INTEROP_PROGRAM_H_
