// Our uDAPL 2.0 headers and Debian's (package libdapl-dev) are the same binary interface.

#include <unistd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/compiler.h"

namespace viaduct::abi {
namespace {

constexpr char kDebianHeader[] = "/usr/include/dat2/udat.h";

class DebianHeaders : public testing::Test {
 protected:
  void SetUp() override {
    if (access(kDebianHeader, R_OK) != 0) {
      GTEST_SKIP() << "Debian's libdapl-dev is not installed: no " << kDebianHeader;
    }
  }
};

// Compiles the printing program and returns what it prints.
std::string Print(bool ours) {
  const std::string program = testing::TempDir() + (ours ? "/print_ours" : "/print_debian");
  std::vector<std::string> argv = {"gcc", "-o", program};
  for (const std::string& flag : Flags(ours)) argv.push_back(flag);
  argv.push_back("tests/abi/dat20_print.c");
  const Outcome compilation = RunProgram(argv);
  EXPECT_TRUE(compilation.ok) << compilation.output;
  const Outcome run = RunProgram({program});
  EXPECT_TRUE(run.ok) << run.output;
  unlink(program.c_str());
  return run.output;
}

TEST_F(DebianHeaders, GiveTheSameValuesSizesAndOffsets) {
  const std::string debian = Print(/*ours=*/false);
  EXPECT_GT(debian.size(), 10000u);
  EXPECT_EQ(Print(/*ours=*/true), debian);
}

// Beyond what can be printed: the types of all functions and of the provider's slots.
TEST_F(DebianHeaders, HoldOurTables) {
  for (const char* language : {"c", "c++"}) {
    std::vector<std::string> argv = {"gcc", "-fsyntax-only", "-x", language};
    for (const std::string& flag : Flags(/*ours=*/false)) argv.push_back(flag);
    argv.push_back("tests/abi/dat20_abi.c");
    const Outcome outcome = RunProgram(argv);
    EXPECT_TRUE(outcome.ok) << outcome.output;
  }
}

}  // namespace
}  // namespace viaduct::abi
