// datinfo(1).
#include <dat2/udat.h>
#include <getopt.h>

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>

#include "tools/datinfo/report.h"
#include "tools/report_output.h"

namespace viaduct::datinfo {
namespace {

constexpr char kUsage[] =
    "usage: datinfo [-j] [-e] [ADAPTER...]\n"
    "       datinfo [-j] --check [PROGRAM]\n"
    "Lists the adapters of uDAPL, or the attributes of those that are named.\n"
    "  -e           the settings too\n"
    "  --check      what stands in the way on this machine, with its cure; also which libraries\n"
    "               PROGRAM would load\n"
    "  -j, --json   the same as a JSON document\n"
    "  -h, --help   -V, --version\n"
    "Exit status: 0, 1 if an adapter could not be opened or a check failed, 2 for a wrong command\n"
    "line.\n";

// An earlier write, of what did not fit into the buffer, may have failed.
void FinishOutput() {
  if (fflush(stdout) != 0 || ferror(stdout) != 0) {
    throw std::runtime_error("standard output cannot be written");
  }
}

int Run(int argc, char** argv) {
  bool settings = false, check = false, json = false;
  const option options[] = {{"check", no_argument, nullptr, 'c'},
                            {"json", no_argument, nullptr, 'j'},
                            {"help", no_argument, nullptr, 'h'},
                            {"version", no_argument, nullptr, 'V'},
                            {nullptr, 0, nullptr, 0}};
  for (int c; (c = getopt_long(argc, argv, "ejhV", options, nullptr)) != -1;) {
    switch (c) {
      case 'e':
        settings = true;
        break;
      case 'c':
        check = true;
        break;
      case 'j':
        json = true;
        break;
      case 'h':
        fputs(kUsage, stdout);
        FinishOutput();
        return 0;
      case 'V':
        puts("datinfo " VIADUCT_VERSION);
        FinishOutput();
        return 0;
      default:
        fputs(kUsage, stderr);
        return 2;
    }
  }
  if (check && (argc - optind > 1 || (optind < argc && *argv[optind] == '\0'))) {
    fputs(kUsage, stderr);
    return 2;
  }
  ReportOutput output;
  Json document = Json::object();
  bool good = true;
  if (check) {
    document["checks"] = Checks(optind < argc ? argv[optind] : "");
    good = AllPassed(document["checks"]);
  } else if (optind < argc) {
    document["adapters"] = Json::array();
    for (; optind < argc; ++optind) {
      document["adapters"].push_back(Adapter(argv[optind]));
      good = good && !document["adapters"].back().contains("error");
    }
  } else {
    document["providers"] = Providers();
  }
  if (settings) document["settings"] = Settings();
  // Names in dat.conf may hold any bytes.
  const std::string text =
      json ? document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n" : ToText(document);
  output.Print(text);
  return good ? 0 : 1;
}

}  // namespace
}  // namespace viaduct::datinfo

int main(int argc, char** argv) {
  try {
    return viaduct::datinfo::Run(argc, argv);
  } catch (const std::exception& e) {
    fprintf(stderr, "datinfo: %s\n", e.what());
    return 1;
  }
}
