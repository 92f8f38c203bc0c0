#include "tools/datping/options.h"

#include <dat2/udat.h>
#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

namespace viaduct::datping {
namespace {

constexpr char kHelp[] =
    "datping - latency, bandwidth and connection rate between two DAT endpoints\n"
    "\n"
    "usage: datping [OPTION]... HOST        measures to HOST, where datping --listen runs\n"
    "       datping --listen [OPTION]...    answers any number of clients at a time\n"
    "\n"
    "What is measured\n"
    "  -t, --test=latency|bandwidth|connect\n"
    "                                 half of a round trip (of a read: the whole), a stream, or\n"
    "                                 connections made and ended (latency)\n"
    "  -o, --operation=send|write|read\n"
    "                                 messages, RDMA writes or RDMA reads (send)\n"
    "  -b, --bytes=N[K|M]             size of a message, up to 16M (8; 64K for bandwidth)\n"
    "  -c, --completion=poll|wait|cno how both ends learn of completions: by dat_evd_dequeue, by\n"
    "                                 dat_evd_wait, or by dat_cno_wait (poll)\n"
    "  -q, --depth=N                  requests posted at a time, 2 to 1024 (64)\n"
    "  -C, --connections=N            as many connections, each with a thread, up to 256 (1)\n"
    "  -n, --count=N                  messages, or connections, of each (10000; 1000)\n"
    "  -T, --seconds=S                measure for so long instead\n"
    "  -w, --warmup=N                 round trips before, not counted (100)\n"
    "\n"
    "Where\n"
    "  -d, --device=ADAPTER           name of the adapter, as dat_ia_open takes it (soft0)\n"
    "  -s, --service=NUMBER           connection qualifier of the server (7470)\n"
    "  -l, --listen                   be the server\n"
    "  -1, --once                     with --listen: end with the first client\n"
    "      --timeout=S                longest silence of the other end, and how long a client\n"
    "                                 looks for a server (10)\n"
    "\n"
    "What is printed\n"
    "  -H, --histogram                all latencies by size\n"
    "  -j, --json                     one JSON object instead of text\n"
    "  -h, --help      -V, --version\n"
    "\n"
    "An RDMA write whose completion is polled is awaited in memory; otherwise a message without\n"
    "bytes follows it. Exit status: 0, 1 if something failed, 2 for a wrong command line.\n"
    "\n"
    "examples\n"
    "  datping --listen &\n"
    "  datping localhost                                        8-byte round trips, polled\n"
    "  datping -b 1M -t bandwidth -o read --seconds=5 ahost     a stream of RDMA reads for 5 s\n"
    "  datping -c cno -C 4 -H ahost                             four ends that sleep on notifiers\n"
    "  datping -t connect ahost                                 connections per second\n";

bool ParseCount(const char* text, uint64_t least, uint64_t most, uint64_t* out) {
  char* end = nullptr;
  errno = 0;
  uint64_t value = std::strtoull(text, &end, 10);
  if (errno != 0 || end == text || *text == '-') return false;
  uint64_t unit = 1;
  if (*end == 'K' || *end == 'k') unit = 1u << 10;
  if (*end == 'M' || *end == 'm') unit = 1u << 20;
  if (unit != 1) ++end;
  if (*end != '\0' || value > most / unit) return false;
  value *= unit;
  if (value < least) return false;
  *out = value;
  return true;
}

bool ParseSeconds(const char* text, double* out) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0) || value > 1e6) return false;
  *out = value;
  return true;
}

