// vipping: latency and bandwidth between two VIA end points. See vipping --help and vipping.1.
#include <cstdio>
#include <exception>

#include "tools/vipping/measure.h"
#include "tools/vipping/options.h"
#include "tools/vipping/report.h"

int main(int argc, char** argv) {
  using namespace viaduct::vipping;  // NOLINT(build/namespaces)
  Options options;
  int status = 0;
  if (!ParseOptions(argc, argv, &options, &status)) return status;
  try {
    const Nic nic(options.nic);
    if (options.listen) {
      Serve(nic, options);
      return 0;
    }
    const Result result = Measure(nic, options);
    const VIADUCT_DEVICE_INFO device = nic.Device();
    const std::string report =
        options.json ? JsonReport(options, device, result) : TextReport(options, device, result);
    std::fputs(report.c_str(), stdout);
    if (std::fflush(stdout) != 0) throw Failure("standard output cannot be written");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "vipping: %s\n", e.what());
    return 1;
  }
}
