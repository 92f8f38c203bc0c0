#include "dat/core/connection_header.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace viaduct::core {
namespace {

// Each magic is followed by a check byte: of the header's fixed part, or of the whole trailer.
constexpr uint32_t kHeaderMagic = 0xd65649;
constexpr uint32_t kTrailerMagic = 0xd65652;
constexpr size_t kMagicBytes = 3;
constexpr size_t kCheckAt = 3;
constexpr uint8_t kHeaderVersion = 2;
constexpr uint8_t kHeaderVersionWithWord = 3;
constexpr uint8_t kTrailerVersion = 1;
constexpr size_t kFixedBytes = 8;
constexpr size_t kBodyCheckAt = 5;  // of a header

// The word of lengths and rights, from its lowest bit upwards.
constexpr uint16_t kNotNative = 1 << 0;
constexpr int kReliabilityShift = 1;
constexpr uint16_t kReliabilityMask = 3;
constexpr uint16_t kNoFrames = 1 << 1;  // only together with kAny
constexpr uint16_t kReadEnabled = 1 << 3;
constexpr uint16_t kWriteEnabled = 1 << 4;
constexpr uint16_t kAny = 1 << 5;
constexpr uint16_t kProfileMask =
    kWriteEnabled | kReadEnabled | kReliabilityMask << kReliabilityShift;
constexpr int kLocalShift = 6;
constexpr int kRemoteShift = 11;
constexpr uint16_t kLengthMask = 0x1f;

static_assert(kFixedBytes + 8 + 8 + 2 * kMaxNameBytes == kMaxHeaderBytes);
static_assert(kFixedBytes + kMaxNameBytes == kTrailerBytes);

// CRC-8, polynomial x^8 + x^2 + x + 1.
uint8_t AddToCrc(uint8_t crc, absl::Span<const uint8_t> data) {
  for (uint8_t byte : data) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = static_cast<uint8_t>(crc << 1 ^ ((crc & 0x80) != 0 ? 0x07 : 0));
    }
  }
  return crc;
}

constexpr uint8_t kFirstCrc = 0xff;

// The CRC of all bytes except the check byte.
uint8_t CheckAround(absl::Span<const uint8_t> data) {
  const uint8_t crc = AddToCrc(kFirstCrc, data.first(kCheckAt));
  return AddToCrc(crc, data.subspan(kCheckAt + 1));
}

