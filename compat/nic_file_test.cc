#include "compat/nic_file.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "gtest/gtest.h"

namespace viaduct::compat {
namespace {

TEST(NicFileTest, TwoOrThreeColumns) {
  const NicFile file = NicFile::Parse(
      "# names\n"
      "\n"
      "clan0 192.0.2.1 # the lab's\n"
      "  /dev/via_eth0\tenp3s0   iwarp\n");
  ASSERT_NE(file.Find("clan0"), nullptr);
  EXPECT_EQ(file.Find("clan0")->interface, "192.0.2.1");
  EXPECT_EQ(file.Find("clan0")->device, "auto");
  ASSERT_NE(file.Find("/dev/via_eth0"), nullptr);
  EXPECT_EQ(file.Find("/dev/via_eth0")->device, "iwarp");
  EXPECT_EQ(file.Find("#"), nullptr);
  EXPECT_EQ(file.CatchAll(), nullptr);
  EXPECT_TRUE(file.skipped().empty());
}

TEST(NicFileTest, TheFirstLineOfANameCounts) {
  const NicFile file = NicFile::Parse("a one\na two\n* three\n* four\n");
  EXPECT_EQ(file.Find("a")->interface, "one");
  EXPECT_EQ(file.CatchAll()->interface, "three");
}

TEST(NicFileTest, OtherLinesAreSkipped) {
  const NicFile file = NicFile::Parse("alone\na b c d\nlast eth0");
  EXPECT_EQ(file.skipped(), (std::vector<int>{1, 2}));
  EXPECT_NE(file.Find("last"), nullptr);
}

TEST(NicFileTest, LinesThatAreSkippedAreSaid) {
  std::string path = std::string(getenv("TEST_TMPDIR")) + "/vip_nics-XXXXXX";  // each is said once
  close(mkstemp(path.data()));
  std::ofstream(path) << "clan0 eth0\nalone\n";
  testing::internal::CaptureStderr();
  EXPECT_NE(NicFile::Read(path).Find("clan0"), nullptr);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find(path + ":2: "), std::string::npos) << said;
  unlink(path.c_str());
}

TEST(NicFileTest, AFileThatIsNotThereSaysNothing) {
  EXPECT_EQ(NicFile::Read("/nonexistent/vip_nics").CatchAll(), nullptr);
}

}  // namespace
}  // namespace viaduct::compat
