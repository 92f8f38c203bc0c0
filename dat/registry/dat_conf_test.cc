#include "dat/registry/dat_conf.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace viaduct::registry {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

constexpr char kGood[] = "a u2.0 nonthreadsafe default lib.so x.1.0 \"p q\" \"\"\n";

std::vector<std::string> Names(const DatConf& conf) {
  std::vector<std::string> names;
  for (const Entry& entry : conf.entries) names.push_back(entry.name);
  return names;
}
std::vector<int> BadLines(const DatConf& conf) {
  std::vector<int> lines;
  for (const BadLine& bad : conf.bad_lines) lines.push_back(bad.line);
  return lines;
}
// The line is bad, and neither of its neighbours suffers.
void ExpectBad(const std::string& line) {
  const DatConf conf = ParseDatConf(kGood + line + "\n" + kGood);
  EXPECT_THAT(Names(conf), ElementsAre("a", "a")) << line;
  EXPECT_THAT(BadLines(conf), ElementsAre(2)) << line;
}

TEST(DatConf, ReadsEveryWord) {
  const DatConf conf = ParseDatConf(
      "ofa-v2-ib0 u2.1 threadsafe default /usr/lib/libdaplofa.so.2 dapl.2.0 \"ib0 0\" \"d=1\"");
  EXPECT_THAT(conf.bad_lines, IsEmpty());
  ASSERT_EQ(conf.entries.size(), 1u);
  const Entry& entry = conf.entries[0];
  EXPECT_EQ(entry.name, "ofa-v2-ib0");
  EXPECT_EQ(entry.major, 2u);
  EXPECT_EQ(entry.minor, 1u);
  EXPECT_TRUE(entry.thread_safe);
  EXPECT_EQ(entry.library, "/usr/lib/libdaplofa.so.2");
  EXPECT_EQ(entry.library_version, "dapl.2.0");
  EXPECT_EQ(entry.parameters, "ib0 0");
  EXPECT_EQ(entry.platform, "d=1");
  EXPECT_EQ(entry.line, 1);
}

TEST(DatConf, C010_CommentsQuotesEscapes) {
  const DatConf conf = ParseDatConf(
      "# a comment\n"
      "\n"
      "  \t \r\n"
      "b\tu1.2 nonthreadsafe default \"/a path/lib.so\" x.1.0 \"say \\\"hi\\\" \\\\ #1\" \" \" # "
      "end\r\n"
      "   c u2.0 threadsafe default lib#1.so x.1.0 plain \"\"");
  EXPECT_THAT(conf.bad_lines, IsEmpty());
  ASSERT_THAT(Names(conf), ElementsAre("b", "c"));
  EXPECT_EQ(conf.entries[0].library, "/a path/lib.so");
  EXPECT_EQ(conf.entries[0].parameters, "say \"hi\" \\ #1");
  EXPECT_EQ(conf.entries[0].platform, " ");
  EXPECT_EQ(conf.entries[0].line, 4);
  EXPECT_EQ(conf.entries[1].library, "lib#1.so");
  EXPECT_EQ(conf.entries[1].parameters, "plain");
  EXPECT_EQ(conf.entries[1].platform, "");
}