void AppendInteger(std::vector<uint8_t>* out, uint64_t value, size_t bytes) {
  for (size_t i = bytes; i-- > 0;) out->push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void AppendName(std::vector<uint8_t>* out, const ServiceName& name) {
  out->insert(out->end(), name.bytes().begin(), name.bytes().end());
}

// Reads a copy of the data; the caller has checked that there is enough of it.
class Reader {
 public:
  explicit Reader(const uint8_t* data) : at_(data) {}
  uint64_t Integer(size_t bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | *at_++;
    return value;
  }
  // `size` is at most kMaxNameBytes.
  ServiceName Name(size_t size) {
    const ServiceName name = *ServiceName::FromBytes(at_, size);
    at_ += size;
    return name;
  }

 private:
  const uint8_t* at_;
};

bool IsKind(uint8_t kind) {
  return kind >= static_cast<uint8_t>(HeaderKind::kDatRequest) &&
         kind <= static_cast<uint8_t>(HeaderKind::kMismatch);
}

// VIP_SERVICE_* by its number on the wire; 0 is none of them.
constexpr uint8_t kReliabilities[] = {0, 1, 2, 4};
uint16_t LevelOf(uint8_t reliability) {
  const auto* const found =
      std::find(std::begin(kReliabilities), std::end(kReliabilities), reliability);
  return found != std::end(kReliabilities) ? static_cast<uint16_t>(found - kReliabilities) : 0;
}

uint16_t ProfileBits(const ConnectionHeader& header) {
  const EndpointProfile& profile = header.profile;
  uint16_t bits = header.immediate != ImmediateAbility::kNative ? kNotNative : 0;
  if (profile.any) {
    bits |= kAny;
    if (header.immediate == ImmediateAbility::kNone) bits |= kNoFrames;
    return bits;
  }
  if (profile.rdma_write_enabled) bits |= kWriteEnabled;
  if (profile.rdma_read_enabled) bits |= kReadEnabled;
  bits |= LevelOf(profile.reliability) << kReliabilityShift;
  return bits;
}

// Null for bits that do not go together.
std::optional<ImmediateAbility> AbilityOf(uint16_t word) {
  const bool native = (word & kNotNative) == 0;
  if ((word & kAny) == 0) return native ? ImmediateAbility::kNative : ImmediateAbility::kFrames;
  switch (word & kProfileMask) {
    case 0:
      return native ? ImmediateAbility::kNative : ImmediateAbility::kFrames;
    case kNoFrames:
      if (!native) return ImmediateAbility::kNone;
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace

verbs::ImmediateForm Agree(ImmediateAbility a, ImmediateAbility b) {
  if (a == ImmediateAbility::kNone || b == ImmediateAbility::kNone) {
    return verbs::ImmediateForm::kNone;
  }
  return a == ImmediateAbility::kNative && b == ImmediateAbility::kNative
             ? verbs::ImmediateForm::kNative
             : verbs::ImmediateForm::kFramed;
}

void ApplyTerms(verbs::QueuePair& pair, ImmediateAbility own, const ConnectionHeader& theirs) {
  pair.EnableImmediate(Agree(own, theirs.immediate));
  pair.ConfirmBy(theirs.confirmation);
}

void ClearTerms(verbs::QueuePair& pair) {
  pair.EnableImmediate(verbs::ImmediateForm::kNone);
  pair.ConfirmBy(std::nullopt);
}

std::vector<uint8_t> EncodeHeader(const ConnectionHeader& header) {
  const EndpointProfile& profile = header.profile;
  const uint8_t version = header.confirmation.has_value() ? kHeaderVersionWithWord : kHeaderVersion;
  std::vector<uint8_t> out;
  out.reserve(kMaxHeaderBytes + kConfirmationWordBytes);
  AppendInteger(&out, kHeaderMagic, kMagicBytes);
  AppendInteger(&out, 0, 1);  // the check
  AppendInteger(&out, version << 4 | static_cast<uint8_t>(header.kind), 1);
  AppendInteger(&out, 0, 1);  // the body's check
  AppendInteger(&out,
                header.remote.bytes().size() << kRemoteShift |
                    header.local.bytes().size() << kLocalShift | ProfileBits(header),
                2);
  if (!profile.any) {
    AppendInteger(&out, profile.max_transfer_size, 4);
    AppendInteger(&out, profile.qos, 4);
  }
  if (header.kind == HeaderKind::kViplPeerRequest) AppendInteger(&out, header.peer_id, 8);
  if (header.kind == HeaderKind::kMismatch) AppendInteger(&out, header.mismatch, 1);
  AppendName(&out, header.remote);
  AppendName(&out, header.local);
  if (header.confirmation.has_value()) {
    AppendInteger(&out, header.confirmation->address, 8);
    AppendInteger(&out, header.confirmation->key, 4);
  }
  const absl::Span<const uint8_t> whole(out);
  out[kBodyCheckAt] = AddToCrc(kFirstCrc, whole.subspan(kFixedBytes));
  out[kCheckAt] = CheckAround(whole.first(kFixedBytes));
  return out;
}

std::optional<ConnectionHeader> ParseHeader(absl::Span<const uint8_t> data, size_t* size) {
  uint8_t copy[kMaxHeaderBytes + kConfirmationWordBytes];
  const size_t available = std::min(data.size(), sizeof(copy));
  if (available < kFixedBytes) return std::nullopt;
  std::memcpy(copy, data.data(), available);

  Reader reader(copy);
  if (reader.Integer(kMagicBytes) != kHeaderMagic) return std::nullopt;
  if (reader.Integer(1) != CheckAround(absl::MakeConstSpan(copy, kFixedBytes))) return std::nullopt;
  const uint8_t version_and_kind = static_cast<uint8_t>(reader.Integer(1));
  const uint8_t version = version_and_kind >> 4;
  const uint8_t kind = version_and_kind & 0xf;
  const bool has_word = version == kHeaderVersionWithWord;
  if ((version != kHeaderVersion && !has_word) || !IsKind(kind)) return std::nullopt;
  if (has_word && kind > static_cast<uint8_t>(HeaderKind::kAccept)) return std::nullopt;
  const uint8_t body_check = static_cast<uint8_t>(reader.Integer(1));
  const uint16_t word = static_cast<uint16_t>(reader.Integer(2));

  ConnectionHeader header;
  header.kind = static_cast<HeaderKind>(kind);
  header.profile.any = (word & kAny) != 0;
  const std::optional<ImmediateAbility> ability = AbilityOf(word);
  if (!ability.has_value()) return std::nullopt;
  header.immediate = *ability;
  const bool has_peer_id = header.kind == HeaderKind::kViplPeerRequest;
  const bool has_mismatch = header.kind == HeaderKind::kMismatch;
  const size_t remote = word >> kRemoteShift & kLengthMask;
  const size_t local = word >> kLocalShift & kLengthMask;
  if (remote > kMaxNameBytes || local > kMaxNameBytes) return std::nullopt;
  const size_t whole = kFixedBytes + (header.profile.any ? 0 : 8) + (has_peer_id ? 8 : 0) +
                       (has_mismatch ? 1 : 0) + remote + local +
                       (has_word ? kConfirmationWordBytes : 0);
  if (whole > available) return std::nullopt;
  const absl::Span<const uint8_t> body(copy + kFixedBytes, whole - kFixedBytes);
  if (AddToCrc(kFirstCrc, body) != body_check) return std::nullopt;

  if (!header.profile.any) {
    header.profile.rdma_write_enabled = (word & kWriteEnabled) != 0;
    header.profile.rdma_read_enabled = (word & kReadEnabled) != 0;
    header.profile.reliability = kReliabilities[word >> kReliabilityShift & kReliabilityMask];
    header.profile.max_transfer_size = static_cast<uint32_t>(reader.Integer(4));
    header.profile.qos = static_cast<uint32_t>(reader.Integer(4));
  }
  if (has_peer_id) header.peer_id = reader.Integer(8);
  if (has_mismatch) header.mismatch = static_cast<uint8_t>(reader.Integer(1));
  header.remote = reader.Name(remote);
  header.local = reader.Name(local);
  if (has_word) {
    header.confirmation.emplace();
    header.confirmation->address = reader.Integer(8);
    header.confirmation->key = static_cast<verbs::Key>(reader.Integer(4));
  }
  *size = whole;
  return header;
}

std::vector<uint8_t> EncodeTrailer(const ServiceName& final_name) {
  std::vector<uint8_t> out;
  out.reserve(kTrailerBytes);
  AppendInteger(&out, kTrailerMagic, kMagicBytes);
  AppendInteger(&out, 0, 1);  // the check
  AppendInteger(&out, kTrailerVersion << 4, 1);
  AppendInteger(&out, final_name.bytes().size(), 3);
  AppendName(&out, final_name);
  out.resize(kTrailerBytes);
  out[kCheckAt] = CheckAround(out);
  return out;
}

std::optional<ServiceName> ParseTrailer(absl::Span<const uint8_t> data) {
  if (data.size() < kTrailerBytes) return std::nullopt;
  uint8_t copy[kTrailerBytes];
  std::memcpy(copy, data.data() + data.size() - kTrailerBytes, sizeof(copy));

  Reader reader(copy);
  if (reader.Integer(kMagicBytes) != kTrailerMagic) return std::nullopt;
  if (reader.Integer(1) != CheckAround(copy)) return std::nullopt;
  if (reader.Integer(1) != kTrailerVersion << 4) return std::nullopt;
  const size_t size = reader.Integer(3);
  if (size > kMaxNameBytes) return std::nullopt;
  for (size_t i = kFixedBytes + size; i < kTrailerBytes; ++i) {
    if (copy[i] != 0) return std::nullopt;
  }
  return reader.Name(size);
}

std::vector<uint8_t> EncodeLineNote(const LineNote& note, const ServiceName& name) {
  std::vector<uint8_t> out;
  out.reserve(kLineNoteBytes);
  AppendInteger(&out, note.since, 8);
  AppendInteger(&out, note.address, 4);
  const std::vector<uint8_t> trailer = EncodeTrailer(name);
  out.insert(out.end(), trailer.begin(), trailer.end());
  return out;
}

std::optional<LineNote> ParseLineNote(absl::Span<const uint8_t> note) {
  if (note.size() != kLineNoteBytes || !ParseTrailer(note).has_value()) return std::nullopt;
  Reader reader(note.data());
  LineNote parsed;
  parsed.since = reader.Integer(8);
  parsed.address = static_cast<uint32_t>(reader.Integer(4));
  return parsed;
}

}  // namespace viaduct::core
