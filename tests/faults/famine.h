// A process without free descriptors.
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

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_FAULTS_FAMINE_H_
