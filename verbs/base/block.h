// Memory for arrays that are made for the most that may come and mostly used a little: what is not
// touched costs nothing. A large block gets pages of its own without an allocator's header, which
// would touch one of them in each of a thousand idle connections.
#ifndef VIADUCT_VERBS_BASE_BLOCK_H_
#define VIADUCT_VERBS_BASE_BLOCK_H_

#include <cstddef>
#include <new>

namespace viaduct::verbs {

// A program that brings its own malloc and free, as MPI libraries and debuggers of memory did, may
// have nothing else: all of this comes from the plain operator new, or from mmap, since what libc's
// aligned_alloc gives is nothing for that free.

// Uninitialized, aligned to 64 bytes; null without memory.
void* AllocateBlock(size_t bytes);
// With the number of bytes that it was allocated with; null is allowed.
void FreeBlock(void* block, size_t bytes);

// The same for what is always small, without the number. `alignment`: a power of two from 16.
void* AllocateSmallBlock(size_t bytes, size_t alignment);
void FreeSmallBlock(void* block);

// A base of classes whose members have cache lines of their own, and which live on the heap: there
// they are small blocks, where the C++ library would call aligned_alloc.
struct OnBlocks {
  static void* operator new(size_t bytes, std::align_val_t alignment) {
    void* const block = AllocateSmallBlock(bytes, static_cast<size_t>(alignment));
    return block != nullptr ? block : throw std::bad_alloc();
  }
  // gcc 12 would not call one with the size where a constructor throws.
  static void operator delete(void* block, std::align_val_t) { FreeSmallBlock(block); }
};

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BLOCK_H_
