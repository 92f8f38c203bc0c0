#include "tests/bench/dat_side.h"
#include "tests/hotpath/rdma_script.h"

int main(int argc, char** argv) {
  return viaduct::hotpath::RunQuietScript<viaduct::bench::DatSide>(argc, argv);
}
