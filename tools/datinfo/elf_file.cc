#include "tools/datinfo/elf_file.h"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <iterator>

namespace viaduct::datinfo {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

// The bytes of a file, by offset; nothing outside them is ever read.
class Bytes {
 public:
  explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

  template <typename T>
  bool Read(uint64_t offset, T* value) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof *value) return false;
    memcpy(value, bytes_.data() + offset, sizeof *value);
    return true;
  }
  std::string Text(uint64_t offset) const {
    if (offset >= bytes_.size()) return "";
    return std::string(bytes_.data() + offset,
                       strnlen(bytes_.data() + offset, bytes_.size() - offset));
  }

 private:
  const std::string bytes_;
};

std::vector<Elf64_Phdr> ProgramHeaders(const Bytes& bytes, const Elf64_Ehdr& header) {
  std::vector<Elf64_Phdr> headers;
  Elf64_Phdr segment;
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    if (!bytes.Read(header.e_phoff + uint64_t{i} * sizeof segment, &segment)) break;
    headers.push_back(segment);
  }
  return headers;
}

// Where in the file the byte at that address is.
std::optional<uint64_t> OffsetOf(const std::vector<Elf64_Phdr>& headers, uint64_t address) {
  for (const Elf64_Phdr& segment : headers) {
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz) {
      return segment.p_offset + (address - segment.p_vaddr);
    }
  }
  return std::nullopt;
}

std::vector<Elf64_Dyn> DynamicSection(const Bytes& bytes, const std::vector<Elf64_Phdr>& headers) {
  std::vector<Elf64_Dyn> section;
  for (const Elf64_Phdr& segment : headers) {
    if (segment.p_type != PT_DYNAMIC) continue;
    Elf64_Dyn entry;
    for (uint64_t at = 0; at < segment.p_filesz; at += sizeof entry) {
      if (!bytes.Read(segment.p_offset + at, &entry) || entry.d_tag == DT_NULL) break;
      section.push_back(entry);
    }
  }
  return section;
}

}  // namespace

std::optional<ElfFile> ReadElfFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  const std::streamoff size = in.tellg();
  if (size < 0 || static_cast<uint64_t>(size) > kMaxBytes) return std::nullopt;
  in.seekg(0);
  const Bytes bytes(std::string(std::istreambuf_iterator<char>(in), {}));
  Elf64_Ehdr header;
  if (!bytes.Read(0, &header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return std::nullopt;
  }
  const std::vector<Elf64_Phdr> headers = ProgramHeaders(bytes, header);
  const std::vector<Elf64_Dyn> dynamic = DynamicSection(bytes, headers);
  std::optional<uint64_t> strings;
  for (const Elf64_Dyn& entry : dynamic) {
    if (entry.d_tag == DT_STRTAB) strings = OffsetOf(headers, entry.d_un.d_ptr);
  }
  ElfFile file;
  if (!strings) return file;
  for (const Elf64_Dyn& entry : dynamic) {
    const std::string text = bytes.Text(*strings + entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED) file.needed.push_back(text);
    if (entry.d_tag == DT_RPATH) file.rpath = text;
    if (entry.d_tag == DT_RUNPATH) file.runpath = text;
  }
  return file;
}

}  // namespace viaduct::datinfo
