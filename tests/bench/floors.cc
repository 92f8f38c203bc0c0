// What the machine allows without any library: the floor under each measurement. Prints one number
// in the units of the measuring programs.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/clock.h"
#include "tests/bench/two_processes.h"

namespace viaduct::bench {
namespace {

constexpr char kHelp[] =
    "Usage: floors FLOOR [BYTES [ITERATIONS]]\n"
    "  slot    ping-pong by 64-byte slots, control word and 8 bytes: microseconds one way\n"
    "  copy    ping-pong of BYTES, copied into shared memory and out of it: microseconds one way\n"
    "  pipe    stream of BYTES at a time, copied in and out: 10^9 bytes in a second\n"
    "  memcpy  of BYTES, from one private buffer to another: 10^9 bytes in a second\n";

constexpr uint64_t kSlots = 64;
constexpr size_t kPiece = 16 * 1024;
constexpr uint64_t kPieces = 32;

struct alignas(64) Slot {
  std::atomic<uint64_t> word;  // 1 + the number of the message in it
  unsigned char body[56];
};

// What one side writes and the other one reads.
struct Direction {
  Slot slots[kSlots];
  alignas(128) std::atomic<uint64_t> taken;  // pieces; written by the reader
  alignas(4096) char pool[kPieces * kPiece];

  void Announce(uint64_t n) { slots[n % kSlots].word.store(n + 1, std::memory_order_release); }
  void Await(uint64_t n) const {
    while (slots[n % kSlots].word.load(std::memory_order_acquire) != n + 1) {
    }
  }
};

// The pages are present before the process forks.
Direction* MakeDirections() {
  void* pages = mmap(nullptr, 2 * sizeof(Direction), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (pages == MAP_FAILED) {
    perror("mmap");
    exit(1);
  }
  return static_cast<Direction*>(pages);
}

template <typename Send, typename Receive>
double PingPong(bool first, uint64_t rounds, const Send& send, const Receive& receive) {
  const uint64_t warm = rounds / 10 + 100;
  double start = 0;
  for (uint64_t n = 0; n < warm + rounds; ++n) {
    if (n == warm) start = Seconds();
    if (first) send(n);
    receive(n);
    if (!first) send(n);
  }
  return (Seconds() - start) / static_cast<double>(rounds) / 2 * 1e6;
}

void SlotFloor(uint64_t rounds) {
  Direction* directions = MakeDirections();
  TwoProcesses us((Cpus()));
  Direction& out = directions[us.parent() ? 0 : 1];
  Direction& in = directions[us.parent() ? 1 : 0];
  unsigned char payload[8] = {1};
  us.Meet();
  const double value = PingPong(
      us.parent(), rounds,
      [&](uint64_t n) {
        memcpy(out.slots[n % kSlots].body, payload, sizeof payload);
        out.Announce(n);
      },
      [&](uint64_t n) {
        in.Await(n);
        memcpy(payload, in.slots[n % kSlots].body, sizeof payload);
      });
  us.Meet();
  if (us.parent()) printf("%.6g\n", value);
}

void CopyFloor(size_t bytes, uint64_t rounds) {
  if (bytes > sizeof(Direction::pool)) {
    fprintf(stderr, "at most %zu bytes\n", sizeof(Direction::pool));
    exit(2);
  }
  Direction* directions = MakeDirections();
  std::vector<char> mine(bytes, 1);
  TwoProcesses us((Cpus()));
  Direction& out = directions[us.parent() ? 0 : 1];
  Direction& in = directions[us.parent() ? 1 : 0];
  us.Meet();
  const double value = PingPong(
      us.parent(), rounds,
      [&](uint64_t n) {
        memcpy(out.pool, mine.data(), bytes);
        out.Announce(n);
      },
      [&](uint64_t n) {
        in.Await(n);
        memcpy(mine.data(), in.pool, bytes);
      });
  us.Meet();
  if (us.parent()) printf("%.6g\n", value);
}

void PipeFloor(size_t bytes, uint64_t messages) {
  Direction* pipe = MakeDirections();
  std::vector<char> mine(bytes, 1);
  TwoProcesses us((Cpus()));
  const uint64_t per_message = (bytes + kPiece - 1) / kPiece;
  const uint64_t pieces = per_message * messages;
  us.Meet();
  const double start = Seconds();
  for (uint64_t n = 0; n < pieces; ++n) {
    const size_t offset = n % per_message * kPiece;
    const size_t length = bytes - offset < kPiece ? bytes - offset : kPiece;
    char* piece = pipe->pool + n % kPieces * kPiece;
    if (us.parent()) {
      while (n - pipe->taken.load(std::memory_order_acquire) >= kPieces) {
      }
      memcpy(piece, mine.data() + offset, length);
      pipe->Announce(n);
    } else {
      pipe->Await(n);
      memcpy(mine.data() + offset, piece, length);
      pipe->taken.store(n + 1, std::memory_order_release);
    }
  }
  us.Meet();
  const double seconds = Seconds() - start;
  if (us.parent()) {
    printf("%.6g\n", static_cast<double>(bytes) * static_cast<double>(messages) / seconds / 1e9);
  }
}

void MemcpyFloor(size_t bytes, uint64_t times) {
  std::vector<char> from(bytes, 1), to(bytes, 2);
  const double start = Seconds();
  for (uint64_t i = 0; i < times; ++i) {
    memcpy(to.data(), from.data(), bytes);
    asm volatile("" ::: "memory");
  }
  printf("%.6g\n",
         static_cast<double>(bytes) * static_cast<double>(times) / (Seconds() - start) / 1e9);
}

int Run(int argc, char** argv) {
  const std::string floor = argc > 1 ? argv[1] : "";
  const size_t bytes = argc > 2 ? strtoul(argv[2], nullptr, 10) : 8;
  const auto times = [&](uint64_t usual) -> uint64_t {
    return argc > 3 ? strtoul(argv[3], nullptr, 10) : usual;
  };
  if (floor == "slot") {
    SlotFloor(times(200000));
  } else if (floor == "copy" && bytes > 0) {
    CopyFloor(bytes, times(50000));
  } else if (floor == "pipe" && bytes > 0) {
    PipeFloor(bytes, times(2000));
  } else if (floor == "memcpy" && bytes > 0) {
    MemcpyFloor(bytes, times(2000));
  } else {
    fputs(kHelp, floor == "--help" ? stdout : stderr);
    return floor == "--help" ? 0 : 2;
  }
  return 0;
}

}  // namespace
}  // namespace viaduct::bench

int main(int argc, char** argv) { return viaduct::bench::Run(argc, argv); }
