// The public headers and their tables in every dialect of C and C++ that a program may be written
// in.

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/abi/compiler.h"

namespace viaduct::abi {
namespace {

// Checks one source, which is both C and C++.
Outcome Check(const std::string& compiler, const std::string& language,
              const std::vector<std::string>& flags, const std::string& source) {
  std::vector<std::string> argv = {compiler, "-fsyntax-only", "-x", language};
  for (const std::string& flag : Flags(/*ours=*/true)) argv.push_back(flag);
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.push_back(source);
  return RunProgram(argv);
}

class Dialects : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Dialects, CompileWithoutAWarning) {
  const auto [compiler, standard] = GetParam();
  if (!Works(compiler, {})) GTEST_SKIP() << compiler << " is not installed";
  const bool cpp = std::string(standard).find("++") != std::string::npos;
  for (const char* source :
       {"vipl_abi.c", "vipl_program.c", "dat12_abi.c", "dat20_abi.c", "dat12_with_vipl.c",
        "dat20_extensions_program.c", "dat20_with_vipl.c"}) {
    const Outcome outcome = Check(compiler, cpp ? "c++" : "c", {std::string("-std=") + standard},
                                  std::string("tests/abi/") + source);
    EXPECT_TRUE(outcome.ok) << outcome.output;
  }
}

INSTANTIATE_TEST_SUITE_P(Headers, Dialects,
                         testing::Combine(testing::Values("gcc", "clang"),
                                          testing::Values("gnu89", "c89", "c99", "c11", "c17",
                                                          "c++98", "c++11", "c++14", "c++17",
                                                          "c++20", "c++2b")),
                         [](const auto& info) {
                           std::string name =
                               std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
                           for (char& c : name) {
                             if (c == '+') c = 'p';
                           }
                           return name;
                         });

TEST(Vipl, HasTheSameLayoutIn32Bits) {
  if (!Works("gcc", {"-m32"})) GTEST_SKIP() << "gcc makes no 32-bit code here";
  for (const char* language : {"c", "c++"}) {
    const Outcome outcome = Check("gcc", language, {"-m32"}, "tests/abi/vipl_abi.c");
    EXPECT_TRUE(outcome.ok) << outcome.output;
  }
}

TEST(Vipl, IsTheSameWithVipl095) {
  for (const char* source : {"tests/abi/vipl_abi.c", "tests/abi/vipl_program.c"}) {
    const Outcome outcome = Check("gcc", "c", {"-DVIPL095"}, source);
    EXPECT_TRUE(outcome.ok) << outcome.output;
  }
}

TEST(Vipl, HidesInfiniteFromKernelCode) {
  const Outcome outcome = Check("gcc", "c", {"-DVIP_KERNEL"}, "tests/abi/vipl_kernel.c");
  EXPECT_TRUE(outcome.ok) << outcome.output;
  EXPECT_FALSE(Check("gcc", "c", {}, "tests/abi/vipl_kernel.c").ok);
}

// The checks above mean nothing unless a wrong line in a table is an error.
TEST(Tables, AWrongLineDoesNotCompile) {
  for (const char* line :
       {"VALUE(VIP_INVALID_ADDRESS, 17)", "SIZE(VIP_DESCRIPTOR, 48)",
        "OFFSET(VIP_DESCRIPTOR, Data, 16)", "FUNCTION(VIP_RETURN, VipDisconnect, (VIP_PVOID*))",
        "SLOT(VIP_ERROR_DESCRIPTOR, int, OpCode, (void))"}) {
    for (const char* language : {"c", "c++"}) {
      const Outcome outcome = Check("gcc", language, {std::string("-DVIADUCT_WRONG_LINE=") + line},
                                    "tests/abi/vipl_abi.c");
      EXPECT_FALSE(outcome.ok) << line << " as " << language;
    }
  }
}

TEST(Dat, RefusesBothVersionsInOneFile) {
  for (const auto& [first, second] :
       {std::pair("dat/udat.h", "dat2/udat.h"), std::pair("dat2/udat.h", "dat/udat.h")}) {
    const Outcome outcome = Check("gcc", "c", {"-include", first, "-include", second}, "/dev/null");
    EXPECT_FALSE(outcome.ok);
    EXPECT_NE(outcome.output.find("include one of them"), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace viaduct::abi
