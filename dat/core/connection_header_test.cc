#include "dat/core/connection_header.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "gtest/gtest.h"

namespace viaduct::core {
namespace {

using Bytes = std::vector<uint8_t>;

ServiceName Name(const std::string& bytes) {
  return ServiceName::FromBytes(bytes.data(), bytes.size()).value();
}

EndpointProfile Profile(uint8_t reliability, bool write, bool read, uint32_t size, uint32_t qos) {
  EndpointProfile profile;
  profile.any = false;
  profile.reliability = reliability;
  profile.rdma_write_enabled = write;
  profile.rdma_read_enabled = read;
  profile.max_transfer_size = size;
  profile.qos = qos;
  return profile;
}

ConnectionHeader DatRequest() {
  ConnectionHeader header;
  header.remote = ServiceName::FromQualifier(70000);
  return header;
}

ConnectionHeader ViplRequest() {
  ConnectionHeader header;
  header.kind = HeaderKind::kViplRequest;
  header.remote = Name("server");
  header.local = Name("client");
  header.profile = Profile(2, true, false, 32768, 0);
  return header;
}

ConnectionHeader Largest() {
  ConnectionHeader header;
  header.kind = HeaderKind::kViplPeerRequest;
  header.remote = Name("0123456789abcdef");
  header.local = Name("fedcba9876543210");
  header.profile = Profile(4, true, true, 0xffffffff, 7);
  header.peer_id = 0x0102030405060708;
  return header;
}

ConnectionHeader WithWord(ConnectionHeader header) {
  header.confirmation = {0x7f0000001000, 0x12a00};
  return header;
}

ConnectionHeader Mismatch() {
  ConnectionHeader header;
  header.kind = HeaderKind::kMismatch;
  header.mismatch = 3;
  return header;
}

ConnectionHeader Of(HeaderKind kind) {
  ConnectionHeader header;
  header.kind = kind;
  return header;
}

std::vector<ConnectionHeader> Samples() {
  ConnectionHeader accept = Of(HeaderKind::kAccept);
  accept.profile = Profile(1, false, true, 4096, 1);
  return {DatRequest(),
          ViplRequest(),
          Largest(),
          accept,
          Of(HeaderKind::kAccept),
          Of(HeaderKind::kReject),
          Of(HeaderKind::kNotMine),
          Of(HeaderKind::kBusy),
          Mismatch(),
          WithWord(DatRequest()),
          WithWord(Largest()),
          WithWord(accept)};
}

std::optional<ConnectionHeader> Parse(const Bytes& bytes, size_t* size) {
  // A copy of exactly this size, so that AddressSanitizer sees a read beyond the end.
  const Bytes copy(bytes);
  return ParseHeader(copy, size);
}

std::string Hex(const Bytes& bytes) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void ExpectEqual(const ConnectionHeader& a, const ConnectionHeader& b) {
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.remote, b.remote);
  EXPECT_EQ(a.local, b.local);
  EXPECT_EQ(a.profile.any, b.profile.any);
  EXPECT_EQ(a.profile.reliability, b.profile.reliability);
  EXPECT_EQ(a.profile.rdma_write_enabled, b.profile.rdma_write_enabled);
  EXPECT_EQ(a.profile.rdma_read_enabled, b.profile.rdma_read_enabled);
  EXPECT_EQ(a.profile.max_transfer_size, b.profile.max_transfer_size);
  EXPECT_EQ(a.profile.qos, b.profile.qos);
  EXPECT_EQ(a.peer_id, b.peer_id);
  EXPECT_EQ(a.mismatch, b.mismatch);
  ASSERT_EQ(a.confirmation.has_value(), b.confirmation.has_value());
  if (!a.confirmation.has_value()) return;
  EXPECT_EQ(a.confirmation->address, b.confirmation->address);
  EXPECT_EQ(a.confirmation->key, b.confirmation->key);
}

// Computed from FORMAT.md by another program.
TEST(ConnectionHeader, IsWhatTheFormatSays) {
  EXPECT_EQ(Hex(EncodeHeader(DatRequest())), "d65649d221a540200000000000011170");
  EXPECT_EQ(Hex(EncodeHeader(ViplRequest())),
            "d656490c225c31940000800000000000736572766572636c69656e74");
  EXPECT_EQ(Hex(EncodeHeader(Largest())),
            "d65649ad23e7841effffffff000000070102030405060708"
            "3031323334353637383961626364656666656463626139383736353433323130");
  EXPECT_EQ(Hex(EncodeHeader(Mismatch())), "d656494c28fa002003");
  EXPECT_EQ(Hex(EncodeHeader(WithWord(DatRequest()))),
            "d65649a7318d4020000000000001117000007f000000100000012a00");
}

TEST(ConnectionHeader, ComesBackAsItWasAndLeavesPrivateDataAlone) {
  for (const ConnectionHeader& header : Samples()) {
    const Bytes bytes = EncodeHeader(header);
    EXPECT_LE(bytes.size(),
              kMaxHeaderBytes + (header.confirmation.has_value() ? kConfirmationWordBytes : 0));
    Bytes with_data = bytes;
    with_data.insert(with_data.end(), 200, 0xd6);
    for (const Bytes& input : {bytes, with_data}) {
      size_t size = 0;
      const std::optional<ConnectionHeader> parsed = Parse(input, &size);
      ASSERT_TRUE(parsed);
      EXPECT_EQ(size, bytes.size());
      ExpectEqual(*parsed, header);
    }
  }
  EXPECT_EQ(EncodeHeader(Largest()).size(), kMaxHeaderBytes);
  // DAT's private data has as much room with the confirmation word as without it.
  EXPECT_LE(EncodeHeader(WithWord(DatRequest())).size(), kMaxHeaderBytes);
}

TEST(ConnectionHeader, EveryCombinationOfNameLengthsAndRights) {
  for (size_t remote = 0; remote <= kMaxNameBytes; ++remote) {
    for (size_t local = 0; local <= kMaxNameBytes; ++local) {
      ConnectionHeader header = Largest();
      header.remote = Name(std::string(remote, 'r'));
      header.local = Name(std::string(local, 'l'));
      header.profile.reliability = uint8_t{0b100} >> remote % 4;
      header.profile.rdma_write_enabled = local % 2 == 0;
      header.profile.rdma_read_enabled = local % 4 < 2;
      size_t size = 0;
      const std::optional<ConnectionHeader> parsed = Parse(EncodeHeader(header), &size);
      ASSERT_TRUE(parsed) << remote << " " << local;
      ExpectEqual(*parsed, header);
    }
  }
}

TEST(ConnectionHeader, RefusesEveryTruncation) {
  for (const ConnectionHeader& header : Samples()) {
    const Bytes bytes = EncodeHeader(header);
    for (size_t length = 0; length < bytes.size(); ++length) {
      size_t size = 0;
      EXPECT_FALSE(Parse(Bytes(bytes.begin(), bytes.begin() + length), &size)) << length;
    }
  }
}

TEST(ConnectionHeader, RefusesEveryCorruptedByte) {
  for (const ConnectionHeader& header : Samples()) {
    const Bytes bytes = EncodeHeader(header);
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (int change = 1; change < 256; ++change) {
        Bytes bad = bytes;
        bad[i] = static_cast<uint8_t>(bad[i] ^ change);
        bad.resize(bytes.size() + 64);  // a length that grew finds bytes after the header
        size_t size = 0;
        EXPECT_FALSE(Parse(bad, &size)) << Hex(bytes) << " " << i << " " << change;
      }
    }
  }
}

