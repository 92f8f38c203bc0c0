#include "verbs/base/block.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

namespace viaduct::verbs {
namespace {

constexpr size_t kLine = 64;
// From this size on, a page more or less does not matter.
constexpr size_t kLarge = 64 * 1024;

}  // namespace

// The pointer that operator new returned is stored just before the block. There is room for it: the
// next multiple of `alignment` is at least as far away as the alignment that operator new gives.
void* AllocateSmallBlock(size_t bytes, size_t alignment) {
  void* const whole = ::operator new(bytes + alignment, std::nothrow);
  if (whole == nullptr) return nullptr;
  const uintptr_t before = reinterpret_cast<uintptr_t>(whole) / alignment * alignment;
  void** const block = reinterpret_cast<void**>(before + alignment);
  block[-1] = whole;
  return block;
}

void FreeSmallBlock(void* block) {
  if (block != nullptr) ::operator delete(static_cast<void**>(block)[-1]);
}

void* AllocateBlock(size_t bytes) {
  if (bytes < kLarge) return AllocateSmallBlock(bytes, kLine);
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  madvise(pages, bytes, MADV_NOHUGEPAGE);  // the first touch must not cost two megabytes
  return pages;
}

void FreeBlock(void* block, size_t bytes) {
  if (bytes < kLarge) {
    FreeSmallBlock(block);
  } else if (block != nullptr) {
    munmap(block, bytes);
  }
}

}  // namespace viaduct::verbs
