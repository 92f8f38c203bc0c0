// A process without free descriptors, large files or pages.
#ifndef VIADUCT_TESTS_FAULTS_FAMINE_H_
#define VIADUCT_TESTS_FAULTS_FAMINE_H_

#include <sys/resource.h>

#include <vector>

namespace viaduct::tests {

// As long as it lives no descriptor can be opened in this process: RLIMIT_NOFILE is reached.
class DescriptorFamine {
 public:
  DescriptorFamine();
  ~DescriptorFamine();
  DescriptorFamine(const DescriptorFamine&) = delete;
  DescriptorFamine& operator=(const DescriptorFamine&) = delete;

 private:
  rlimit before_;
  std::vector<int> eaten_;
};

// As long as it lives no file of this process grows beyond a mebibyte: RLIMIT_FSIZE.
class SmallFiles {
 public:
  SmallFiles();
  ~SmallFiles();
  SmallFiles(const SmallFiles&) = delete;
  SmallFiles& operator=(const SmallFiles&) = delete;

 private:
  rlimit before_;
};

// As long as it lives this process gets no more pages: RLIMIT_AS is reached.
class PageFamine {
 public:
  PageFamine();
  ~PageFamine();
  PageFamine(const PageFamine&) = delete;
  PageFamine& operator=(const PageFamine&) = delete;

 private:
  rlimit before_;
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAMINE_H_
