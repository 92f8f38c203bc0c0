// datping: latency, bandwidth and connection rate between two DAT endpoints. See datping --help and
// datping.1.
#include <cstdio>
#include <exception>

#include "tools/datping/measure.h"
#include "tools/datping/options.h"
#include "tools/datping/report.h"

int main(int argc, char** argv) {
  using namespace viaduct::datping;  // NOLINT(build/namespaces)
  Options options;
  int status = 0;
  if (!ParseOptions(argc, argv, &options, &status)) return status;
  try {
    const Adapter adapter(options.adapter);
    if (options.listen) {
      Serve(adapter, options);
      return 0;
    }
    const std::vector<Result> results = Measure(adapter, options);
    const std::string report =
        options.json ? JsonReport(options, results) : TextReport(options, results);
    std::fputs(report.c_str(), stdout);
    if (std::fflush(stdout) != 0) throw Failure("standard output cannot be written");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "datping: %s\n", e.what());
    return 1;
  }
}
