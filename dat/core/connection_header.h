// The engine's header in front of a consumer's private data: FORMAT.md.
//
// Every request of VIPL and every request to a hashed port carries a header, and so does the answer
// to a request with a header. A request of DAT to a direct port has none, nor has its answer, so
// that plain rdma_cm programs interoperate.
#ifndef VIADUCT_DAT_CORE_CONNECTION_HEADER_H_
#define VIADUCT_DAT_CORE_CONNECTION_HEADER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "dat/core/service_name.h"
#include "verbs/device.h"

namespace viaduct::core {

inline constexpr size_t kMaxHeaderBytes = 56;  // without a confirmation word
inline constexpr size_t kConfirmationWordBytes = 12;

enum class HeaderKind : uint8_t {
  kDatRequest = 1,
  kViplRequest = 2,
  kViplPeerRequest = 3,  // VipConnectPeerRequest
  kAccept = 4,           // with the acceptor's endpoint profile
  kReject = 5,           // the consumer refused
  kNotMine = 6,          // nobody serves this name here: try the next port
  kBusy = 7,             // this name is served here, but too many requests wait
  kMismatch = 8,         // peer to peer: level, size or QoS differ; which one: `mismatch`
};

// What an endpoint tells its peer about itself. A DAT endpoint is "any".
struct EndpointProfile {
  bool any = true;          // matches every peer
  uint8_t reliability = 0;  // VIP_SERVICE_* bit
  bool rdma_write_enabled = true;
  bool rdma_read_enabled = true;
  uint32_t max_transfer_size = 0;
  uint32_t qos = 0;
};

// How an endpoint's device carries immediate data on the wire that it shares with its peer.
enum class ImmediateAbility : uint8_t {
  kNative,
  kFrames,  // only in frames (verbs/FORMAT.md)
  kNone,
};

struct ConnectionHeader {
  HeaderKind kind = HeaderKind::kDatRequest;
  ServiceName remote;  // requests: the requested name
  ServiceName local;   // VIPL requests: the requester's own discriminator
  EndpointProfile profile;
  uint64_t peer_id = 0;  // kViplPeerRequest: decides between crossing requests
  uint8_t mismatch = 0;  // kMismatch
  // The sender's. Only a DAT endpoint (profile.any) can have kNone.
  ImmediateAbility immediate = ImmediateAbility::kNative;
  std::optional<verbs::ConfirmationWord> confirmation;  // requests and accepts: the sender's
};

// The form that a connection between two such endpoints uses.
verbs::ImmediateForm Agree(ImmediateAbility a, ImmediateAbility b);
// Tells the queue pair what both ends have agreed on: before Accept or in OnConnected.
void ApplyTerms(verbs::QueuePair& pair, ImmediateAbility own, const ConnectionHeader& theirs);
// Undoes ApplyTerms if the accept has failed: the next request may have other terms.
void ClearTerms(verbs::QueuePair& pair);

// At most kMaxHeaderBytes, plus kConfirmationWordBytes with a confirmation word.
std::vector<uint8_t> EncodeHeader(const ConnectionHeader& header);
// Null if `data` does not begin with a whole, valid header of a version this build knows.
// `size` gets its length; the consumer's private data follows.
std::optional<ConnectionHeader> ParseHeader(absl::Span<const uint8_t> data, size_t* size);

// Follows the private data of a redirected accept: the name where the connection really ended.
inline constexpr size_t kTrailerBytes = 24;
std::vector<uint8_t> EncodeTrailer(const ServiceName& final_name);
std::optional<ServiceName> ParseTrailer(absl::Span<const uint8_t> data);

// Accompanies a request that another process is asked to take if its waiter came before `since`, or
// announces that somebody joins the line for the name (waiting_line.cc). Ends with a trailer.
struct LineNote {
  static constexpr uint64_t kJoins = UINT64_MAX;
  uint64_t since = kJoins;
  uint32_t address = 0;  // where the waiters wait, IPv4
};
inline constexpr size_t kLineNoteBytes = 12 + kTrailerBytes;
std::vector<uint8_t> EncodeLineNote(const LineNote& note, const ServiceName& name);
// Null for any other note. ParseTrailer gives the name.
std::optional<LineNote> ParseLineNote(absl::Span<const uint8_t> note);

}  // namespace viaduct::core

#endif  // VIADUCT_DAT_CORE_CONNECTION_HEADER_H_
