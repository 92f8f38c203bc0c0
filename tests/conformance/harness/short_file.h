// Memory that is mapped, but faults when it is touched.
#ifndef VIADUCT_TESTS_CONFORMANCE_HARNESS_SHORT_FILE_H_
#define VIADUCT_TESTS_CONFORMANCE_HARNESS_SHORT_FILE_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

#include "gtest/gtest.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

namespace viaduct::tests {

// Two pages of a file of one byte: the second page lies beyond the end of the file.
class ShortFile {
 public:
  ShortFile() {
    const int file = memfd_create("short", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file, 1), 0);
    data_ = mmap(nullptr, 2 * page_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(data_, MAP_FAILED);
    close(file);
  }
  ~ShortFile() { munmap(data_, 2 * page_); }
  ShortFile(const ShortFile&) = delete;
  ShortFile& operator=(const ShortFile&) = delete;

  // Whether the kernel tells a library about such memory; before Linux 5.14 it does not.
  bool IsTold() const { return madvise(data_, page_, MADV_POPULATE_READ) == 0; }
  void* data() const { return data_; }
  size_t page() const { return page_; }

 private:
  const size_t page_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* data_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_HARNESS_SHORT_FILE_H_
