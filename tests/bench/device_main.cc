#include "tests/bench/device_side.h"
#include "tests/bench/program.h"

int main(int argc, char** argv) {
  return viaduct::bench::Main<viaduct::bench::DeviceSide>(argc, argv);
}
