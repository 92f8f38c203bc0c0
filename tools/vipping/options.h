#ifndef VIADUCT_TOOLS_VIPPING_OPTIONS_H_
#define VIADUCT_TOOLS_VIPPING_OPTIONS_H_

#include <vipl.h>

#include <cstdint>
#include <string>

#include "tools/vipping/parameters.h"

namespace viaduct::vipping {

struct Options {
  bool listen = false;
  bool once = false;
  std::string host;
  std::string nic = "nic0";
  std::string service = "vipping";
  Parameters parameters;
  VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
  uint64_t count = 0;  // messages; 0: by seconds
  double seconds = 0;
  uint64_t warmup = 100;
  int timeout = 10;  // seconds
  bool histogram = false;
  bool json = false;
  bool quiet = false;
};

const char* NameOfLevel(VIP_RELIABILITY_LEVEL level);

// What the command line asks for. Returns false when there is nothing left to do: `*status` is then
// the exit status, and what is to be said has been said.
bool ParseOptions(int argc, char** argv, Options* options, int* status);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_OPTIONS_H_
