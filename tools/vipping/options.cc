#include "tools/vipping/options.h"

#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace viaduct::vipping {
namespace {

constexpr char kHelp[] =
    "vipping - latency and bandwidth between two VIA end points\n"
    "\n"
    "usage: vipping [OPTION]... HOST        measures to HOST, where vipping --listen runs\n"
    "       vipping --listen [OPTION]...    answers, one client after the other\n"
    "\n"
    "What is measured\n"
    "  -t, --test=latency|bandwidth   half of a round trip, or a stream (latency)\n"
    "  -o, --operation=send|write     messages, or RDMA writes (send)\n"
    "  -b, --bytes=N[K|M]             size of a message, up to 16M (8; 64K for bandwidth)\n"
    "  -c, --completion=poll|wait|cq  how both ends learn of completions: by VipSendDone and\n"
    "                                 VipRecvDone, by VipSendWait and VipRecvWait, or by "
    "VipCQWait\n"
    "                                 (poll)\n"
    "  -r, --reliability=ud|rd|rr     unreliable delivery, reliable delivery, reliable reception "
    "(rd)\n"
    "  -q, --depth=N                  descriptors posted at a time, 2 to 1024 (64)\n"
    "  -n, --count=N                  messages to measure (10000)\n"
    "  -T, --seconds=S                measure for so long instead\n"
    "  -w, --warmup=N                 round trips before, not counted (100)\n"
    "\n"
    "Where\n"
    "  -d, --device=NIC               name of the NIC, as VipOpenNic takes it (nic0)\n"
    "  -s, --service=NAME             discriminator of the server, up to 16 characters (vipping)\n"
    "  -l, --listen                   be the server\n"
    "  -1, --once                     with --listen: end after one client\n"
    "      --timeout=S                longest silence of the other end, and how long a client "
    "looks\n"
    "                                 for a server (10)\n"
    "\n"
    "What is printed\n"
    "  -H, --histogram                all latencies by size\n"
    "  -j, --json                     one JSON object instead of text\n"
    "  -Q, --quiet                    no progress on standard error\n"
    "  -h, --help      -V, --version\n"
    "\n"
    "A run that takes longer than a second tells its progress on standard error every second. An "
    "RDMA\n"
    "write whose completion is polled is awaited in memory; otherwise it carries immediate data "
    "and\n"
    "takes a receive. Exit status: 0, 1 if something failed, 2 for a wrong command line.\n"
    "\n"
    "examples\n"
    "  vipping --listen &\n"
    "  vipping localhost                                        8-byte round trips, polled\n"
    "  vipping -b 1M -t bandwidth -o write --seconds=5 ahost    a stream of RDMA writes for 5 s\n"
    "  vipping -c wait -r rr -H ahost                           sleeping ends, confirmed "
    "messages\n";

struct Level {
  const char* name;
  VIP_RELIABILITY_LEVEL level;
};
constexpr Level kLevels[] = {{"ud", VIP_SERVICE_UNRELIABLE},
                             {"rd", VIP_SERVICE_RELIABLE_DELIVERY},
                             {"rr", VIP_SERVICE_RELIABLE_RECEPTION}};

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
  *out = std::strtod(text, &end);
  return end != text && *end == '\0' && *out > 0 && *out < 1e6;
}

bool ParseLevel(const char* text, VIP_RELIABILITY_LEVEL* out) {
  for (const Level& level : kLevels) {
    if (std::strcmp(text, level.name) == 0) {
      *out = level.level;
      return true;
    }
  }
  return false;
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
    case 'r':
      return ParseLevel(value, &options->level);
    case 'b':
      *sized = true;
      if (!ParseCount(value, 0, kMaxBytes, &number)) return false;
      parameters.bytes = static_cast<uint32_t>(number);
      return true;
    case 'q':
      if (!ParseCount(value, 2, kMaxDepth, &number)) return false;
      parameters.depth = static_cast<uint32_t>(number);
      return true;
    case 'n':
      return ParseCount(value, 1, UINT64_MAX >> 8, &options->count);
    case 'w':
      return ParseCount(value, 0, UINT64_MAX >> 8, &options->warmup);
    case 'T':
      return ParseSeconds(value, &options->seconds);
    case 'O':
      if (!ParseCount(value, 1, 86400, &number)) return false;
      options->timeout = static_cast<int>(number);
      return true;
    case 'd':
      options->nic = value;
      return !options->nic.empty();
    case 's':
      options->service = value;
      return !options->service.empty() && options->service.size() <= 16;
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
    case 'Q':
      options->quiet = true;
      return true;
    default:
      return false;
  }
}

constexpr option kLongOptions[] = {{"test", required_argument, nullptr, 't'},
                                   {"operation", required_argument, nullptr, 'o'},
                                   {"bytes", required_argument, nullptr, 'b'},
                                   {"completion", required_argument, nullptr, 'c'},
                                   {"reliability", required_argument, nullptr, 'r'},
                                   {"depth", required_argument, nullptr, 'q'},
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
                                   {"quiet", no_argument, nullptr, 'Q'},
                                   {"help", no_argument, nullptr, 'h'},
                                   {"version", no_argument, nullptr, 'V'},
                                   {nullptr, 0, nullptr, 0}};

const char* LongName(int option) {
  for (const struct option& known : kLongOptions) {
    if (known.name != nullptr && known.val == option) return known.name;
  }
  return "?";
}

int Complain(const std::string& what) {
  std::fprintf(stderr, "vipping: %s; see vipping --help\n", what.c_str());
  return 2;
}

}  // namespace

const char* NameOfLevel(VIP_RELIABILITY_LEVEL level) {
  for (const Level& known : kLevels) {
    if (known.level == level) return known.name;
  }
  return "?";
}

bool ParseOptions(int argc, char** argv, Options* options, int* status) {
  bool sized = false;
  int option;
  while ((option = getopt_long(argc, argv, "t:o:b:c:r:q:n:T:w:d:s:l1HjQhV", kLongOptions,
                               nullptr)) != -1) {
    if (option == 'h') {
      std::fputs(kHelp, stdout);
      *status = 0;
      return false;
    }
    if (option == 'V') {
      std::puts("vipping " VIADUCT_VERSION);
      *status = 0;
      return false;
    }
    if (option == '?') {  // getopt has said why
      *status = 2;
      return false;
    }
    if (!Take(option, optarg, options, &sized)) {
      *status = Complain(std::string("--") + LongName(option) + " does not take '" + optarg + "'");
      return false;
    }
  }
  Parameters& parameters = options->parameters;
  if (!sized && parameters.test == Test::kBandwidth) parameters.bytes = 65536;
  if (options->count == 0 && options->seconds == 0) options->count = 10000;
  std::string wrong;
  if (options->listen && optind != argc) wrong = "a server takes no host";
  if (!options->listen && optind + 1 != argc) wrong = "one host is wanted";
  if (options->count != 0 && options->seconds != 0)
    wrong = "--count and --seconds exclude each other";
  if (parameters.operation == Operation::kWrite && parameters.bytes == 0) {
    wrong = "a write has at least one byte";
  }
  if (!wrong.empty()) {
    *status = Complain(wrong);
    return false;
  }
  if (!options->listen) options->host = argv[optind];
  return true;
}

}  // namespace viaduct::vipping
