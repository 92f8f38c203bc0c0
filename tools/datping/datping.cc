// datping: latency, bandwidth and connection rate between two DAT endpoints. See datping --help and
// datping.1.
#include "tools/datping/measure.h"
#include "tools/datping/options.h"
#include "tools/datping/report.h"

namespace viaduct::datping {
namespace {

int Main(int argc, char** argv) {
  Options options;
  int status = 0;
  if (!ParseOptions(argc, argv, &options, &status)) return status;
  return ping::Run("datping", [&] {
    const Adapter adapter(options.device);
    if (options.listen) {
      Serve(adapter, options);
      return std::string();
    }
    const std::vector<Result> results = Measure(adapter, options);
    return options.json ? JsonReport(options, results) : TextReport(options, results);
  });
}

}  // namespace
}  // namespace viaduct::datping

int main(int argc, char** argv) { return viaduct::datping::Main(argc, argv); }
