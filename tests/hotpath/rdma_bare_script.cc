#include "tests/hotpath/rdma_script.h"
#include "tests/rdma_mock/bare_side.h"

int main(int argc, char** argv) {
  return viaduct::hotpath::RunQuietScript<viaduct::bench::BareSide>(argc, argv);
}
