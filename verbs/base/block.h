// Memory for arrays that are sized for the worst case and mostly used only a little: what is not
// touched costs nothing. A large block gets pages of its own without an allocator's header, which
// would touch a page in each of a thousand idle connections.
#ifndef VIADUCT_VERBS_BASE_BLOCK_H_
#define VIADUCT_VERBS_BASE_BLOCK_H_

#include <cstddef>
#include <new>

namespace viaduct::verbs {

// A program may bring its own malloc and free but no aligned_alloc, as MPI libraries and memory
// debuggers did, and its free cannot take what libc's aligned_alloc returns. So all blocks come
// from the plain operator new, or from mmap.

// Uninitialized, aligned to 64 bytes; null if there is no memory.
void* AllocateBlock(size_t bytes);
// `bytes` as in AllocateBlock; `block` may be null.
void FreeBlock(void* block, size_t bytes);

// The same for blocks that are always small; freed without their size. `alignment`: a power of two
// from 16.
void* AllocateSmallBlock(size_t bytes, size_t alignment);
void FreeSmallBlock(void* block);

// A base of classes that live on the heap and whose members have cache lines of their own: their
// objects are small blocks, where the C++ library would call aligned_alloc.
struct OnBlocks {
  static void* operator new(size_t bytes, std::align_val_t alignment) {
    void* const block = AllocateSmallBlock(bytes, static_cast<size_t>(alignment));
    return block != nullptr ? block : throw std::bad_alloc();
  }
  // Takes no size: gcc 12 would not call an operator with a size when a constructor throws.
  static void operator delete(void* block, std::align_val_t) { FreeSmallBlock(block); }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BLOCK_H_
