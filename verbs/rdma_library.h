// libviaduct-rdma.so.1, opened on first use where this machine has an RDMA device.
#ifndef VIADUCT_VERBS_RDMA_LIBRARY_H_
#define VIADUCT_VERBS_RDMA_LIBRARY_H_

#include <string>

#include "verbs/rdma/module.h"

namespace viaduct::verbs {

// True also if the device cannot be used here.
bool KernelHasRdmaDevice(const std::string& name);

// Null: no device, or the library or rdma-core is missing (which is logged once); the next call
// looks again. Throws std::bad_alloc if memory or descriptors are short now. Any thread.
const rdma::Module* RdmaLibrary();

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_RDMA_LIBRARY_H_
