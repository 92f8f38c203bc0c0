#ifndef VIADUCT_TOOLS_VIPPING_OPTIONS_H_
#define VIADUCT_TOOLS_VIPPING_OPTIONS_H_

#include <vipl.h>

#include <string>

#include "tools/ping/options.h"
#include "tools/vipping/parameters.h"

namespace viaduct::vipping {

struct Options : ping::Settings {
  Options() { device = "nic0"; }

  Parameters parameters;
  std::string service = "vipping";
  VIP_RELIABILITY_LEVEL level = VIP_SERVICE_RELIABLE_DELIVERY;
  bool quiet = false;
};

const char* NameOfLevel(VIP_RELIABILITY_LEVEL level);

// What the command line asks for. Returns false if there is nothing left to do: `*status` is then
// the exit status, and everything has been printed.
bool ParseOptions(int argc, char** argv, Options* options, int* status);

}  // namespace viaduct::vipping

#endif  // VIADUCT_TOOLS_VIPPING_OPTIONS_H_