// How many of the 256 values of the check are accepted. One of them is right, so if none is
// accepted, the reason is not the check.
int CountAccepted(uint8_t version_and_kind, uint16_t word) {
  // An empty body has the check ff.
  Bytes bytes = {0xd6,
                 0x56,
                 0x49,
                 0,
                 version_and_kind,
                 0xff,
                 static_cast<uint8_t>(word >> 8),
                 static_cast<uint8_t>(word)};
  bytes.resize(128);
  int accepted = 0;
  for (int check = 0; check < 256; ++check) {
    bytes[3] = static_cast<uint8_t>(check);
    size_t size = 0;
    if (Parse(bytes, &size)) ++accepted;
  }
  return accepted;
}

TEST(ConnectionHeader, RefusesUnknownVersionsAndKinds) {
  for (int version = 0; version < 16; ++version) {
    for (int kind = 0; kind < 16; ++kind) {
      const bool empty_body = kind != 3 && kind != 8;
      const int want = version == 2 && kind >= 1 && kind <= 8 && empty_body ? 1 : 0;
      EXPECT_EQ(CountAccepted(static_cast<uint8_t>(version << 4 | kind), 0x20), want)
          << version << " " << kind;
    }
  }
}

TEST(ConnectionHeader, RefusesAWordOfWhoeverRejects) {
  for (const HeaderKind kind :
       {HeaderKind::kReject, HeaderKind::kNotMine, HeaderKind::kBusy, HeaderKind::kMismatch}) {
    size_t size = 0;
    EXPECT_FALSE(Parse(EncodeHeader(WithWord(Of(kind))), &size));
  }
}

