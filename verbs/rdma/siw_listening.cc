#include "verbs/rdma/siw_listening.h"

#include <netinet/in.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace viaduct::verbs::rdma {
namespace {

constexpr char kTcpListen[] = "0A";

// The form of /proc/net/tcp: the words of the address in the processor's byte order, and the port.
std::string LocalAddress(const Address& address, uint16_t port) {
  sockaddr_storage at;
  address.ToSockaddr(port, &at);
  uint32_t words[4];
  size_t count = 1;
  if (address.family() == AF_INET6) {
    count = 4;
    std::memcpy(words, &reinterpret_cast<sockaddr_in6&>(at).sin6_addr, sizeof(in6_addr));
  } else {
    std::memcpy(words, &reinterpret_cast<sockaddr_in&>(at).sin_addr, sizeof(in_addr));
  }
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    absl::StrAppend(&text, absl::Hex(words[i], absl::kZeroPad8));
  }
  return absl::StrCat(text, ":", absl::Hex(port, absl::kZeroPad4));
}

}  // namespace

// A line is: sl local_address rem_address st tx_queue:rx_queue ... The receive queue of a listening
// socket is one of connections. Listening sockets come first.
std::optional<uint32_t> UnacceptedAt(const Address& address, uint16_t port) {
  // The table of this thread's network namespace; that of the program may have changed.
  std::FILE* const table = std::fopen(
      address.family() == AF_INET6 ? "/proc/thread-self/net/tcp6" : "/proc/thread-self/net/tcp",
      "re");
  if (table == nullptr) return 0;
  const absl::Cleanup close = [table] { std::fclose(table); };
  const std::string wanted = LocalAddress(address, port);
  char line[512];
  if (std::fgets(line, sizeof line, table) == nullptr) return 0;  // the table's head
  while (std::fgets(line, sizeof line, table) != nullptr) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 5 || fields[3] != kTcpListen) break;
    if (!absl::EqualsIgnoreCase(fields[1], wanted)) continue;
    const std::vector<absl::string_view> queues = absl::StrSplit(fields[4], ':');
    uint32_t unaccepted;
    if (queues.size() != 2 || !absl::SimpleHexAtoi(queues[1], &unaccepted)) break;
    return unaccepted;
  }
  return std::nullopt;
}

SiwListening::Verdict SiwListening::Note(std::optional<uint32_t> unaccepted) {
  lost_ = unaccepted.has_value() ? 0 : lost_ + 1;
  waiting_ = unaccepted.value_or(0) == 0 || requests_ >= kBusyListener ? 0 : waiting_ + 1;
  if (waiting_ == 0) requests_ = 0;
  const Verdict verdict = lost_ == kLostLooks         ? Verdict::kLost
                          : waiting_ == kWaitingLooks ? Verdict::kStuck
                                                      : Verdict::kWell;
  if (verdict != Verdict::kWell) lost_ = waiting_ = 0;
  interval_ = lost_ != 0 || verdict != Verdict::kWell ? kFirstListenerLook
                                                      : std::min(2 * interval_, kListenerLook);
  return verdict;
}

}  // namespace viaduct::verbs::rdma
