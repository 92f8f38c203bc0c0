// One side of a connection, as every measured interface offers it.
//
// DeviceSide, ViplSide and DatSide have the same members, so that a measurement is written once as
// a template over them, without a virtual call between the loop and the interface. Each is what a
// program of its interface would do: one adapter, one registered block, one thread.
//
//   Listen(port)            passive side, once
//   Accept(), Connect(port) add one connection
//   PostReceive(c)          the next receive, of the whole in-buffer, on connection c
//   PostSend(bytes, c)      sends the first bytes of the out-buffer
//   PostWrite(bytes, to)    RDMA write of the first bytes of the out-buffer
//   Poll()                  takes what has completed, and counts it
//   WaitReceive(ms)         sleeps until a receive has completed; false when the time has passed
//   WaitBroken(ms)          sleeps until a receive has come back because the connection is lost
//   received(), completed() receives, and sends and writes, that have completed
//
// At most depth() requests of each kind may be outstanding on all connections together. Whatever
// goes wrong ends the process with a message: a benchmark has nothing to save.
#ifndef VIADUCT_TESTS_BENCH_SIDE_H_
#define VIADUCT_TESTS_BENCH_SIDE_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cstdint>

namespace viaduct::bench {

struct SideOptions {
  uint32_t bytes = 8;   // of each buffer
  uint32_t depth = 64;  // of each work queue
};

// What a peer needs to write into the in-buffer.
struct RemoteBuffer {
  uint64_t address = 0;
  uint32_t key = 0;
};

[[noreturn]] inline void Die(const char* what, long code) {
  fprintf(stderr, "%s: failed, code %#lx\n", what, code);
  exit(1);
}

// Zeroed pages, all of them present.
class Block {
 public:
  explicit Block(size_t bytes) : bytes_(bytes) {
    void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pages == MAP_FAILED) Die("mmap", static_cast<long>(bytes));
    start_ = static_cast<char*>(pages);
  }
  ~Block() { munmap(start_, bytes_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  char* start() const { return start_; }
  size_t bytes() const { return bytes_; }

  static size_t RoundUp(size_t bytes) { return (bytes + 4095) & ~size_t{4095}; }

 private:
  size_t bytes_;
  char* start_;
};

}  // namespace viaduct::bench

#endif  // VIADUCT_TESTS_BENCH_SIDE_H_
