#include "verbs/rdma/module.h"

#include "verbs/rdma/open.h"

const viaduct::verbs::rdma::Module viaduct_rdma_module = {viaduct::verbs::rdma::ListPorts,
                                                          viaduct::verbs::rdma::Open};
