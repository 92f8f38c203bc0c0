// Memory for arrays that are made for the most that may come and mostly used a little: what is not
// touched costs nothing. A large block gets pages of its own without an allocator's header, which
// would touch one of them in each of a thousand idle connections.
#ifndef VIADUCT_VERBS_BASE_BLOCK_H_
#define VIADUCT_VERBS_BASE_BLOCK_H_

#include <cstddef>

namespace viaduct::verbs {

// Uninitialized, aligned to 64 bytes; null without memory.
void* AllocateBlock(size_t bytes);
// With the number of bytes that it was allocated with; null is allowed.
void FreeBlock(void* block, size_t bytes);

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_BLOCK_H_
