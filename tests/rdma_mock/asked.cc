#include "tests/rdma_mock/asked.h"

#include "tests/rdma_mock/objects.h"

namespace viaduct::rdma_mock {

int AskedAccess() { return asked.access; }

unsigned AskedPeerAccess() { return asked.peer_access; }

int AskedDelay() { return asked.delay; }

}  // namespace viaduct::rdma_mock
