#include "tests/bench/dat_side.h"
#include "tests/bench/program.h"

int main(int argc, char** argv) {
  return viaduct::bench::Main<viaduct::bench::DatSide>(argc, argv);
}
