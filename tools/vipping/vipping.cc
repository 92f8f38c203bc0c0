// vipping: latency and bandwidth between two VIA end points. See vipping --help and vipping.1.
#include "tools/vipping/measure.h"
#include "tools/vipping/options.h"
#include "tools/vipping/report.h"

namespace viaduct::vipping {
namespace {

int Main(int argc, char** argv) {
  Options options;
  int status = 0;
  if (!ParseOptions(argc, argv, &options, &status)) return status;
  return ping::Run("vipping", [&] {
    const Nic nic(options.device);
    if (options.listen) {
      Serve(nic, options);
      return std::string();
    }
    const Result result = Measure(nic, options);
    const VIADUCT_DEVICE_INFO device = nic.Device();
    return options.json ? JsonReport(options, device, result) : TextReport(options, device, result);
  });
}

}  // namespace
}  // namespace viaduct::vipping

int main(int argc, char** argv) { return viaduct::vipping::Main(argc, argv); }
