#include "tests/bench/program.h"
#include "tests/bench/vipl_side.h"

int main(int argc, char** argv) {
  return viaduct::bench::Main<viaduct::bench::ViplSide>(argc, argv);
}
