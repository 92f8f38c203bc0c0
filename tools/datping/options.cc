#include "tools/datping/options.h"

#include <dat2/udat.h>

#include <vector>

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
    "                                 looks for a server, up to 4000 (10)\n"
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

}  // namespace

bool ParseOptions(int argc, char** argv, Options* options, int* status) {
  Parameters& parameters = options->parameters;
  const std::vector<ping::Option> own = {
      ping::Count('C', "connections", 1, kMaxConnections, &parameters.connections),
      ping::Count('s', "service", 1, UINT64_MAX, &options->service)};
  // dat_evd_wait counts microseconds in 32 bits.
  if (!ping::TakeCommandLine({"datping", VIADUCT_VERSION, kHelp}, own, 4000, argc, argv, options,
                             status)) {
    return false;
  }
  if (options->count == 0 && options->seconds == 0) {
    options->count = parameters.test == Test::kConnect ? 1000 : 10000;
  }
  return true;
}

}  // namespace viaduct::datping
