#include "dat/api/error_names.h"

#include <cstddef>

namespace viaduct::dat {
namespace {

// A return value is class (2 bits), type (14 bits), subtype (16 bits).
constexpr uint32_t kTypeShift = 16;
constexpr uint32_t kTypeBits = 0x3FFF;
constexpr uint32_t kSubtypeBits = 0xFFFF;

constexpr int32_t kNone = -1;  // the version lacks it

struct Row {
  const char* name;
  int32_t in_12;
  int32_t in_20;
};

// DAT_NOT_IMPLEMENTED is 0xFFFF0000 in 1.2 and 0x3FFF0000 in 2.0: one type under different classes.
constexpr Row kTypes[] = {
    {"DAT_SUCCESS", 0x0000, 0x0000},
    {"DAT_ABORT", 0x0001, 0x0001},
    {"DAT_CONN_QUAL_IN_USE", 0x0002, 0x0002},
    {"DAT_INSUFFICIENT_RESOURCES", 0x0003, 0x0003},
    {"DAT_INTERNAL_ERROR", 0x0004, 0x0004},
    {"DAT_INVALID_HANDLE", 0x0005, 0x0005},
    {"DAT_INVALID_PARAMETER", 0x0006, 0x0006},
    {"DAT_INVALID_STATE", 0x0007, 0x0007},
    {"DAT_LENGTH_ERROR", 0x0008, 0x0008},
    {"DAT_MODEL_NOT_SUPPORTED", 0x0009, 0x0009},
    {"DAT_PROVIDER_NOT_FOUND", 0x000A, 0x000A},
    {"DAT_PRIVILEGES_VIOLATION", 0x000B, 0x000B},
    {"DAT_PROTECTION_VIOLATION", 0x000C, 0x000C},
    {"DAT_QUEUE_EMPTY", 0x000D, 0x000D},
    {"DAT_QUEUE_FULL", 0x000E, 0x000E},
    {"DAT_TIMEOUT_EXPIRED", 0x000F, 0x000F},
    {"DAT_PROVIDER_ALREADY_REGISTERED", 0x0010, 0x0010},
    {"DAT_PROVIDER_IN_USE", 0x0011, 0x0011},
    {"DAT_INVALID_ADDRESS", 0x0012, 0x0012},
    {"DAT_INTERRUPTED_CALL", 0x0013, 0x0013},
    {"DAT_CONN_QUAL_UNAVAILABLE", 0x0014, 0x0014},
    {"DAT_RESERVED_LMR", kNone, 0x0015},
    {"DAT_PORT_IN_USE", kNone, 0x0016},
    {"DAT_COMM_NOT_SUPPORTED", kNone, 0x0017},
    {"DAT_EXTENSION_BASE", kNone, 0x1000},
    {"DAT_NOT_IMPLEMENTED", 0x3FFF, 0x3FFF},
};

// 2.0 inserted two subtypes, which shifted everything after them.
constexpr Row kSubtypes[] = {
    {"DAT_SUB_INTERRUPTED", 0x01, 0x01},
    {"DAT_RESOURCE_MEMORY", 0x02, 0x02},
    {"DAT_RESOURCE_DEVICE", 0x03, 0x03},
    {"DAT_RESOURCE_TEP", 0x04, 0x04},
    {"DAT_RESOURCE_TEVD", 0x05, 0x05},
    {"DAT_RESOURCE_PROTECTION_DOMAIN", 0x06, 0x06},
    {"DAT_RESOURCE_MEMORY_REGION", 0x07, 0x07},
    {"DAT_RESOURCE_ERROR_HANDLER", 0x08, 0x08},
    {"DAT_RESOURCE_CREDITS", 0x09, 0x09},
    {"DAT_RESOURCE_SRQ", 0x0A, 0x0A},
    {"DAT_INVALID_HANDLE_IA", 0x0B, 0x0B},
    {"DAT_INVALID_HANDLE_EP", 0x0C, 0x0C},
    {"DAT_INVALID_HANDLE_LMR", 0x0D, 0x0D},
    {"DAT_INVALID_HANDLE_RMR", 0x0E, 0x0E},
    {"DAT_INVALID_HANDLE_PZ", 0x0F, 0x0F},
    {"DAT_INVALID_HANDLE_PSP", 0x10, 0x10},
    {"DAT_INVALID_HANDLE_RSP", 0x11, 0x11},
    {"DAT_INVALID_HANDLE_CR", 0x12, 0x12},
    {"DAT_INVALID_HANDLE_CNO", 0x13, 0x13},
    {"DAT_INVALID_HANDLE_EVD_CR", 0x14, 0x14},
    {"DAT_INVALID_HANDLE_EVD_REQUEST", 0x15, 0x15},
    {"DAT_INVALID_HANDLE_EVD_RECV", 0x16, 0x16},
    {"DAT_INVALID_HANDLE_EVD_CONN", 0x17, 0x17},
    {"DAT_INVALID_HANDLE_EVD_ASYNC", 0x18, 0x18},
    {"DAT_INVALID_HANDLE_SRQ", 0x19, 0x19},
    {"DAT_INVALID_HANDLE_CSP", kNone, 0x1A},
    {"DAT_INVALID_HANDLE1", 0x1A, 0x1B},
    {"DAT_INVALID_HANDLE2", 0x1B, 0x1C},
    {"DAT_INVALID_HANDLE3", 0x1C, 0x1D},
    {"DAT_INVALID_HANDLE4", 0x1D, 0x1E},
    {"DAT_INVALID_HANDLE5", 0x1E, 0x1F},
    {"DAT_INVALID_HANDLE6", 0x1F, 0x20},
    {"DAT_INVALID_HANDLE7", 0x20, 0x21},
    {"DAT_INVALID_HANDLE8", 0x21, 0x22},
    {"DAT_INVALID_HANDLE9", 0x22, 0x23},
    {"DAT_INVALID_HANDLE10", 0x23, 0x24},
    {"DAT_INVALID_ARG1", 0x24, 0x25},
    {"DAT_INVALID_ARG2", 0x25, 0x26},
    {"DAT_INVALID_ARG3", 0x26, 0x27},
    {"DAT_INVALID_ARG4", 0x27, 0x28},
    {"DAT_INVALID_ARG5", 0x28, 0x29},
    {"DAT_INVALID_ARG6", 0x29, 0x2A},
    {"DAT_INVALID_ARG7", 0x2A, 0x2B},
    {"DAT_INVALID_ARG8", 0x2B, 0x2C},
    {"DAT_INVALID_ARG9", 0x2C, 0x2D},
    {"DAT_INVALID_ARG10", 0x2D, 0x2E},
    {"DAT_INVALID_STATE_EP_UNCONNECTED", 0x2E, 0x2F},
    {"DAT_INVALID_STATE_EP_ACTCONNPENDING", 0x2F, 0x30},
    {"DAT_INVALID_STATE_EP_PASSCONNPENDING", 0x30, 0x31},
    {"DAT_INVALID_STATE_EP_TENTCONNPENDING", 0x31, 0x32},
    {"DAT_INVALID_STATE_EP_CONNECTED", 0x32, 0x33},
    {"DAT_INVALID_STATE_EP_DISCONNECTED", 0x33, 0x34},
    {"DAT_INVALID_STATE_EP_RESERVED", 0x34, 0x35},
    {"DAT_INVALID_STATE_EP_COMPLPENDING", 0x35, 0x36},
    {"DAT_INVALID_STATE_EP_DISCPENDING", 0x36, 0x37},
    {"DAT_INVALID_STATE_EP_PROVIDERCONTROL", 0x37, 0x38},
    {"DAT_INVALID_STATE_EP_NOTREADY", 0x38, 0x39},
    {"DAT_INVALID_STATE_EP_RECV_WATERMARK", 0x39, 0x3A},
    {"DAT_INVALID_STATE_EP_PZ", 0x3A, 0x3B},
    {"DAT_INVALID_STATE_EP_EVD_REQUEST", 0x3B, 0x3C},
    {"DAT_INVALID_STATE_EP_EVD_RECV", 0x3C, 0x3D},
    {"DAT_INVALID_STATE_EP_EVD_CONNECT", 0x3D, 0x3E},
    {"DAT_INVALID_STATE_EP_UNCONFIGURED", 0x3E, 0x3F},
    {"DAT_INVALID_STATE_EP_UNCONFRESERVED", 0x3F, 0x40},
    {"DAT_INVALID_STATE_EP_UNCONFPASSIVE", 0x40, 0x41},
    {"DAT_INVALID_STATE_EP_UNCONFTENTATIVE", 0x41, 0x42},
    {"DAT_INVALID_STATE_CNO_IN_USE", 0x42, 0x43},
    {"DAT_INVALID_STATE_CNO_DEAD", 0x43, 0x44},
    {"DAT_INVALID_STATE_EVD_OPEN", 0x44, 0x45},
    {"DAT_INVALID_STATE_EVD_ENABLED", 0x45, 0x46},
    {"DAT_INVALID_STATE_EVD_DISABLED", 0x46, 0x47},
    {"DAT_INVALID_STATE_EVD_WAITABLE", 0x47, 0x48},
    {"DAT_INVALID_STATE_EVD_UNWAITABLE", 0x48, 0x49},
    {"DAT_INVALID_STATE_EVD_IN_USE", 0x49, 0x4A},
    {"DAT_INVALID_STATE_EVD_CONFIG_NOTIFY", 0x4A, 0x4B},
    {"DAT_INVALID_STATE_EVD_CONFIG_SOLICITED", 0x4B, 0x4C},
    {"DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD", 0x4C, 0x4D},
    {"DAT_INVALID_STATE_EVD_WAITER", 0x4D, 0x4E},
    {"DAT_INVALID_STATE_EVD_ASYNC", 0x4E, 0x4F},
    {"DAT_INVALID_STATE_IA_IN_USE", 0x4F, 0x50},
    {"DAT_INVALID_STATE_LMR_IN_USE", 0x50, 0x51},
    {"DAT_INVALID_STATE_LMR_FREE", 0x51, 0x52},
    {"DAT_INVALID_STATE_PZ_IN_USE", 0x52, 0x53},
    {"DAT_INVALID_STATE_PZ_FREE", 0x53, 0x54},
    {"DAT_INVALID_STATE_SRQ_OPERATIONAL", 0x54, 0x55},
    {"DAT_INVALID_STATE_SRQ_ERROR", 0x55, 0x56},
    {"DAT_INVALID_STATE_SRQ_IN_USE", 0x56, 0x57},
    {"DAT_INVALID_STATE_SRQ_SHUTDOWN", kNone, 0x58},
    {"DAT_PRIVILEGES_READ", 0x57, 0x59},
    {"DAT_PRIVILEGES_WRITE", 0x58, 0x5A},
    {"DAT_PRIVILEGES_RDMA_READ", 0x59, 0x5B},
    {"DAT_PRIVILEGES_RDMA_WRITE", 0x5A, 0x5C},
    {"DAT_PROTECTION_READ", 0x5B, 0x5D},
    {"DAT_PROTECTION_WRITE", 0x5C, 0x5E},
    {"DAT_PROTECTION_RDMA_READ", 0x5D, 0x5F},
    {"DAT_PROTECTION_RDMA_WRITE", 0x5E, 0x60},
    {"DAT_INVALID_ADDRESS_UNSUPPORTED", 0x5F, 0x61},
    {"DAT_INVALID_ADDRESS_UNREACHABLE", 0x60, 0x62},
    {"DAT_INVALID_ADDRESS_MALFORMED", 0x61, 0x63},
    {"DAT_NAME_NOT_REGISTERED", 0x62, 0x64},
    {"DAT_MAJOR_NOT_FOUND", 0x63, 0x65},
    {"DAT_MINOR_NOT_FOUND", 0x64, 0x66},
    {"DAT_THREAD_SAFETY_NOT_FOUND", 0x65, 0x67},
};

template <size_t kRows>
const char* Find(const Row (&rows)[kRows], Version version, uint32_t number) {
  for (const Row& row : rows) {
    const int32_t own = version == Version::k12 ? row.in_12 : row.in_20;
    if (own != kNone && static_cast<uint32_t>(own) == number) return row.name;
  }
  return nullptr;
}

}  // namespace

std::optional<ErrorNames> NamesOf(Version version, uint32_t value) {
  const uint32_t subtype = value & kSubtypeBits;
  const ErrorNames names = {Find(kTypes, version, (value >> kTypeShift) & kTypeBits),
                            subtype == 0 ? "" : Find(kSubtypes, version, subtype)};
  if (names.type == nullptr || names.subtype == nullptr) return std::nullopt;
  return names;
}

}  // namespace viaduct::dat
