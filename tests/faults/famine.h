// A process without free descriptors, large files or pages.
#ifndef VIADUCT_TESTS_FAULTS_FAMINE_H_
#define VIADUCT_TESTS_FAULTS_FAMINE_H_

#include <sys/resource.h>

#include <vector>

namespace viaduct::tests {

// As long as it lives this process may have less of a resource.
class LoweredLimit {
 public:
  using Resource = decltype(RLIMIT_NOFILE);

  LoweredLimit(Resource resource, rlim_t limit);
  ~LoweredLimit();
  LoweredLimit(const LoweredLimit&) = delete;
  LoweredLimit& operator=(const LoweredLimit&) = delete;

 private:
  const Resource resource_;
  rlimit before_;
};

// As long as it lives no descriptor can be opened in this process: RLIMIT_NOFILE is reached.
class DescriptorFamine {
 public:
  DescriptorFamine();
  ~DescriptorFamine();
  DescriptorFamine(const DescriptorFamine&) = delete;
  DescriptorFamine& operator=(const DescriptorFamine&) = delete;

 private:
  const LoweredLimit limit_;
  std::vector<int> eaten_;
};

// As long as it lives no file of this process grows beyond a mebibyte.
class SmallFiles : LoweredLimit {
 public:
  SmallFiles() : LoweredLimit(RLIMIT_FSIZE, 1 << 20) {}
};

// As long as it lives this process gets no more pages: it already has more than a mebibyte.
class PageFamine : LoweredLimit {
 public:
  PageFamine() : LoweredLimit(RLIMIT_AS, 1 << 20) {}
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAMINE_H_
