#include "verbs/soft/iwarp/wire_error.h"

#include <cstdio>

namespace viaduct::verbs::iwarp {
namespace {

struct Name {
  WireError error;
  const char* text;
};

constexpr Name kNames[] = {
    {kRdmapLocalCatastrophic, "RDMAP: local catastrophic error"},
    {kReadInvalidStag, "RDMAP remote protection: invalid STag"},
    {kReadBounds, "RDMAP remote protection: base or bounds violation"},
    {kReadAccess, "RDMAP remote protection: access rights violation"},
    {kReadNotAssociated, "RDMAP remote protection: STag not associated with the stream"},
    {kReadWrap, "RDMAP remote protection: offset wraps"},
    {kCannotInvalidate, "RDMAP remote protection: STag cannot be invalidated"},
    {kRdmapBadVersion, "RDMAP remote operation: invalid RDMAP version"},
    {kUnexpectedOpcode, "RDMAP remote operation: unexpected opcode"},
    {kCatastrophicStream, "RDMAP remote operation: catastrophic error of the stream"},
    {{0, 2, 8}, "RDMAP remote operation: catastrophic error, global"},
    {{0, 2, 9}, "RDMAP remote operation: STag cannot be invalidated"},
    {{0, 0, 0xff}, "RDMAP: local catastrophic error"},  // siw's
    {{1, 0, 0}, "DDP: local catastrophic error"},
    {kTaggedInvalidStag, "DDP tagged buffer: invalid STag"},
    {kTaggedBounds, "DDP tagged buffer: base or bounds violation"},
    {kTaggedNotAssociated, "DDP tagged buffer: STag not associated with the stream"},
    {kTaggedWrap, "DDP tagged buffer: offset wraps"},
    {kTaggedBadVersion, "DDP tagged buffer: invalid DDP version"},
    {kUntaggedBadQueue, "DDP untagged buffer: invalid queue number"},
    {kNoBuffer, "DDP untagged buffer: no buffer"},
    {kUntaggedBadSequence, "DDP untagged buffer: sequence number out of range"},
    {kUntaggedBadOffset, "DDP untagged buffer: invalid message offset"},
    {kMessageTooLong, "DDP untagged buffer: message too long"},
    {kUntaggedBadVersion, "DDP untagged buffer: invalid DDP version"},
    {kConnectionLost, "MPA: TCP connection lost"},
    {kCrcMismatch, "MPA: CRC mismatch"},
    {kBadFraming, "MPA: FPDU length does not fit"},
    {kBadStartup, "MPA: invalid request or reply frame"},
    {{2, 0, 5}, "MPA: local catastrophic error"},
    {kInsufficientIrd, "MPA: insufficient IRD"},
    {kNoMatchingRtr, "MPA: no matching ready-to-receive frame"},
};

}  // namespace

std::string Describe(const WireError& error) {
  const char* text = "unknown error";
  for (const Name& name : kNames) {
    if (name.error == error) text = name.text;
  }
  char numbers[32];
  std::snprintf(numbers, sizeof(numbers), " (%u/%u/%u)", error.layer, error.type, error.code);
  return std::string(text) + numbers;
}

}  // namespace viaduct::verbs::iwarp