TEST(DatConf, C011_BadLinesHideNoOther) {
  ExpectBad("b u2.0 nonthreadsafe default lib.so x.1.0 \"\"");            // seven words
  ExpectBad("b u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\" more");  // nine
  ExpectBad("b");
  ExpectBad("\"\" u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\"");
  for (const char* version :
       {"2.0", "u2", "u2.", "u.0", "u2.x", "u-2.0", "x2.0", "u2.0.0", "\"\"", "u99999999999.0"}) {
    ExpectBad(std::string("b ") + version + " nonthreadsafe default lib.so x.1.0 \"\" \"\"");
  }
  ExpectBad("b u2.0 thread-safe default lib.so x.1.0 \"\" \"\"");
  ExpectBad("b u2.0 nonthreadsafe yes lib.so x.1.0 \"\" \"\"");
  ExpectBad("b u2.0 nonthreadsafe default \"\" x.1.0 \"\" \"\"");
  for (const char* version : {"1.0", "x.1", ".1.0", "x.y.0", "x.1.0.0"}) {
    ExpectBad(std::string("b u2.0 nonthreadsafe default lib.so ") + version + " \"\" \"\"");
  }
  ExpectBad("b u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"open");
  ExpectBad("b u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"ends with \\");
  ExpectBad(std::string("b u2.0 nonthreadsafe default lib.so x.1.0 \"") + '\0' + "\" \"\"");
  ExpectBad(std::string(256, 'n') + " u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\"");
}

TEST(DatConf, LongestName) {
  const std::string name(255, 'n');
  EXPECT_THAT(Names(ParseDatConf(name + " u2.0 nonthreadsafe default l x.1.0 \"\" \"\"")),
              ElementsAre(name));
}

TEST(DatConf, C012_OnlyDefaultEntriesForUserPrograms) {
  const DatConf conf = ParseDatConf(
      "k k2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\"\n"
      "n u2.0 nonthreadsafe nondefault lib.so x.1.0 \"\" \"\"\n"
      "a u2.0 nonthreadsafe default lib.so x.1.0 \"\" \"\"\n");
  EXPECT_THAT(conf.bad_lines, IsEmpty());
  EXPECT_THAT(Names(conf), ElementsAre("a"));
}

TEST(DatConf, EveryBlankSeparatesWords) {
  for (const char blank : {' ', '\t', '\r', '\v', '\f'}) {
    std::string line = "a u2.0 nonthreadsafe default lib.so x.1.0 \"p q\" \"\"";
    for (char& c : line) {
      if (c == ' ') c = blank;
    }
    const DatConf conf = ParseDatConf(line);
    EXPECT_THAT(Names(conf), ElementsAre("a")) << static_cast<int>(blank);
    EXPECT_THAT(conf.bad_lines, IsEmpty()) << static_cast<int>(blank);
  }
}

TEST(DatConf, AnEntryReadsBackFromItsLine) {
  for (const char* name : {"# odd \"name\"", "#name", "\"name\"", "na\vme", "na\\me", "name"}) {
    for (const bool thread_safe : {false, true}) {
      Entry entry;
      entry.name = name;
      entry.major = 1;
      entry.minor = 2;
      entry.thread_safe = thread_safe;
      entry.library = "/a b/lib\\.so";
      entry.library_version = "x.1.0";
      entry.parameters = "eth0 0";
      entry.platform = "d=1 # \"2\"";
      const std::string line = ToLine(entry);
      const DatConf conf = ParseDatConf(line);
      ASSERT_EQ(conf.entries.size(), 1u) << line;
      EXPECT_EQ(conf.entries[0].name, entry.name);
      EXPECT_EQ(conf.entries[0].major, entry.major);
      EXPECT_EQ(conf.entries[0].minor, entry.minor);
      EXPECT_EQ(conf.entries[0].thread_safe, entry.thread_safe);
      EXPECT_EQ(conf.entries[0].library, entry.library);
      EXPECT_EQ(conf.entries[0].library_version, entry.library_version);
      EXPECT_EQ(conf.entries[0].parameters, entry.parameters);
      EXPECT_EQ(conf.entries[0].platform, entry.platform);
      EXPECT_EQ(ToLine(conf.entries[0]), line);
    }
  }
}

// If it were left out, the next word would take its place.
TEST(DatConf, AnEmptyWordIsWritten) {
  Entry entry;
  entry.name = "a";
  EXPECT_EQ(ToLine(entry), "a u0.0 nonthreadsafe default \"\" \"\" \"\" \"\"");
}

}  // namespace
}  // namespace viaduct::registry
