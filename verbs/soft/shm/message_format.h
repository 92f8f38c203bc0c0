// The messages on the socket of a pair of processes. FORMAT.md describes them.
#ifndef VIADUCT_VERBS_SOFT_SHM_MESSAGE_FORMAT_H_
#define VIADUCT_VERBS_SOFT_SHM_MESSAGE_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace viaduct::verbs::shm {

inline constexpr uint32_t kMessageMagic = 0x56550006;  // with the version of this format
inline constexpr size_t kMaxPrivateData = 1024;

enum class MessageType : uint16_t {
  kHello = 1,  // the creator's first; carries the arena's descriptor
  kWelcome,    // the answer
  kRequest,    // a connection is wanted
  kAccept,
  kReject,  // by the consumer, with private data
  kRefuse,
  kNotHere,      // nobody listens at the port any more, or not at that address
  kEstablished,  // the requester has the accept
  kClose,        // this side is done with the connection; each side says it once
  kReleased,     // the side that does not own the number will not touch the rings again
  kRing,         // the bell was armed for the socket: there are marks
  kAsk,          // on a fresh socket: would you take a request that is handed off?
  kYes,          // the answer to kAsk; the other answer is kNotHere
  kRedirect,     // the request belongs to the listener of another process: ask there
};

struct MessageHeader {
  uint32_t magic;
  MessageType type;
  uint16_t reserved;
  uint32_t connection;
  uint32_t length;  // of what follows
};
static_assert(sizeof(MessageHeader) == 16);

struct HelloBody {  // and Welcome
  uint64_t token;   // finds the arena when the peer is this process itself
  uint32_t fenced;  // 1: registered for global membarriers
  uint32_t reserved;
};

struct WireAddress {
  uint16_t family;  // AF_INET, AF_INET6
  uint16_t reserved;
  uint32_t scope;
  uint8_t bytes[16];
};

struct RequestBody {  // private data follows
  WireAddress from;
  WireAddress to;  // as dialled
  uint16_t port;   // at the listener
  uint16_t from_port;
  uint32_t reads_in;   // how many reads the requester serves
  uint32_t reads_out;  // how many it may have outstanding
  uint32_t note;       // bytes of note before the private data; not 0: the request was handed off
};
static_assert(sizeof(RequestBody) == 64);

struct RedirectBody {  // and Ask; the note follows
  uint16_t port;
  uint16_t reserved;
};

struct AcceptBody {  // private data follows
  uint32_t reads_in;
  uint32_t reads_out;
};

struct CloseBody {
  uint64_t data_end;  // ring positions where the closing side stopped
  uint64_t reply_end;
  uint32_t verdict;  // a Status
  uint32_t reserved;
};
static_assert(sizeof(CloseBody) == 24);

inline constexpr size_t kMaxNoteBytes = 64;
inline constexpr size_t kMaxMessage =
    sizeof(MessageHeader) + sizeof(RequestBody) + kMaxNoteBytes + kMaxPrivateData;

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_MESSAGE_FORMAT_H_