TEST(ConnectionHeader, RefusesRightsBesideAny) {
  for (uint16_t bits = 0; bits < 32; ++bits) {
    const bool abilities = bits == 0 || bits == 1 || bits == 3;  // native, frames, none
    EXPECT_EQ(CountAccepted(0x21, 0x20 | bits), abilities ? 1 : 0) << bits;
  }
}

TEST(ConnectionHeader, SaysHowImmediateDataTravels) {
  for (ConnectionHeader header : {DatRequest(), ViplRequest(), Largest(), Mismatch()}) {
    for (ImmediateAbility ability :
         {ImmediateAbility::kNative, ImmediateAbility::kFrames, ImmediateAbility::kNone}) {
      if (ability == ImmediateAbility::kNone && !header.profile.any) continue;
      header.immediate = ability;
      size_t size = 0;
      const std::optional<ConnectionHeader> read = Parse(EncodeHeader(header), &size);
      ASSERT_TRUE(read.has_value());
      EXPECT_EQ(read->immediate, ability);
      EXPECT_EQ(read->profile.reliability, header.profile.reliability);
    }
  }
}

TEST(ConnectionHeader, ImmediateDataTravelAsBothCan) {
  using verbs::ImmediateForm;
  constexpr ImmediateAbility kNative = ImmediateAbility::kNative;
  constexpr ImmediateAbility kFrames = ImmediateAbility::kFrames;
  constexpr ImmediateAbility kNone = ImmediateAbility::kNone;
  EXPECT_EQ(Agree(kNative, kNative), ImmediateForm::kNative);
  EXPECT_EQ(Agree(kNative, kFrames), ImmediateForm::kFramed);
  EXPECT_EQ(Agree(kFrames, kNative), ImmediateForm::kFramed);
  EXPECT_EQ(Agree(kFrames, kFrames), ImmediateForm::kFramed);
  for (ImmediateAbility ability : {kNative, kFrames, kNone}) {
    EXPECT_EQ(Agree(ability, kNone), ImmediateForm::kNone);
    EXPECT_EQ(Agree(kNone, ability), ImmediateForm::kNone);
  }
}

// The names are zeros, and every check is tried, so only the length can be wrong.
TEST(ConnectionHeader, RefusesLongNames) {
  for (int shift : {6, 11}) {
    for (uint16_t length = 0; length < 32; ++length) {
      int accepted = 0;
      Bytes bytes = {0xd6, 0x56, 0x49, 0, 0x21, 0, 0, 0};
      const uint16_t word = static_cast<uint16_t>(length << shift | 0x20);
      bytes[6] = static_cast<uint8_t>(word >> 8);
      bytes[7] = static_cast<uint8_t>(word);
      bytes.resize(128);
      for (int checks = 0; checks < 0x10000; ++checks) {
        bytes[3] = static_cast<uint8_t>(checks >> 8);
        bytes[5] = static_cast<uint8_t>(checks);
        size_t size = 0;
        if (ParseHeader(bytes, &size)) ++accepted;
      }
      EXPECT_EQ(accepted, length <= kMaxNameBytes ? 1 : 0) << shift << " " << length;
    }
  }
}

