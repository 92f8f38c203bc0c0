#include "verbs/soft/shm/arena.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "verbs/base/uncancelled.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

namespace viaduct::verbs::shm {
namespace {

constexpr size_t kPage = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

bool Pay(int fd, size_t offset, size_t bytes) {
  return uncancelled::Allocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0;
}

}  // namespace

std::shared_ptr<Arena> Arena::Create() {
  Descriptor fd = OpenHighAs<Descriptor>([] {
    const int made = memfd_create("viaduct", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    return made >= 0 ? made : memfd_create("viaduct", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  });
  const ArenaHeader header = {kArenaMagic, kArenaBytes};
  if (!fd.valid() || ftruncate(fd.get(), kArenaBytes) != 0 ||
      !Pay(fd.get(), 0, kConnectionOffset) ||
      pwrite(fd.get(), &header, sizeof header, 0) != sizeof header ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return nullptr;
  }
  std::shared_ptr<Arena> arena = Map(std::move(fd));
  if (arena == nullptr || !arena->PayChunks(0, 0, kFirstChunks) ||
      !arena->PayChunks(1, 0, kFirstChunks)) {
    return nullptr;
  }
  return arena;
}

std::shared_ptr<Arena> Arena::Open(GivenFd fd) {
  if (!fd.valid()) return nullptr;
  const int seals = fcntl(fd.get(), F_GET_SEALS);  // -1: not a memory file, so no seals
  struct statfs system;
  struct stat status;
  ArenaHeader header;  // copied once, then compared
  // Huge pages come from a fixed stock; when it is used up, touching a page is a SIGBUS.
  if (seals < 0 || (seals & kSeals) != kSeals || fstatfs(fd.get(), &system) != 0 ||
      system.f_type != TMPFS_MAGIC || fstat(fd.get(), &status) != 0 ||
      static_cast<size_t>(status.st_size) != kArenaBytes ||
      pread(fd.get(), &header, sizeof header, 0) != sizeof header || header.magic != kArenaMagic ||
      header.bytes != kArenaBytes) {
    return nullptr;
  }
  // A memory file: no other process can hold up its close, so a plain Descriptor will do.
  return Map(Descriptor(MoveHigh(fd.Release())));
}

std::shared_ptr<Arena> Arena::Map(Descriptor fd) {
  void* base =
      mmap(nullptr, kArenaBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(), 0);
  if (base == MAP_FAILED) return nullptr;
  // Zeros are valid objects of every type in the arena.
  return std::shared_ptr<Arena>(new Arena(std::move(fd), static_cast<unsigned char*>(base)));
}

Arena::~Arena() { munmap(base_, kArenaBytes); }

// Avoids fallocate: it waits for the file's lock, which a peer holds that hangs in a write to it.
bool Arena::Populate(size_t offset, size_t bytes) {
  const size_t first = offset / kPage * kPage;
  const int saved = errno;
  const bool done = madvise(base_ + first, offset + bytes - first, MADV_POPULATE_WRITE) == 0;
  const bool unknown = !done && errno == EINVAL;  // before Linux 5.14
  errno = saved;
  return unknown ? Pay(fd_.get(), offset, bytes) : done;
}

bool Arena::PayConnection(uint32_t id) {
  return Populate(kConnectionOffset + id * sizeof(ConnectionBlock), sizeof(ConnectionBlock));
}

bool Arena::PayChunks(int d, uint32_t first, uint32_t count) {
  return Populate(kPoolOffset + (size_t(d) * kChunks + first) * kChunkBytes,
                  size_t{count} * kChunkBytes);
}

}  // namespace viaduct::verbs::shm
