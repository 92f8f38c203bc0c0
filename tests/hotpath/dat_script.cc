#include "tests/bench/dat_side.h"
#include "tests/hotpath/script.h"

int main(int argc, char** argv) {
  return viaduct::hotpath::RunScript<viaduct::bench::DatSide>(argc, argv);
}
