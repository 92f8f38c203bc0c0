// Every byte that two processes share, as described in FORMAT.md. It holds no pointers.
#ifndef VIADUCT_VERBS_SOFT_SHM_ARENA_FORMAT_H_
#define VIADUCT_VERBS_SOFT_SHM_ARENA_FORMAT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace viaduct::verbs::shm {

inline constexpr uint64_t kArenaMagic = 0x33304d4853545556;  // "VUTSHM03"
inline constexpr uint32_t kSlots = 64;                       // of a data ring
inline constexpr uint32_t kReplySlots = 8;                   // of a reply ring
inline constexpr uint32_t kBodyBytes = 56;                   // of a slot
inline constexpr uint32_t kConnections = 4096;               // 64 leaf words of 64 bits
inline constexpr uint32_t kChunks = 64;                      // per direction
inline constexpr uint32_t kChunkBytes = 16384;

// One cache line. The word is stored last (release), and its lap parity makes it valid: the
// consumer reads no index, and nobody clears a slot.
struct alignas(64) Slot {
  std::atomic<uint64_t> word;
  unsigned char body[kBodyBytes];
};
static_assert(sizeof(Slot) == 64);

enum class Op : uint8_t {
  kContinue,   // a further slot of the message before it
  kSend,       // data in the slots
  kSendChunk,  // data in a chunk
  kWrite,
  kWriteChunk,
  kRead,   // a read request
  kReply,  // reply ring: data of a read
  kReplyChunk,
  kAtomic,      // an atomic request; answered like a read of eight bytes
  kInvalidate,  // the send after it ends a window of the receiver
};

enum SlotFlag : uint8_t {
  kLast = 1,         // of the message
  kAcknowledge = 2,  // return the credit at once: somebody waits for the confirmation
  kWithImmediate = 4,
  kWithSolicited = 8,
};

// The word: bit 0 parity | 1-7 op | 8-15 flags | 16-31 slots used | 32-63 bytes of payload.
struct Word {
  Op op;
  uint8_t flags;
  uint16_t slots;
  uint32_t bytes;

  static constexpr uint64_t Pack(Op op, uint8_t flags, uint32_t slots, uint32_t bytes,
                                 uint64_t parity) {
    return parity | static_cast<uint64_t>(op) << 1 | uint64_t{flags} << 8 | uint64_t{slots} << 16 |
           uint64_t{bytes} << 32;
  }
  // A whole send in one slot, without immediate data, whose confirmation nobody waits for: only
  // its length remains to be read, and whether it is solicited.
  static bool IsShortSend(uint64_t word) {
    constexpr uint64_t kKnown = 0xfffffffe & ~(uint64_t{kWithSolicited} << 8);
    return (word & kKnown) == Pack(Op::kSend, kLast, 1, 0, 0) && word >> 32 <= kBodyBytes;
  }
  static Word Unpack(uint64_t word) {
    return {static_cast<Op>((word >> 1) & 0x7f), static_cast<uint8_t>(word >> 8),
            static_cast<uint16_t>(word >> 16), static_cast<uint32_t>(word >> 32)};
  }
};

// Lap 0 carries 1, so that a fresh ring of zeros is empty.
template <uint32_t slots>
constexpr uint64_t Parity(uint64_t position) {
  return ~(position / slots) & 1;
}

// Has the slot at `position`, which holds `word`, been filled?
template <uint32_t slots>
constexpr bool Arrives(uint64_t word, uint64_t position) {
  return (word & 1) == Parity<slots>(position);
}

// The first bytes of a body. kSend: nothing, or SendLead with kWithImmediate; kWrite: Target;
// k...Chunk: ChunkLead; kRead: ReadLead; kReply: nothing; kAtomic: AtomicLead; kInvalidate:
// InvalidateLead.
struct SendLead {
  uint32_t immediate;
  uint32_t reserved;
};
struct Target {
  uint64_t address;
  uint32_t key;
  uint32_t immediate;  // with kWithImmediate
};
struct ChunkLead {
  Target target;  // kSendChunk: the immediate data alone
  uint32_t chunk;
  uint32_t reserved;
};
struct ReadLead {
  uint64_t address;
  uint32_t key;
  uint32_t length;
};
enum AtomicKind : uint32_t { kAtomicCompareAndSwap = 1, kAtomicFetchAndAdd = 2 };
struct AtomicLead {
  uint64_t address;
  uint32_t key;
  uint32_t kind;  // AtomicKind
  uint64_t compare_add;
  uint64_t swap;
};
struct InvalidateLead {
  uint32_t key;
  uint32_t reserved;
};
static_assert(sizeof(AtomicLead) == 32 && sizeof(InvalidateLead) == 8);
static_assert(sizeof(SendLead) == 8 && sizeof(Target) == 16 && sizeof(ChunkLead) == 24 &&
              sizeof(ReadLead) == 16);

// Written by one side only: line d belongs to side d, the consumer of ring d.
struct alignas(128) CreditLine {
  std::atomic<uint64_t> head;        // slots below this position are free again
  std::atomic<uint64_t> reply_head;  // the same of the reply ring
  std::atomic<uint32_t> armed;       // 1: this side does not poll; mark what arrives
  std::atomic<uint32_t> starving;    // 1: this side waits for room; mark returned credit
};
static_assert(sizeof(CreditLine) == 128);

struct ConnectionBlock {
  CreditLine credit[2];
  Slot data[2][kSlots];  // [d] is consumed by side d
  Slot reply[2][kReplySlots];
};
static_assert(sizeof(ConnectionBlock) == 9472);  // not a power of two: spreads over the L1 sets

enum BellKind : uint32_t {  // bit set
  kBellOff = 0,
  kBellFutex = 1,   // somebody sleeps on the bell itself
  kBellSocket = 2,  // the control thread waits for a Ring on the socket
};

struct DirectionBlock {                         // consumed by side d
  alignas(128) std::atomic<uint32_t> bell;      // BellKind; armed by the consumer
  alignas(128) std::atomic<uint64_t> summary;   // bit l: leaf[l] may be non-zero
  alignas(128) std::atomic<uint64_t> leaf[64];  // bit c of leaf[l]: connection 64 l + c
  alignas(128) std::atomic<uint64_t> returned;  // bit c: d is done with chunk c of its pool
  alignas(128) std::atomic<uint32_t> exits;  // side d exits: the hang-up that follows is no crash
  alignas(128) unsigned char pad[4096 - 4 * 128 - 512];
};
static_assert(sizeof(DirectionBlock) == 4096);
static_assert(kChunks == 64, "one word of `returned`");

struct ArenaHeader {
  uint64_t magic;
  uint64_t bytes;
};

inline constexpr size_t kDirectionOffset = 0x1000;
inline constexpr size_t kConnectionOffset = kDirectionOffset + 2 * sizeof(DirectionBlock);
inline constexpr size_t kPoolOffset =
    (kConnectionOffset + kConnections * sizeof(ConnectionBlock) + 4095) / 4096 * 4096;
inline constexpr size_t kArenaBytes = kPoolOffset + 2 * size_t{kChunks} * kChunkBytes;

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_ARENA_FORMAT_H_
