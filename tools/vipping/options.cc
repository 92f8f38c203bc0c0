#include "tools/vipping/options.h"

#include <cstring>
#include <vector>

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
    "  -c, --completion=poll|wait|cq|notify\n"
    "                                 how both ends learn of completions: by VipSendDone and\n"
    "                                 VipRecvDone, by VipSendWait and VipRecvWait, by VipCQWait, "
    "or\n"
    "                                 by callbacks of VipSendNotify and VipRecvNotify (poll)\n"
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
    "                                 for a server, up to 86400 (10)\n"
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

bool ParseLevel(const char* text, VIP_RELIABILITY_LEVEL* out) {
  for (const Level& level : kLevels) {
    if (std::strcmp(text, level.name) == 0) {
      *out = level.level;
      return true;
    }
  }
  return false;
}

}  // namespace

const char* NameOfLevel(VIP_RELIABILITY_LEVEL level) {
  for (const Level& known : kLevels) {
    if (known.level == level) return known.name;
  }
  return "?";
}

bool ParseOptions(int argc, char** argv, Options* options, int* status) {
  const auto take_level = [&](const char* value) { return ParseLevel(value, &options->level); };
  const std::vector<ping::Option> own = {{'r', "reliability", true, take_level},
                                         ping::Text('s', "service", 16, &options->service),
                                         ping::Flag('Q', "quiet", &options->quiet)};
  if (!ping::TakeCommandLine({"vipping", VIADUCT_VERSION, kHelp}, own, 86400, argc, argv, options,
                             status)) {
    return false;
  }
  if (options->count == 0 && options->seconds == 0) options->count = 10000;
  return true;
}

}  // namespace viaduct::vipping
