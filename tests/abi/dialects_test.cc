// The public headers and their tables in every dialect of C and C++ that a program may be written
// in.

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
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

// Checks the program that uses VIPL and uDAPL, with each version of the latter.
void CheckDatBesideVipl(const std::string& compiler, const std::string& language,
                        const std::vector<std::string>& flags) {
  for (const char* version : {"-DVIADUCT_TEST_DAT=12", "-DVIADUCT_TEST_DAT=20"}) {
    std::vector<std::string> all = flags;
    all.push_back(version);
    const Outcome outcome = Check(compiler, language, all, "tests/abi/dat_with_vipl.c");
    EXPECT_TRUE(outcome.ok) << version << ' ' << outcome.output;
  }
}

class Dialects : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(Dialects, CompileWithoutAWarning) {
  const auto [compiler, standard] = GetParam();
  if (!Works(compiler, {})) GTEST_SKIP() << compiler << " is not installed";
  const bool cpp = std::string(standard).find("++") != std::string::npos;
  for (const char* source : {"vipl_abi.c", "vipl_program.c", "dat12_abi.c", "dat20_abi.c",
                             "dat20_extensions_program.c"}) {
    const Outcome outcome = Check(compiler, cpp ? "c++" : "c", {std::string("-std=") + standard},
                                  std::string("tests/abi/") + source);
    EXPECT_TRUE(outcome.ok) << outcome.output;
  }
  CheckDatBesideVipl(compiler, cpp ? "c++" : "c", {std::string("-std=") + standard});
}

using Dialect = testing::TestParamInfo<std::tuple<const char*, const char*>>;

std::string NameOf(const Dialect& info) {
  std::string name = std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
  for (char& c : name) {
    if (c == '+') c = 'p';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Headers, Dialects,
                         testing::Combine(testing::Values("gcc", "clang"),
                                          testing::Values("gnu89", "c89", "c99", "c11", "c17",
                                                          "c++98", "c++11", "c++14", "c++17",
                                                          "c++20", "c++2b")),
                         NameOf);

// vipl.h is C89 except for a 64-bit integer and anonymous unions, which it marks as extensions.
// DAT's headers have literals of C99, and are C++ of 1998.
TEST_P(Dialects, ArePedantic) {
  const auto [compiler, standard] = GetParam();
  if (!Works(compiler, {})) GTEST_SKIP() << compiler << " is not installed";
  const bool cpp = std::string(standard).find("++") != std::string::npos;
  const std::vector<std::string> flags = {"-pedantic-errors", std::string("-std=") + standard};
  const Outcome outcome = Check(compiler, cpp ? "c++" : "c", flags, "tests/abi/vipl_program.c");
  EXPECT_TRUE(outcome.ok) << outcome.output;
  if (cpp) CheckDatBesideVipl(compiler, "c++", flags);
}

// VIPL promises more: the same facts in 32 bits, for which a compiler alone is enough (nothing is
// linked, and no header of the system is included), and with either choice of VIPL095.
TEST_P(Dialects, HaveTheSameViplIn32BitsAndWithVIPL095) {
  const auto [compiler, standard] = GetParam();
  if (!Works(compiler, {})) GTEST_SKIP() << compiler << " is not installed";
  ASSERT_TRUE(Works(compiler, {"-m32"})) << compiler << " makes no 32-bit code";
  const bool cpp = std::string(standard).find("++") != std::string::npos;
  for (const auto& [bits, dialect] :
       {std::pair("-m32", "-UVIPL095"), std::pair("-m32", "-DVIPL095"),
        std::pair("-m64", "-DVIPL095")}) {
    for (const char* source : {"tests/abi/vipl_abi.c", "tests/abi/vipl_program.c"}) {
      const Outcome outcome = Check(compiler, cpp ? "c++" : "c",
                                    {std::string("-std=") + standard, bits, dialect}, source);
      EXPECT_TRUE(outcome.ok) << bits << ' ' << dialect << ' ' << outcome.output;
    }
  }
}

// Every name that vipl.h defines, members of structures aside, is in the table, so that none can
// come or go unseen.
TEST(Vipl, HasNoNameThatTheTableLacks) {
  std::ostringstream header, table;
  header << std::ifstream("vipl/include/vipl.h").rdbuf();
  table << std::ifstream("tests/abi/vipl.inc").rdbuf()
        << std::ifstream("tests/abi/vipl_abi.c").rdbuf();
  const std::regex name("\\bV(IP_|ip[A-Z])[A-Za-z0-9_]*[A-Za-z0-9]\\b");
  const auto names_of = [&name](const std::string& text) {
    return std::set<std::string>(std::sregex_token_iterator(text.begin(), text.end(), name),
                                 std::sregex_token_iterator());
  };
  // Names in the files' comments count as well.
  const std::set<std::string> known = names_of(table.str());
  const std::set<std::string> found = names_of(header.str());
  EXPECT_GT(found.size(), 150u);
  for (const std::string& each : found) {
    if (each == "VIP_KERNEL") continue;  // the program may define it, see below
    EXPECT_EQ(known.count(each), 1u) << each;
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
