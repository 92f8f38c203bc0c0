#ifndef VIADUCT_TESTS_ABI_COMPILER_H_
#define VIADUCT_TESTS_ABI_COMPILER_H_

#include <string>
#include <vector>

namespace viaduct::abi {

// Whether a program exited with 0, and what it wrote to both its outputs.
struct Outcome {
  bool ok = false;
  std::string output;
};

// Runs a program, found by PATH, and waits for it.
Outcome RunProgram(const std::vector<std::string>& argv);

// The flags that every compilation of this folder shares: all warnings, all of them errors, the
// repository as include path; `ours` adds the public headers of this repository.
std::vector<std::string> Flags(bool ours);

// Whether the compiler exists and accepts a file that includes nothing, with these flags.
bool Works(const std::string& compiler, const std::vector<std::string>& flags);

}  // namespace viaduct::abi

#endif  // VIADUCT_TESTS_ABI_COMPILER_H_
