// For tests: filters that refuse system calls to the process, as those of containers do.
#ifndef VIADUCT_VERBS_BASE_CALL_FILTER_H_
#define VIADUCT_VERBS_BASE_CALL_FILTER_H_

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace viaduct::verbs {

// Installs a filter for the rest of the process's life. False: the kernel has no such filters.
inline bool InstallCallFilter(std::vector<sock_filter> filter) {
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Installs a filter that makes these calls fail with `error`: a kernel without a call says ENOSYS,
// many filters of containers EPERM.
inline bool ForbidCalls(const std::vector<long>& calls, int error) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (long call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(error)));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return InstallCallFilter(std::move(filter));
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_CALL_FILTER_H_
