// The memory of one pair of processes.
//
// Sealed against shrinking and growing; 39 MiB of address space for 4,096 connections. Pages are
// allocated ("paid for") before they are used, so that a full tmpfs is an error then and never a
// SIGBUS later. The creator pays for what every pair has, the side that gives out a connection
// number pays for that connection, and a sender pays for further chunks of its pool.
#ifndef VIADUCT_VERBS_SOFT_SHM_ARENA_H_
#define VIADUCT_VERBS_SOFT_SHM_ARENA_H_

#include <cstdint>
#include <memory>

#include "verbs/base/fd.h"
#include "verbs/base/lock.h"
#include "verbs/soft/foreign_fd.h"
#include "verbs/soft/shm/arena_format.h"
#include "verbs/soft/shm/descriptor.h"

namespace viaduct::verbs::shm {

inline constexpr uint32_t kFirstChunks = 8;  // per direction, paid by the creator
inline constexpr uint32_t kChunkStep = 8;

class Arena {
 public:
  // Null without memory or descriptors.
  static std::shared_ptr<Arena> Create();
  // Null unless `fd` is a sealed arena of exactly this layout, without huge pages.
  static std::shared_ptr<Arena> Open(GivenFd fd);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int fd() const { return fd_.get(); }
  DirectionBlock& direction(int d) const {
    return reinterpret_cast<DirectionBlock*>(base_ + kDirectionOffset)[d];
  }
  ConnectionBlock& connection(uint32_t id) const {
    return reinterpret_cast<ConnectionBlock*>(base_ + kConnectionOffset)[id];
  }
  unsigned char* chunk(int d, uint32_t c) const {
    return base_ + kPoolOffset + (size_t(d) * kChunks + c) * kChunkBytes;
  }

  // Allocates the pages. False: no memory. No peer can delay this on Linux 5.14 or later.
  bool PayConnection(uint32_t id);
  bool PayChunks(int d, uint32_t first, uint32_t count);

 private:
  Arena(Descriptor fd, unsigned char* base) : fd_(std::move(fd)), base_(base) {}
  static std::shared_ptr<Arena> Map(Descriptor fd);
  bool Populate(size_t offset, size_t bytes);

  Descriptor fd_;
  unsigned char* const base_;
};

}  // namespace viaduct::verbs::shm

#endif  // VIADUCT_VERBS_SOFT_SHM_ARENA_H_