// False: the value is wrong.
bool Take(int option, const char* value, Options* options, bool* sized) {
  Parameters& parameters = options->parameters;
  uint64_t number = 0;
  switch (option) {
    case 't':
      return Parse(value, &parameters.test);
    case 'o':
      return Parse(value, &parameters.operation);
    case 'c':
      return Parse(value, &parameters.completion);
    case 'b':
      *sized = true;
      if (!ParseCount(value, 0, kMaxBytes, &number)) return false;
      parameters.bytes = static_cast<uint32_t>(number);
      return true;
    case 'q':
      if (!ParseCount(value, 2, kMaxDepth, &number)) return false;
      parameters.depth = static_cast<uint32_t>(number);
      return true;
    case 'C':
      if (!ParseCount(value, 1, kMaxConnections, &number)) return false;
      parameters.connections = static_cast<uint32_t>(number);
      return true;
    case 'n':
      return ParseCount(value, 1, UINT64_MAX >> 8, &options->count);
    case 'w':
      return ParseCount(value, 0, UINT64_MAX >> 8, &options->warmup);
    case 'T':
      return ParseSeconds(value, &options->seconds);
    case 'O':
      if (!ParseCount(value, 1, 4000, &number)) return false;
      options->timeout = static_cast<int>(number);
      return true;
    case 'd':
      options->adapter = value;
      return !options->adapter.empty();
    case 's':
      return ParseCount(value, 1, UINT64_MAX, &options->service);
    case 'l':
      options->listen = true;
      return true;
    case '1':
      options->once = true;
      return true;
    case 'H':
      options->histogram = true;
      return true;
    case 'j':
      options->json = true;
      return true;
    default:
      return false;
  }
}

constexpr option kLongOptions[] = {{"test", required_argument, nullptr, 't'},
                                   {"operation", required_argument, nullptr, 'o'},
                                   {"bytes", required_argument, nullptr, 'b'},
                                   {"completion", required_argument, nullptr, 'c'},
                                   {"depth", required_argument, nullptr, 'q'},
                                   {"connections", required_argument, nullptr, 'C'},
                                   {"count", required_argument, nullptr, 'n'},
                                   {"seconds", required_argument, nullptr, 'T'},
                                   {"warmup", required_argument, nullptr, 'w'},
                                   {"device", required_argument, nullptr, 'd'},
                                   {"service", required_argument, nullptr, 's'},
                                   {"listen", no_argument, nullptr, 'l'},
                                   {"once", no_argument, nullptr, '1'},
                                   {"timeout", required_argument, nullptr, 'O'},
                                   {"histogram", no_argument, nullptr, 'H'},
                                   {"json", no_argument, nullptr, 'j'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {"version", no_argument, nullptr, 'V'},
                                   {nullptr, 0, nullptr, 0}};

int Complain(const std::string& what) {
  std::fprintf(stderr, "datping: %s (datping --help)\n", what.c_str());
  return 2;
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options* options, int* status) {
  bool sized = false;
  int letter;
  while ((letter = getopt_long(argc, argv, "t:o:b:c:q:C:n:T:w:d:s:l1HjhV", kLongOptions,
                               nullptr)) != -1) {
    if (letter == 'h' || letter == 'V') {
      std::fputs(letter == 'h' ? kHelp : "datping " VIADUCT_VERSION "\n", stdout);
      *status = 0;
      return false;
    }
    if (letter == '?') {  // getopt_long has said what
      *status = 2;
      return false;
    }
    if (!Take(letter, optarg, options, &sized)) {
      *status = Complain(std::string("no such value: '") + optarg + "'");
      return false;
    }
  }
  Parameters& parameters = options->parameters;
  if (!sized && parameters.test == Test::kBandwidth) parameters.bytes = 65536;
  std::string wrong;
  if (options->listen && optind != argc) wrong = "a server takes no host";
  if (!options->listen && optind + 1 != argc) wrong = "one host is wanted";
  if (options->count != 0 && options->seconds != 0) {
    wrong = "--count and --seconds exclude each other";
  }
  if (parameters.operation == Operation::kWrite && parameters.bytes == 0) {
    wrong = "a write has at least one byte";
  }
  if (!wrong.empty()) {
    *status = Complain(wrong);
    return false;
  }
  if (options->count == 0 && options->seconds == 0) {
    options->count = parameters.test == Test::kConnect ? 1000 : 10000;
  }
  if (!options->listen) options->host = argv[optind];
  return true;
}

}  // namespace viaduct::datping
