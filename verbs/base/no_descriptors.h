// For tests: a process that is out of descriptors.
#ifndef VIADUCT_VERBS_BASE_NO_DESCRIPTORS_H_
#define VIADUCT_VERBS_BASE_NO_DESCRIPTORS_H_

#include <sys/resource.h>

namespace viaduct::verbs {

// No descriptor can be opened while it lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {0, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_;
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_NO_DESCRIPTORS_H_
