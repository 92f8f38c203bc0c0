#ifndef VIADUCT_TOOLS_DATPING_OPTIONS_H_
#define VIADUCT_TOOLS_DATPING_OPTIONS_H_

#include <cstdint>
#include <string>

#include "tools/datping/parameters.h"

namespace viaduct::datping {

struct Options {
  bool listen = false;
  bool once = false;
  std::string host;
  std::string adapter = "soft0";
  uint64_t service = 7470;
  Parameters parameters;
  uint64_t count = 0;  // messages of each connection; 0: by seconds
  double seconds = 0;
  uint64_t warmup = 100;
  int timeout = 10;  // seconds
  bool histogram = false;
  bool json = false;
};

// What the command line asks for. Returns false when there is nothing left to do: `*status` is then
// the exit status, and what is to be said has been said.
bool ParseOptions(int argc, char** argv, Options* options, int* status);

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_OPTIONS_H_
