// A hint to the processor.
#ifndef VIADUCT_VERBS_SOFT_PREFETCH_H_
#define VIADUCT_VERBS_SOFT_PREFETCH_H_

namespace viaduct::verbs {

// Fetches a cache line for a store that follows soon, away from a peer who reads it. `line` may be
// stale or null: nothing is loaded, and a prefetch does not fault. __builtin_prefetch would not do:
// for the x86-64 that we compile for, it fetches the line for reading only, and the store has to
// ask the peer once more. Processors that do not know the instruction treat it as a no-operation.
inline void PrefetchForStore(const void* line) { asm volatile("prefetchw (%0)" : : "r"(line)); }

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_SOFT_PREFETCH_H_
