// What keeps a user from the files through which RDMA devices are reached.
#ifndef VIADUCT_TOOLS_DATINFO_RDMA_FILES_H_
#define VIADUCT_TOOLS_DATINFO_RDMA_FILES_H_

#include <string>
#include <vector>

namespace viaduct::datinfo {

struct Trouble {
  std::string finding;
  std::string cure;
};

// The troubles with `folder`, which is /dev/infiniband on every machine: it must have rdma_cm and a
// uverbs file, and all of these that it has must be open to this user.
std::vector<Trouble> RdmaFileTroubles(const std::string& folder);

}  // namespace viaduct::datinfo

#endif  // VIADUCT_TOOLS_DATINFO_RDMA_FILES_H_