TEST(ConnectionHeader, PrivateDataOfOthersIsNone) {
  size_t size = 0;
  EXPECT_FALSE(Parse({}, &size));
  EXPECT_FALSE(Parse(Bytes(64, 0), &size));
  EXPECT_FALSE(Parse(Bytes(64, 0xff), &size));
  EXPECT_FALSE(Parse(EncodeTrailer(Name("a")), &size));
}

TEST(ConnectionTrailer, IsWhatTheFormatSays) {
  EXPECT_EQ(Hex(EncodeTrailer(ServiceName::FromQualifier(70000))),
            "d65652a61000000800000000000111700000000000000000");
}

TEST(ConnectionTrailer, ComesBackFromBehindPrivateData) {
  for (size_t length = 0; length <= kMaxNameBytes; ++length) {
    const ServiceName name = Name(std::string(length, 'n'));
    Bytes bytes(37, 0xd6);
    const Bytes trailer = EncodeTrailer(name);
    EXPECT_EQ(trailer.size(), kTrailerBytes);
    EXPECT_EQ(ParseTrailer(trailer), name);
    bytes.insert(bytes.end(), trailer.begin(), trailer.end());
    EXPECT_EQ(ParseTrailer(bytes), name);
    bytes.push_back(0);
    EXPECT_FALSE(ParseTrailer(bytes));
  }
}

TEST(ConnectionTrailer, RefusesEveryTruncationAndCorruptedByte) {
  for (const ServiceName& name : {ServiceName(), Name("a"), Name("0123456789abcdef")}) {
    const Bytes trailer = EncodeTrailer(name);
    for (size_t length = 0; length < trailer.size(); ++length) {
      EXPECT_FALSE(ParseTrailer(Bytes(trailer.begin(), trailer.begin() + length)));
      for (int change = 1; change < 256; ++change) {
        Bytes bad = trailer;
        bad[length] = static_cast<uint8_t>(bad[length] ^ change);
        EXPECT_FALSE(ParseTrailer(bad)) << length << " " << change;
      }
    }
  }
  EXPECT_FALSE(ParseTrailer(Bytes(kTrailerBytes, 0)));
}

TEST(LineNote, EndsWithATrailerAndComesBack) {
  const ServiceName name = Name("door");
  const Bytes note = EncodeLineNote({0x0102030405060708, 0x7f000001}, name);
  EXPECT_EQ(Hex(note), "01020304050607087f000001" + Hex(EncodeTrailer(name)));
  EXPECT_EQ(ParseTrailer(note), name);
  const std::optional<LineNote> parsed = ParseLineNote(note);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->since, 0x0102030405060708u);
  EXPECT_EQ(parsed->address, 0x7f000001u);
  EXPECT_LE(note.size(), 64u);  // verbs::kMaxNote
}

TEST(LineNote, RefusesOtherNotes) {
  const Bytes note = EncodeLineNote({}, Name("door"));
  for (size_t length = 0; length < note.size(); ++length) {
    EXPECT_FALSE(ParseLineNote(Bytes(note.begin(), note.begin() + length))) << length;
    EXPECT_FALSE(ParseLineNote(Bytes(note.end() - length, note.end()))) << length;
  }
  Bytes longer = note;
  longer.insert(longer.begin(), 0);
  EXPECT_FALSE(ParseLineNote(longer));
  Bytes corrupt = note;
  corrupt.back() = 1;
  EXPECT_FALSE(ParseLineNote(corrupt));
}

}  // namespace
}  // namespace viaduct::core
