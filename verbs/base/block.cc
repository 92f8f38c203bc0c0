#include "verbs/base/block.h"

#include <sys/mman.h>

#include <cstdlib>

namespace viaduct::verbs {
namespace {

constexpr size_t kLine = 64;
// From here on a page more or less does not matter.
constexpr size_t kLarge = 64 * 1024;

}  // namespace

void* AllocateBlock(size_t bytes) {
  if (bytes < kLarge) return std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  madvise(pages, bytes, MADV_NOHUGEPAGE);  // the first touch is not to cost two megabytes
  return pages;
}

void FreeBlock(void* block, size_t bytes) {
  if (bytes < kLarge) {
    std::free(block);
  } else if (block != nullptr) {
    munmap(block, bytes);
  }
}

}  // namespace viaduct::verbs
