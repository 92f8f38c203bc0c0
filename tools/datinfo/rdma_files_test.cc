#include "tools/datinfo/rdma_files.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace viaduct::datinfo {
namespace {

class RdmaFiles : public ::testing::Test {
 protected:
  RdmaFiles() { std::filesystem::create_directory(folder_); }
  ~RdmaFiles() override { std::filesystem::remove_all(folder_); }

  void Make(const char* name) const { std::ofstream(folder_ + "/" + name).put(' '); }
  // The findings without the folder's name; "" if there is none.
  std::string Finding() const {
    std::string all;
    for (const Trouble& trouble : RdmaFileTroubles(folder_)) {
      EXPECT_NE(trouble.cure, "");
      EXPECT_EQ(trouble.finding.rfind(folder_, 0), 0u) << trouble.finding;
      all += trouble.finding.substr(folder_.size());
    }
    return all;
  }

  const std::string folder_ = ::testing::TempDir() + "rdma_files";
};

TEST_F(RdmaFiles, AreAllThere) {
  for (const char* name : {"rdma_cm", "uverbs0", "umad0", "issm0"}) Make(name);
  EXPECT_EQ(Finding(), "");
}

TEST_F(RdmaFiles, NeedTheirFolder) {
  std::filesystem::remove(folder_);
  EXPECT_EQ(Finding(), ": No such file or directory");
}

TEST_F(RdmaFiles, NeedTheConnectionManager) {
  Make("uverbs0");
  EXPECT_EQ(Finding(), " has no rdma_cm");
}

TEST_F(RdmaFiles, NeedADevice) {
  Make("rdma_cm");
  Make("umad0");
  EXPECT_EQ(Finding(), " has no uverbs*");
}

TEST_F(RdmaFiles, MustBeOpen) {
  Make("rdma_cm");
  Make("uverbs0");
  std::filesystem::create_symlink("nowhere", folder_ + "/uverbs1");  // root may open any file
  EXPECT_EQ(Finding(), "/uverbs1: No such file or directory");
}

}  // namespace
}  // namespace viaduct::datinfo
