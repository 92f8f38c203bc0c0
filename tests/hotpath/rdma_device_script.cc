#include "tests/bench/device_side.h"
#include "tests/hotpath/rdma_script.h"

int main(int argc, char** argv) {
  return viaduct::hotpath::RunQuietScript<viaduct::bench::DeviceSide>(argc, argv);
}
