#include "tools/datinfo/elf_file.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"

namespace viaduct::datinfo {
namespace {

std::string Self() {
  std::ifstream in("/proc/self/exe", std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string Written(const std::string& bytes) {
  std::string path = testing::TempDir() + "/elf";
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(ElfFile, NamesWhatThisProgramNeeds) {
  const std::optional<ElfFile> file = ReadElfFile("/proc/self/exe");
  ASSERT_TRUE(file);
  EXPECT_EQ(std::count(file->needed.begin(), file->needed.end(), "libc.so.6"), 1);
}

TEST(ElfFile, NoElfFile) {
  EXPECT_FALSE(ReadElfFile("/nonexistent"));
  EXPECT_FALSE(ReadElfFile("/proc/self/cmdline"));
  EXPECT_FALSE(ReadElfFile(Written("")));
  EXPECT_FALSE(ReadElfFile(Written("#!/bin/sh\n")));
}

// Whatever a byte of the headers says, nothing outside the file is read. It can only fail by a
// crash.
TEST(ElfFile, DamagedHeaders) {
  const std::string whole = Self().substr(0, 1 << 16);
  for (size_t at = 0; at < 1024; at += 3) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    (void)ReadElfFile(Written(damaged));
  }
  for (size_t size : {size_t{4}, size_t{63}, size_t{64}, size_t{200}, size_t{4096}}) {
    (void)ReadElfFile(Written(whole.substr(0, size)));
  }
}

}  // namespace
}  // namespace viaduct::datinfo
