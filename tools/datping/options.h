#ifndef VIADUCT_TOOLS_DATPING_OPTIONS_H_
#define VIADUCT_TOOLS_DATPING_OPTIONS_H_

#include <cstdint>

#include "tools/datping/parameters.h"
#include "tools/ping/options.h"

namespace viaduct::datping {

// `count` is that of each connection.
struct Options : ping::Settings {
  Options() { device = "soft0"; }

  Parameters parameters;
  uint64_t service = 7470;
};

// What the command line asks for. Returns false if there is nothing left to do: `*status` is then
// the exit status, and everything has been printed.
bool ParseOptions(int argc, char** argv, Options* options, int* status);

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_OPTIONS_H_
