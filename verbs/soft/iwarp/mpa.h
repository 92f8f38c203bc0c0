#ifndef VIADUCT_VERBS_SOFT_IWARP_MPA_H_
#define VIADUCT_VERBS_SOFT_IWARP_MPA_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "verbs/soft/iwarp/mpa_format.h"

// The startup frames of MPA: an encoder and an incremental parser. Pure code. mpa_negotiation.h
// says what the two frames of a connection mean together.

namespace viaduct::verbs::iwarp {

enum class MpaKind : uint8_t { kRequest, kReply };

// The word that RFC 6581 puts in front of the private data.
struct MpaDepths {
  bool peer_to_peer = false;  // A: the initiator's first FPDU is one of the agreed kinds below
  bool rtr_send = false;      // B: zero-length Send
  bool rtr_write = false;     // C: zero-length RDMA Write
  bool rtr_read = false;      // D: zero-length RDMA Read
  uint16_t ird = 0;           // inbound reads that the sender of the frame can hold
  uint16_t ord = 0;           // outbound reads that it means to have outstanding

  friend bool operator==(const MpaDepths&, const MpaDepths&) = default;
};

struct MpaFrame {
  MpaKind kind = MpaKind::kRequest;
  uint8_t revision = kMpaEnhancedRevision;
  bool markers = false;                   // M: "put markers into what you send me"
  bool crc = false;                       // C
  bool reject = false;                    // R: replies only
  std::optional<MpaDepths> depths;        // S: present in revision 2 and later only
  std::span<const uint8_t> private_data;  // the consumer's, without the word
};

// How much private data of the consumer a frame of ours carries at most.
constexpr size_t MpaMaxPrivateData(MpaKind kind, bool enhanced) {
  const size_t field = kind == MpaKind::kReply ? kMpaMaxReplyPrivateLength : kMpaMaxPrivateLength;
  return enhanced ? field - kMpaDepthsSize : field;
}

// Writes the frame and returns its size. Aborts, in every build, on a frame that we must never
// send: private data above MpaMaxPrivateData, a word outside revision 2, R or the depth 0x3FFF in a
// request. An enhanced frame always carries its word, so PD_Length is never below 4 with S=1.
size_t EncodeMpa(const MpaFrame& frame, std::span<uint8_t, kMpaMaxFrameSize> out);

// Takes a startup frame from a byte stream, in pieces of any size. Never looks beyond the frame:
// the first FPDU may follow in the same read. Fails at the first byte that cannot belong to the
// frame. Not thread-safe.
class MpaParser {
 public:
  enum class State : uint8_t { kIncomplete, kComplete, kFailed };
  enum class Error : uint8_t {
    kNone,
    kBadKey,       // not MPA
    kWrongRole,    // a request where a reply was due, or the other way round
    kBadRevision,  // later than 2
    kTooLong,      // PD_Length above 512
    kNoDepths,     // S=1 without room for the word; the header's fields are in frame()
  };

  explicit MpaParser(MpaKind expected) : expected_(expected) {}
  MpaParser(const MpaParser&) = delete;
  MpaParser& operator=(const MpaParser&) = delete;

  // Returns how many bytes were taken: all of them while the frame is incomplete, none after it is
  // complete or has failed.
  size_t Feed(std::span<const uint8_t> bytes);

  // How many more bytes certainly belong to the frame: whoever receives no more than these leaves
  // what follows the frame in the socket. 0 when complete or failed.
  size_t missing() const { return state_ == State::kIncomplete ? need_ - have_ : 0; }

  bool begun() const { return have_ > 0; }
  // The bytes taken so far.
  std::span<const uint8_t> bytes() const { return std::span(bytes_).first(have_); }

  State state() const { return state_; }
  Error error() const { return error_; }

  // Valid in kComplete; also after kNoDepths, but then without depths and private data. The private
  // data lie in the parser.
  const MpaFrame& frame() const { return frame_; }

 private:
  void Fail(Error error);
  bool CheckKey(size_t from);
  void ParseHeader();
  void ParseBody();

  const MpaKind expected_;
  State state_ = State::kIncomplete;
  Error error_ = Error::kNone;
  size_t have_ = 0;
  size_t need_ = kMpaHeaderSize;
  MpaFrame frame_;
  std::array<uint8_t, kMpaMaxFrameSize> bytes_;
};

}  // namespace viaduct::verbs::iwarp

#endif  // VIADUCT_VERBS_SOFT_IWARP_MPA_H_
