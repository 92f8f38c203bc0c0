// What a program or library says about the libraries that it needs.
#ifndef VIADUCT_TOOLS_DATINFO_ELF_FILE_H_
#define VIADUCT_TOOLS_DATINFO_ELF_FILE_H_

#include <optional>
#include <string>
#include <vector>

namespace viaduct::datinfo {

struct ElfFile {
  std::vector<std::string> needed;
  std::string rpath;    // DT_RPATH: searched before LD_LIBRARY_PATH
  std::string runpath;  // DT_RUNPATH: after it, and it switches DT_RPATH off
};

// Null if the file is no 64-bit ELF file of this machine or cannot be read. Takes any bytes.
std::optional<ElfFile> ReadElfFile(const std::string& path);

}  // namespace viaduct::datinfo

#endif  // VIADUCT_TOOLS_DATINFO_ELF_FILE_H_
